// The gradient by an attention sink, added to that of other tiles. With the output o
// and the log-sum-exp lse of whole rows, over all their keys and the sink,
//   dsink[h] -= sum_bi exp(sink[h] - lse[b, h, i]) * (do[b, i, h] . o[b, i, h])
// The sink is a logit without a value: of its row's softmax it has the share
// exp(sink - lse), and do . o is what that share loses to the others (README.md).
// A row that saw nothing (lse = -inf) is not read.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!acc1 = memref<?x!acc, strided<[?], offset: ?>>

func.func @softmax_sink_bwd(%o: !in4, %gradO: !in4, %lse: !acc3, %sink: !acc1, %gradSink: !acc1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : !acc
  // -1 / 0: the one spelling of -inf that does not depend on the type.
  %minusOne = arith.constant -1.0 : !acc
  %minusInf = arith.divf %minusOne, %zero : !acc
  %batches = memref.dim %o, %c0 : !in4
  %rows = memref.dim %o, %c1 : !in4
  %heads = memref.dim %o, %c2 : !in4
  %dv = memref.dim %o, %c3 : !in4

  scf.for %h = %c0 to %heads step %c1 {
    %logit = memref.load %sink[%h] : !acc1
    %total = scf.for %b = %c0 to %batches step %c1 iter_args(%ofBatches = %zero) -> !acc {
      %ofBatch = scf.for %i = %c0 to %rows step %c1 iter_args(%ofRows = %zero) -> !acc {
        %m = memref.load %lse[%b, %h, %i] : !acc3
        %seen = arith.cmpf une, %m, %minusInf : !acc
        %ofRow = scf.if %seen -> !acc {
          %delta = scf.for %e = %c0 to %dv step %c1 iter_args(%sum = %zero) -> !acc {
            %x0 = memref.load %o[%b, %i, %h, %e] : !in4
            %y0 = memref.load %gradO[%b, %i, %h, %e] : !in4
            %x = func.call @widen(%x0) : (!in) -> !acc
            %y = func.call @widen(%y0) : (!in) -> !acc
            %xy = arith.mulf %x, %y : !acc
            %next = arith.addf %sum, %xy : !acc
            scf.yield %next : !acc
          }
          %down = arith.subf %logit, %m : !acc
          %share = math.exp %down : !acc
          %lost = arith.mulf %share, %delta : !acc
          scf.yield %lost : !acc
        } else {
          scf.yield %zero : !acc
        }
        %next = arith.addf %ofRows, %ofRow : !acc
        scf.yield %next : !acc
      }
      %next = arith.addf %ofBatches, %ofBatch : !acc
      scf.yield %next : !acc
    }
    %old = memref.load %gradSink[%h] : !acc1
    %new = arith.subf %old, %total : !acc
    memref.store %new, %gradSink[%h] : !acc1
  }
  return
}
