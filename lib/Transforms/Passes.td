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
    placement. A nest that no step of the schedule speaks of is first made to
    run where other nests have its inputs lie (owner computes), so that none of
    them moves for it.
    For each level, the first of: an explicit shard or replicate, a
    parallel loop over one of the buffer's axes, a shifted loop over one; else the
    level holds replicas. A buffer without a boundary gets its inside placement
    as boundary.

    Of nests that have one buffer in several places the first decides, with a
    remark: for the others it is moved (R8).
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
      the loops; or, where the schedule says so, one `broadcast` a step: the loop
      walks panels that refine all cuts so read, the next one on its way.
    - R3: a read buffer is sharded along a shifted axis: each step works on one
      part while the next one arrives from a neighbour (`rotate`) or is read out
      of its owner's memory (`pull`). Of m parts a rank, what rotates is passed on
      m - 1 steps after it was worked on. Under a loop over the buffer, or of a
      strided placement, only the slice moves that these loops are at: each rank
      puts its own aside first. Steps that no rank needs, behind a window, are
      left out.
    - R4: a result is reduced over a parallel loop and replicated: `all_reduce`.
      Of several levels, the fast ones share it out (R5) and gather it (R7), so
      that a share goes over the slowest.
    - R5: it is sharded over that level: `reduce_scatter`, each rank's part in a
      slot of its own; over the fast levels first. Softmax pairs and deferred sums have neither: partial
      results are gathered and merged by every rank in the order of ranks (R4),
      or go to the owners of their parts and are merged there (R5).
    - R6: it is sharded along a shifted axis: the accumulator of a part goes to
      the rank that works on the part next (`travel`), or each partial result to
      the owner of the part (`deliver`), who may read it where it was made
      (`fetch`).
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

def SelectTransport : Pass<"commir-select-transport", "::mlir::ModuleOp"> {
  let summary = "choose how the bytes of each transfer move";
  let description = [{
    Before: SPMD programs on tiles. After: each transfer names its transport, as
    the attribute `commir.transport`:

    - `sim`, where the target has it: all of them.
    - `p2p`: a message. `collective`: what a group does together, by a library.
    - `symm`: a read of a peer's memory.
    - `rma`: a message of the group of `rma-levels`, by a put into the memory of its
      receiver, where it receives into a whole slot of the plan's own memory, the
      same slot on every rank, and the plan lends none of its own. What is sent of
      an argument is copied to a slot first.

    A collective of a target without them is taken apart into messages between
    all pairs of ranks, and waits for them where it started.

    ```
    commir.all_gather.start %own into %slots on "gpu" along sk
    =>                                                   transports=p2p
    copy %own to slot %rank of %slots
    for each hop: commir.exchange.start %own to (%rank + hop),
                  slot %from of %slots from (%rank - hop)

    exchange.start %K to %left, %slot from %right on "gpu"
    =>                                                   transports=p2p,rma
    copy %K to %staging
    exchange.start %staging to %left, %slot from %right on "gpu" {rma}
    ```

    Fails, by the name of the transport, at what the target cannot do: messages
    without `p2p`, a broadcast without `collective`, and reads without `symm` or
    on a level that is not among `local-levels`; and when nothing goes by `rma`,
    although the target has it.
  }];
  let options = [
    ListOption<"transports", "transports", "std::string",
               "what the target has: p2p, collective, symm, rma, sim">,
    ListOption<"localLevels", "local-levels", "std::string",
               "the levels whose ranks read each other's memory; all if none">,
    ListOption<"rmaLevels", "rma-levels", "std::string",
               "the levels of the one group whose ranks put into each other's memory">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numChosen", "num-chosen", "transfers whose transport was chosen">,
    Statistic<"numTakenApart", "num-taken-apart",
              "collectives made of messages">];
}

def PipelineCommunication
    : Pass<"commir-pipeline-communication", "::mlir::ModuleOp"> {
  let summary = "start transfers earlier and wait for them later";
  let description = [{
    Before: SPMD functions on memrefs whose memory has no place yet. After: in
    each block, a transfer starts as soon as what it sends is there and what it
    writes is free, while less than `depth` are under way; waits come just before
    their first use. What is under way at the same time has memory of its own:
    `commir-plan-memory` finds room for it. A depth of 1 changes nothing.

    ```
    start K; wait K; unpack K; start V; wait V; unpack V
    =>                                                          depth=2
    start K; start V; wait K; unpack K; wait V; unpack V
    ```

    All ranks run one text, so they still agree on the order of communication.

    Fails when the depth is less than 1, or memory is planned already.
  }];
  let options = [Option<"depth", "depth", "int64_t", /*default=*/"1",
                        "how many transfers may be under way at a time">];
  let statistics = [Statistic<"numMoved", "num-moved",
                              "ops that changed their place">];
}

def AssignLanes : Pass<"commir-assign-lanes", "::mlir::ModuleOp"> {
  let summary = "say in which lane each op of a plan is";
  let description = [{
    Before: SPMD functions on memrefs, some of whose launches name a lane
    (`commir.lane`). After: `commir.lane.use` before what is in another lane, and
    `commir.lane.order` where lanes fork and join. `commir-check-plan` proves that
    what they leave unordered touches different memory.

    ```
    launch A, start, launch B, wait, launch C          A and C in lane 0, B in lane 1
    =>
    order 0 before 1, launch A, start, use 1, launch B, use 0, wait, launch C,
    order 1 before 0
    ```

    Lanes fork before the first op that names one, and join before the next op that
    is not of them. A loop or a branch is in the lane that all in it name. A start,
    and the opening of a lease, stays in the lane of the launch before it, unless
    none is behind it, or it reduces what all lanes made: lanes join before that. A
    wait, with the starts behind it, is in the lane of the launch behind it, which
    needs what it waits for.
  }];
  let statistics = [Statistic<"numLaunches", "num-launches",
                              "launches that run beside others">];
}

def Localize : Pass<"commir-localize", "::mlir::ModuleOp"> {
  let summary = "give tiles their sizes on this rank";
  let description = [{
    Before: SPMD programs on tiles of named buffers. After: one function a
    program, `(context, buffers) -> status`, on memrefs whose sizes and offsets
    are arithmetic on group ranks by the axes' layouts. Of a strided placement a
    rank holds several parts side by side, so that sizes and offsets are sums.

    What works on a tile of several intervals (zigzag, striped, documents) does
    so once for each piece. `commir.redistribute` over one level packs, does
    one `all_to_all` and unpacks; over several, it becomes a loop over the other
    ranks of its group: pack, exchange, unpack.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PlanMemory : Pass<"commir-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give memory static offsets in a local and a symmetric arena";
  let description = [{
    Before: `memref.alloc` of bytes. After: views of two arenas, whose sizes the
    function states as `commir.local_bytes` and, where peers reach any of its
    memory, `commir.symmetric_bytes`.

    What is lent, or sent or received by a put, lies in the symmetric arena, which
    peers map, and all else in the local one, which they do not.

    Memory of one arena that is never needed at the same time shares bytes. It is needed from
    the first op of the function's body that touches it to the last; a loop is
    one op, and so is what is in several lanes. What a transfer touches is needed
    until its wait, what is lent until the lease is closed. The largest is placed
    first, each in the smallest gap that takes it, at a multiple of 64 bytes.

    Fails when the size of an allocation is not static.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"localBytes", "local-bytes",
                              "size of the local arena">,
                    Statistic<"symmetricBytes", "symmetric-bytes",
                              "size of the symmetric arena">];
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
    transfer is under way; that peers read arguments and the symmetric arena alone,
    this at the same offset on every rank; that a put is written to where its receiver waits for it; that no lane writes what another touches in no order
    with it; and that no communication depends on the rank.

    Fails with a counterexample: the rank, the step, the op and the buffer.
  }];
  let statistics = [Statistic<"numMessages", "num-messages",
                              "messages between ranks that were matched">];
}

#endif // LIB_TRANSFORMS_PASSES
