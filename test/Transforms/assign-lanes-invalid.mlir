// RUN: mercury-opt %s --commir-assign-lanes -verify-diagnostics

!t = memref<2x2xf32>
commir.mesh @mesh(gpu = 2)

func.func @no_such_lane(%a: !t, %b: !t, %c: !t) attributes {commir.mesh = @mesh} {
  // expected-error@+1 {{names lane 8; lanes go from 0 to 7}}
  commir.launch "matmul" ins(%a, %b : !t, !t) outs(%c : !t) at() {commir.lane = 8 : i64}
  return
}
