//===- Passes.td - From a schedule to a plan ---------------*- tablegen -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_PASSES
#define LIB_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def InferPlacement : Pass<"commir-infer-placement", "::mlir::ModuleOp"> {
  let summary = "find where every buffer lives inside a program";
  let description = [{
    Before: a scheduled program. After: each binding has its complete `inside`
    placement. For each level, the first of: an explicit shard or replicate, a
    parallel loop over one of the buffer's axes, a shifted loop over one; else the
    level holds replicas. A buffer without a boundary gets its inside placement
    as boundary.

    Fails when two nests of a program want one buffer in two places.
  }];
  let statistics = [Statistic<"numBuffers", "num-buffers", "buffers placed">];
}

def MaterializeCommunication
    : Pass<"commir-materialize-communication", "::mlir::ModuleOp"> {
  let summary = "turn loops and placements into one SPMD text with transfers";
  let description = [{
    Before: programs with inside placements. After: the body of each program is
    what every rank does: sequential loops over parts, tiles of local memory,
    kernel launches, and the transfers of these rules.

    - R1: an access falls in the rank's own shard: nothing.
    - R2: a read buffer is sharded along a loop axis on a level where none of its
      dimensions is parallel, and that loop is not shifted: `all_gather`, before
      the loops.
    - R3: a read buffer is sharded along a shifted axis: each step works on one
      part while the next one arrives from a neighbour (`rotate`) or is read out
      of its owner's memory (`pull`). Under a loop over the buffer, or of a
      strided placement, only the slice moves that these loops are at: each rank
      puts its own aside first. Steps that no rank needs, behind a window, are
      left out.
    - R4: a result is reduced over a parallel loop and replicated: partial
      results are gathered, and merged by every rank in the order of ranks.
    - R5: it is sharded over that level: each rank gets the partial results of
      its own part.
    - R6: it is sharded along a shifted axis: the accumulator of a part goes to
      the rank that works on the part next (`travel`), or each partial result to
      the owner of the part (`deliver`).
    - R7: a buffer lives elsewhere outside: it is redistributed.
    - R8: no other rule brings it: it is redistributed to where the loops use
      it, or from where they make it.
    - R9: shifts nest on several levels: the inner ring starts with what the
      outer one brought, and the outer hop runs under it. Each rotates or pulls.

    What a program means stays beside it, as a source: `commir-check-plan` reads
    it.

    Fails when a program needs another way of one of these, naming it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numTransfers", "num-transfers",
                              "transfers emitted">];
}

def Localize : Pass<"commir-localize", "::mlir::ModuleOp"> {
  let summary = "give tiles their sizes on this rank";
  let description = [{
    Before: SPMD programs on tiles of named buffers. After: one function a
    program, `(context, buffers) -> status`, on memrefs whose sizes and offsets
    are arithmetic on group ranks by the axes' layouts. Of a strided placement a
    rank holds several parts side by side, so that sizes and offsets are sums.

    What works on a tile of several intervals (zigzag, striped, documents) does
    so once for each piece. `commir.redistribute` becomes a loop over the other
    ranks of its group: pack, exchange, unpack.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PlanMemory : Pass<"commir-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give local memory static offsets in one arena";
  let description = [{
    Before: `memref.alloc` of bytes. After: views of the arena, whose size the
    function states as `commir.arena_bytes`.

    Memory that is never needed at the same time shares bytes. It is needed from
    the first op of the function's body that touches it to the last; a loop is
    one op. What a transfer touches is needed until its wait, what is lent until
    the lease is closed. The largest is placed first, each in the smallest gap
    that takes it, at a multiple of 64 bytes.

    Fails when the size of an allocation is not static.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"arenaBytes", "arena-bytes",
                              "size of the arena in bytes">];
}

def CheckPlan : Pass<"commir-check-plan", "::mlir::ModuleOp"> {
  let summary = "prove that a plan does what its program means";
  let description = [{
    Before and after: SPMD functions with their memory planned, each naming as
    `commir.source` the program that it was lowered from. Nothing changes.

    Runs all ranks against each other on what their memory holds in place of
    numbers, and proves that each element of each output is merged from every
    unmasked part exactly once; that every message is received, in an order that
    cannot hang; that nothing is read before it is there or overwritten while a
    transfer is under way; and that no communication depends on the rank.

    Fails with a counterexample: the rank, the step, the op and the buffer.
  }];
  let statistics = [Statistic<"numMessages", "num-messages",
                              "messages between ranks that were matched">];
}

#endif // LIB_TRANSFORMS_PASSES
