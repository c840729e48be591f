// The gradient by an attention sink, added to that of other tiles:
//   dsink[h] -= sum_bi exp(sink[h] - lse[b, h, i]) * (do[b, i, h] . o[b, i, h])
//
// A block takes a head, each of its 32 warps every 32nd row, each thread of a warp
// every 32nd column. What the threads found is summed in one order, by halves.

!in4 = memref<?x?x?x?x!in, strided<[?, ?, ?, ?], offset: ?>>
!acc3 = memref<?x?x?x!acc, strided<[?, ?, ?], offset: ?>>
!acc1 = memref<?x!acc, strided<[?], offset: ?>>
!threads = memref<1024x!acc, #gpu.address_space<workgroup>>

gpu.module @device {
  func.func @blocks(%o: !in4, %gradO: !in4, %lse: !acc3, %sink: !acc1, %gradSink: !acc1, %lanes: index) -> index {
    %c0 = arith.constant 0 : index
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !in4 -> memref<!in>, index, index, index, index, index, index, index, index, index
    %n01 = arith.muli %n#0, %n#1 : index
    %elements = arith.muli %n01, %n#3 : index
    %empty = arith.cmpi eq, %elements, %c0 : index
    %blocks = arith.select %empty, %c0, %n#2 : index
    return %blocks : index
  }

  gpu.func @softmax_sink_bwd(%o: !in4, %gradO: !in4, %lse: !acc3, %sink: !acc1, %gradSink: !acc1)
      workgroup(%sums: !threads)
      kernel attributes {known_block_size = array<i32: 1024, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : index
    %c32 = arith.constant 32 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant 0.0 : !acc
    %minusOne = arith.constant -1.0 : !acc
    %minusInf = arith.divf %minusOne, %zero : !acc
    %base, %at, %n:4, %s:4 = memref.extract_strided_metadata %o : !in4 -> memref<!in>, index, index, index, index, index, index, index, index, index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    %warp = arith.divui %thread, %c32 : index
    %lane = arith.remui %thread, %c32 : index
    %rows = arith.muli %n#0, %n#1 : index
    %leads = arith.cmpi eq, %thread, %c0 : index

    scf.for %h = %block to %n#2 step %blocks {
      %logit = memref.load %sink[%h] : !acc1
      %mine = scf.for %row = %warp to %rows step %c32 iter_args(%ofRows = %zero) -> !acc {
        %b, %i = func.call @split(%row, %n#1) : (index, index) -> (index, index)
        %m = memref.load %lse[%b, %h, %i] : !acc3
        %seen = arith.cmpf une, %m, %minusInf : !acc
        %ofRow = scf.if %seen -> !acc {
          %delta = scf.for %e = %lane to %n#3 step %c32 iter_args(%sum = %zero) -> !acc {
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
      memref.store %mine, %sums[%thread] : !threads
      scf.for %step = %c0 to %c10 step %c1 {
        gpu.barrier
        %half = arith.shrui %c512, %step : index
        %adds = arith.cmpi ult, %thread, %half : index
        scf.if %adds {
          %other = arith.addi %thread, %half : index
          %x = memref.load %sums[%thread] : !threads
          %y = memref.load %sums[%other] : !threads
          %xy = arith.addf %x, %y : !acc
          memref.store %xy, %sums[%thread] : !threads
        }
      }
      scf.if %leads {
        %total = memref.load %sums[%c0] : !threads
        %old = memref.load %gradSink[%h] : !acc1
        %new = arith.subf %old, %total : !acc
        memref.store %new, %gradSink[%h] : !acc1
      }
      // The next head's sums wait for this one's to be read.
      gpu.barrier
    }
    gpu.return
  }
}
