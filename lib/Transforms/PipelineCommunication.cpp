//===- PipelineCommunication.cpp - Start early, wait late -----------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of a block are put into another order that keeps what each depends
// on: values, memory, and the order of communication, which is that of all
// ranks. Of what may come next, first comes what a start needs, as long as few
// enough transfers are under way; then work; and waits when nothing else can.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::commir {
#define GEN_PASS_DEF_PIPELINECOMMUNICATION
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

static bool isStart(Operation *op) {
  return isa<ExchangeStartOp, AllGatherStartOp, ReduceScatterStartOp,
             AllReduceStartOp, AllToAllStartOp, BroadcastStartOp, PullStartOp>(
      op);
}

static bool isCommunication(Operation *op) {
  return isStart(op) || isa<WaitOp, LeaseOpenOp, LeaseCloseOp>(op);
}

namespace {
/// What an op, with all inside it, does to memory. Memory is known by what made
/// it; null is anything.
struct Effects {
  llvm::SmallSetVector<Operation *, 4> reads, writes;
  bool communicates = false, unknown = false;

  bool conflictsWith(const Effects &later) const {
    if (unknown || later.unknown || reads.contains(nullptr) ||
        writes.contains(nullptr) || later.reads.contains(nullptr) ||
        later.writes.contains(nullptr))
      return true;
    auto meets = [](const auto &a, const auto &b) {
      return llvm::any_of(a, [&](Operation *op) { return b.contains(op); });
    };
    return meets(writes, later.reads) || meets(writes, later.writes) ||
           meets(reads, later.writes);
  }
};

class BlockScheduler {
public:
  BlockScheduler(Block &block, int64_t depth) : block(block), depth(depth) {}

  /// Returns the number of ops that changed their place.
  int64_t run();

private:
  void collect(Operation *op, Effects &effects);
  void addMemory(Value tile, llvm::SmallSetVector<Operation *, 4> &found);
  void findDependences();
  int64_t pick();

  Block &block;
  int64_t depth;
  SmallVector<Operation *> ops;
  std::vector<Effects> effects;
  std::vector<SmallVector<int64_t>> needs, users;
  /// How many ops each still waits for, and the first start that needs it.
  SmallVector<int64_t> waiting, serves;
  SmallVector<bool> done;
  DenseMap<Operation *, int64_t> numbers;
  int64_t inFlight = 0;
};
} // namespace

/// Follows views to the memory itself: an allocation, an arena, an argument by
/// its number, or what a lease shows.
void BlockScheduler::addMemory(Value tile,
                               llvm::SmallSetVector<Operation *, 4> &found) {
  SmallVector<Value> open{tile};
  llvm::SmallDenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *made = value.getDefiningOp();
    if (!made || isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp,
                     MemoryOp, LeaseMemoryOp>(made)) {
      found.insert(made);
      continue;
    }
    bool any = false;
    for (Value operand : made->getOperands())
      if (isa<BaseMemRefType>(operand.getType())) {
        open.push_back(operand);
        any = true;
      }
    if (!any)
      found.insert(nullptr);
  }
}

void BlockScheduler::collect(Operation *op, Effects &all) {
  auto read = [&](Value tile) { addMemory(tile, all.reads); };
  auto write = [&](Value tile) { addMemory(tile, all.writes); };
  op->walk([&](Operation *inner) {
    if (isCommunication(inner))
      all.communicates = true;
    if (isMemoryEffectFree(inner) || isa<scf::ForOp, scf::IfOp>(inner) ||
        isa<memref::AllocOp, memref::AllocaOp, MemoryOp>(inner))
      return;
    if (isa<WaitOp, LeaseOpenOp, LeaseCloseOp>(inner)) {
      // A lease lets peers read; a wait is for what its start touches.
      if (auto open = dyn_cast<LeaseOpenOp>(inner))
        return read(open.getMemory());
      Operation *start = inner->getOperand(0).getDefiningOp();
      if (!start)
        all.unknown = true;
      else if (auto open = dyn_cast<LeaseOpenOp>(start))
        read(open.getMemory());
      else
        collect(start, all);
      return;
    }
    if (auto load = dyn_cast<memref::LoadOp>(inner))
      return read(load.getMemRef());
    if (auto store = dyn_cast<memref::StoreOp>(inner))
      return write(store.getMemRef());
    if (auto launch = dyn_cast<LaunchOp>(inner)) {
      llvm::for_each(launch.getInputs(), read);
      for (Value output : launch.getOutputs()) {
        read(output);
        write(output);
      }
      if (launch.getScratch())
        write(launch.getScratch());
      return;
    }
    if (isa<FillOp>(inner))
      return write(inner->getOperand(0));
    if (isa<CopyOp, AccumulateOp>(inner) || isStart(inner)) {
      // Every operand is read, and the target written; the own slot of a
      // reduce_scatter too.
      for (Value operand : inner->getOperands())
        if (isa<BaseMemRefType>(operand.getType()))
          read(operand);
      if (auto exchange = dyn_cast<ExchangeStartOp>(inner))
        return write(exchange.getTarget());
      if (auto deal = dyn_cast<AllToAllStartOp>(inner))
        return write(deal.getTarget());
      if (isa<ReduceScatterStartOp>(inner))
        write(inner->getOperand(0));
      return write(inner->getOperand(1));
    }
    all.unknown = true;
  });
}

void BlockScheduler::findDependences() {
  int64_t count = ops.size();
  needs.resize(count);
  users.resize(count);
  waiting.assign(count, 0);
  auto depend = [&](int64_t later, int64_t earlier) {
    if (later == earlier || llvm::is_contained(needs[later], earlier))
      return;
    needs[later].push_back(earlier);
    users[earlier].push_back(later);
    ++waiting[later];
  };
  for (int64_t i = 0; i < count; ++i) {
    ops[i]->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *made = operand.getDefiningOp())
          if (auto at = numbers.find(made); at != numbers.end())
            depend(i, at->second);
    });
    for (int64_t j = 0; j < i; ++j) {
      // A wait for one transfer is no communication of another: only starts
      // keep their order, and what is inside of loops.
      bool waits = isa<WaitOp>(ops[i]) || isa<WaitOp>(ops[j]);
      bool ordered =
          effects[i].communicates && effects[j].communicates && !waits;
      if (ordered || effects[j].conflictsWith(effects[i]))
        depend(i, j);
    }
  }
  // The first start that each op comes before.
  serves.assign(count, count);
  for (int64_t i = count; i-- > 0;) {
    if (isStart(ops[i]))
      serves[i] = i;
    for (int64_t need : needs[i])
      serves[need] = std::min(serves[need], serves[i]);
  }
}

/// The next op, or -1.
int64_t BlockScheduler::pick() {
  int64_t start = -1, work = -1, wait = -1;
  for (int64_t i = 0, e = ops.size(); i < e; ++i) {
    if (done[i] || waiting[i] != 0)
      continue;
    if (isa<WaitOp>(ops[i]))
      wait = wait < 0 ? i : wait;
    else if (serves[i] < static_cast<int64_t>(ops.size()) && inFlight < depth)
      start = start < 0 || serves[i] < serves[start] ? i : start;
    else if (!isStart(ops[i]))
      work = work < 0 ? i : work;
  }
  for (int64_t found : {start, work, wait})
    if (found >= 0)
      return found;
  // More starts than may be under way, and nothing else to do.
  for (int64_t i = 0, e = ops.size(); i < e; ++i)
    if (!done[i] && waiting[i] == 0)
      return i;
  return -1;
}

int64_t BlockScheduler::run() {
  bool any = false;
  for (Operation &op : block.without_terminator()) {
    numbers[&op] = ops.size();
    ops.push_back(&op);
    any |= isStart(&op);
  }
  if (!any)
    return 0;
  for (Operation *op : ops)
    collect(op, effects.emplace_back());
  findDependences();
  done.assign(ops.size(), false);
  Operation *end =
      block.mightHaveTerminator() ? block.getTerminator() : nullptr;
  int64_t moved = 0, place = 0;
  for (int64_t next = pick(); next >= 0; next = pick(), ++place) {
    done[next] = true;
    for (int64_t user : users[next])
      --waiting[user];
    inFlight += isStart(ops[next]) ? 1 : isa<WaitOp>(ops[next]) ? -1 : 0;
    moved += next != place;
    if (end)
      ops[next]->moveBefore(end);
    else
      ops[next]->moveBefore(&block, block.end());
  }
  return moved;
}

namespace {
struct PipelineCommunication
    : public commir::impl::PipelineCommunicationBase<PipelineCommunication> {
  using PipelineCommunicationBase::PipelineCommunicationBase;

  void runOnOperation() override {
    if (depth < 1) {
      getOperation().emitError()
          << "commir-pipeline-communication: the depth must be at least 1, got "
          << depth.getValue();
      return signalPassFailure();
    }
    if (depth == 1)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr("commir.mesh"))
        continue;
      if (function->hasAttr("commir.local_bytes")) {
        function.emitOpError() << "has its memory planned; pipeline its "
                                  "communication before commir-plan-memory";
        return signalPassFailure();
      }
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks)
        numMoved += BlockScheduler(*block, depth).run();
    }
  }
};
} // namespace
