// RUN: mercury-opt %s --commir-materialize-communication -split-input-file -verify-diagnostics

commir.mesh @mesh(gpu = 4)
// expected-error@below {{'commir.program' op has no placement for buffer 'X'; run commir-infer-placement first}}
commir.program @missing_infer_placement on @mesh axes(i = 8)
    inputs(%X: !commir.buffer<[i], f32> at []) outputs() {
  commir.for i {
    %x = commir.load %X : !commir.buffer<[i], f32>
  }
}
