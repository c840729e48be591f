// RUN: mercury-opt %s --transform-interpreter -split-input-file | FileCheck %s

// CHECK-LABEL: commir.program @steps
// CHECK: commir.for i of 2 shift(by j on gpu)
// CHECK: } {commir.overlap = "i"}
module attributes {transform.with_named_sequence} {
  commir.mesh @mesh(gpu = 2)
  commir.program @steps on @mesh axes(i = 8, j = 6, k = 4)
      inputs(%A: !commir.buffer<[i, k], f32>, %B: !commir.buffer<[k, j], f32>)
      outputs(%C: !commir.buffer<[i, j], f32>) {
    commir.for i of 2 shift(by j on gpu), j of 2 parallel(gpu), k {
      %a = commir.load %A : !commir.buffer<[i, k], f32>
      %b = commir.load %B : !commir.buffer<[k, j], f32>
      %c = commir.kernel "matmul"(%a, %b)
          : (!commir.tile<[i, k], f32>, !commir.tile<[k, j], f32>) -> !commir.tile<[i, j], f32>
      commir.store %c to %C merge(sum) over(k) : !commir.tile<[i, j], f32> to !commir.buffer<[i, j], f32>
    }
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %program = transform.structured.match ops{["commir.program"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.commir.overlap "i" in %program : !transform.any_op
    transform.yield
  }
}
