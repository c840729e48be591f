// RUN: mercury-opt %s --commir-plan-memory -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 4)
func.func @dynamic_size(%n: index) attributes {commir.mesh = @mesh} {
  // expected-error@below {{'memref.alloc' op must be of a static number of bytes to have a place in an arena, got 'memref<?xi8>'}}
  %a = memref.alloc(%n) : memref<?xi8>
  return
}

// -----

commir.mesh @mesh(gpu = 4)
func.func @elements() attributes {commir.mesh = @mesh} {
  // expected-error@below {{must be of a static number of bytes to have a place in an arena, got 'memref<4x4xf32>'}}
  %a = memref.alloc() : memref<4x4xf32>
  return
}

// -----

commir.mesh @mesh(gpu = 4)
func.func @too_much() attributes {commir.mesh = @mesh} {
  %a = memref.alloc() : memref<9223372036854775744xi8>
  // expected-error@below {{needs more memory than there are addresses, with what is in the arenas}}
  %b = memref.alloc() : memref<64xi8>
  memref.copy %b, %b : memref<64xi8> to memref<64xi8>
  memref.copy %a, %a : memref<9223372036854775744xi8> to memref<9223372036854775744xi8>
  memref.copy %b, %b : memref<64xi8> to memref<64xi8>
  return
}
