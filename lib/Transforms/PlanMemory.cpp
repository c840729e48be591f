//===- PlanMemory.cpp - Static offsets in two arenas ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transport.h"
#include "lib/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::commir {
#define GEN_PASS_DEF_PLANMEMORY
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

/// Both what the runtime promises of an arena and a whole cache line.
static constexpr int64_t kAlignment = 64;

/// As much as both arenas of a rank may have.
static constexpr int64_t kAddresses =
    std::numeric_limits<int64_t>::max() & -kAlignment;

namespace {
/// Memory of static size, and the ops of the function's body, by number, from
/// the first that touches it to the last. A loop is one op of the body, and so
/// is all that is in several lanes, where the text does not tell what is first.
struct Span {
  memref::AllocOp alloc;
  int64_t bytes;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  /// Symmetric, if it is lent, or an end of a put.
  Arena arena = Arena::Local;
  int64_t offset = 0;

  void touch(int64_t op) {
    first = std::min(first, op);
    last = std::max(last, op);
  }
  bool livesWith(const Span &other) const {
    return first <= other.last && other.first <= last;
  }
  int64_t end() const { return offset + bytes; }
};

/// Finds when memory is touched: by ops on it, and by a transfer or a lease of
/// it until what ends that; and whether peers reach it at all.
class LiveRange {
public:
  explicit LiveRange(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return;
    SmallVector<Operation *> lanes;
    for (Operation &op : function.getBody().front()) {
      numbers[&op] = numbers.size();
      if (isa<LaneUseOp, LaneOrderOp>(op))
        lanes.push_back(&op);
    }
    if (lanes.empty())
      return;
    int64_t first = numbers[lanes.front()];
    for (Operation *op = lanes.front(); op != lanes.back();)
      numbers[op = op->getNextNode()] = first;
  }

  void find(Span &span) {
    if (numbers.empty()) // no order to tell of
      touchAll(span);
    SetVector<Value> aliases;
    aliases.insert(span.alloc.getMemref());
    for (size_t i = 0; i < aliases.size(); ++i) {
      Value alias = aliases[i];
      // Nothing ends such a transfer or lease.
      if (!isa<BaseMemRefType>(alias.getType()) && alias.use_empty())
        touchAll(span);
      for (Operation *user : alias.getUsers())
        followUse(span, *user, aliases);
    }
  }

private:
  /// What may be the memory, or a transfer or lease of it.
  static bool mayHold(Type type) {
    return isa<BaseMemRefType>(type) || isa<CommIRDialect>(type.getDialect());
  }

  void followUse(Span &span, Operation &user, SetVector<Value> &aliases) {
    auto follow = [&](ValueRange values) {
      for (Value value : values)
        if (mayHold(value.getType()))
          aliases.insert(value);
    };
    auto exchange = dyn_cast<ExchangeStartOp>(user);
    if (isa<LeaseOpenOp>(user) || (exchange && isPut(exchange)))
      span.arena = Arena::Symmetric;
    // A view touches nothing.
    if (!numbers.empty() && !isMemoryEffectFree(&user))
      span.touch(getNumber(user));
    follow(user.getResults());
    for (Region &region : user.getRegions())
      if (!region.empty())
        follow(region.front().getArguments());
    if (isa<scf::YieldOp>(user)) {
      follow(user.getParentOp()->getResults());
      for (Region &region : user.getParentOp()->getRegions())
        if (!region.empty())
          follow(region.front().getArguments());
      return;
    }
    // Anyone else may keep its address.
    if (!isa<CommIRDialect, memref::MemRefDialect, arith::ArithDialect,
             scf::SCFDialect>(user.getDialect()) ||
        isa<memref::ExtractAlignedPointerAsIndexOp>(user))
      touchAll(span);
  }

  void touchAll(Span &span) {
    span.touch(0);
    span.touch(numbers.size());
  }

  int64_t getNumber(Operation &op) {
    Operation *outermost = &op;
    while (!numbers.contains(outermost))
      outermost = outermost->getParentOp();
    return numbers.lookup(outermost);
  }

  DenseMap<Operation *, int64_t> numbers;
};
} // namespace

namespace {
/// What lies in one arena.
class ArenaPlan {
public:
  /// Fails when the arena would be larger than `limit`.
  LogicalResult place(Span &span, int64_t limit);
  int64_t getBytes() const { return bytes; }

private:
  int64_t find(const Span &span) const;

  SmallVector<Span *> placed; // in the order of offsets
  int64_t bytes = 0;
};
} // namespace

/// The lowest place of the smallest gap that takes `span` between what lives
/// at the same time.
int64_t ArenaPlan::find(const Span &span) const {
  int64_t best = -1, smallest = 0, end = 0;
  for (const Span *other : placed) {
    if (!other->livesWith(span))
      continue;
    int64_t gap = other->offset - end;
    if (gap >= span.bytes && (best < 0 || gap < smallest)) {
      best = end;
      smallest = gap;
    }
    end = std::max(end, int64_t(llvm::alignTo(other->end(), kAlignment)));
  }
  return best < 0 ? end : best;
}

LogicalResult ArenaPlan::place(Span &span, int64_t limit) {
  span.offset = find(span);
  if (span.bytes > limit - span.offset)
    return failure();
  bytes = std::max<int64_t>(bytes, llvm::alignTo(span.end(), kAlignment));
  auto after =
      llvm::upper_bound(placed, &span, [](const Span *a, const Span *b) {
        return a->offset < b->offset;
      });
  placed.insert(after, &span);
  return success();
}

namespace {
struct PlanMemory : public commir::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("commir.mesh") && failed(planFunction(function)))
        return signalPassFailure();
  }

  LogicalResult planFunction(func::FuncOp function) {
    SmallVector<Span> spans;
    LiveRange liveRange(function);
    auto walked = function.walk([&](memref::AllocOp alloc) {
      MemRefType type = alloc.getType();
      if (type.getRank() != 1 || !type.hasStaticShape() ||
          !type.getElementType().isInteger(8)) {
        alloc.emitOpError() << "must be of a static number of bytes to have a "
                               "place in an arena, got "
                            << type;
        return WalkResult::interrupt();
      }
      spans.push_back({alloc, type.getDimSize(0)});
      liveRange.find(spans.back());
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    // Planned already.
    if (spans.empty() && function->hasAttr("commir.local_bytes"))
      return success();
    ArenaPlan local, symmetric;
    if (failed(place(spans, local, symmetric)))
      return failure();
    Builder builder(&getContext());
    function->setAttr("commir.local_bytes",
                      builder.getI64IntegerAttr(local.getBytes()));
    if (symmetric.getBytes())
      function->setAttr("commir.symmetric_bytes",
                        builder.getI64IntegerAttr(symmetric.getBytes()));
    localBytes += local.getBytes();
    symmetricBytes += symmetric.getBytes();
    replaceAllocs(function, spans);
    return success();
  }

  /// The largest first, which leaves the small ones the gaps; of equal ones the
  /// first in the program.
  static LogicalResult place(MutableArrayRef<Span> spans, ArenaPlan &local,
                             ArenaPlan &symmetric) {
    SmallVector<Span *> order;
    for (Span &span : spans)
      order.push_back(&span);
    llvm::stable_sort(order, [](const Span *a, const Span *b) {
      return a->bytes > b->bytes;
    });
    for (Span *span : order) {
      bool isLocal = span->arena == Arena::Local;
      ArenaPlan &own = isLocal ? local : symmetric;
      ArenaPlan &other = isLocal ? symmetric : local;
      if (failed(own.place(*span, kAddresses - other.getBytes())))
        return span->alloc.emitOpError()
               << "needs more memory than there are addresses, with what is in "
                  "the arenas";
    }
    return success();
  }

  void replaceAllocs(func::FuncOp function, ArrayRef<Span> spans) {
    OpBuilder builder(&getContext());
    auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    Value arenas[2];
    for (const Span &span : spans) {
      Value &arena = arenas[static_cast<size_t>(span.arena)];
      if (!arena) {
        builder.setInsertionPointToStart(&function.getBody().front());
        arena = MemoryOp::create(builder, function.getLoc(), bytes, span.arena);
      }
      memref::AllocOp alloc = span.alloc;
      builder.setInsertionPoint(alloc);
      Value at =
          arith::ConstantIndexOp::create(builder, alloc.getLoc(), span.offset);
      Value view = memref::ViewOp::create(
          builder, alloc.getLoc(), alloc.getType(), arena, at, ValueRange{});
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
  }
};
} // namespace
