// Merges an attention sink, one more logit a head that has no value, into (o, lse):
//   lse' = log(exp(lse) + exp(sink[h]))
//   o'   = exp(lse) * o / exp(lse')
// It is the partial result (0, sink[h]), so it is softmax_merge with that pair.

!sinks = memref<?x!in, strided<[?], offset: ?>>
!acc4 = memref<?x?x?x?x!acc, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>

func.func @softmax_sink(%sink: !sinks, %o: !acc4, %lse: !acc3) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : !acc
  // -1 / 0: the one spelling of -inf that does not depend on the type.
  %minusOne = arith.constant -1.0 : !acc
  %minusInf = arith.divf %minusOne, %zero : !acc
  %batches = memref.dim %o, %c0 : !acc4
  %rows = memref.dim %o, %c1 : !acc4
  %heads = memref.dim %o, %c2 : !acc4
  %dv = memref.dim %o, %c3 : !acc4

  scf.for %b = %c0 to %batches step %c1 {
    scf.for %i = %c0 to %rows step %c1 {
      scf.for %h = %c0 to %heads step %c1 {
        %logit = memref.load %sink[%h] : !sinks
        %m2 = func.call @widen(%logit) : (!in) -> !acc
        %m1 = memref.load %lse[%b, %h, %i] : !acc3
        %m = arith.maximumf %m1, %m2 : !acc
        // A sink of -inf says nothing, also to a row that has seen nothing.
        %nonempty = arith.cmpf une, %m, %minusInf : !acc
        scf.if %nonempty {
          %down1 = arith.subf %m1, %m : !acc
          %down2 = arith.subf %m2, %m : !acc
          %w1 = math.exp %down1 : !acc
          %w2 = math.exp %down2 : !acc
          %l = arith.addf %w1, %w2 : !acc
          %logL = math.log %l : !acc
          %lseNew = arith.addf %m, %logL : !acc
          memref.store %lseNew, %lse[%b, %h, %i] : !acc3
          scf.for %e = %c0 to %dv step %c1 {
            %x = memref.load %o[%b, %i, %h, %e] : !acc4
            %y = arith.mulf %x, %w1 : !acc
            %z = arith.divf %y, %l : !acc
            memref.store %z, %o[%b, %i, %h, %e] : !acc4
          }
        }
      }
    }
  }
  return
}
