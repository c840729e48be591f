//===- SelectTransport.cpp - How the bytes of each transfer move ----------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While tiles still have names: a collective that a target lacks is taken apart
// into messages, the same for all ranks, in the order of ranks where it merges.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/CommIR.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Puts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::commir {
#define GEN_PASS_DEF_SELECTTRANSPORT
#include "lib/Transforms/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Writes messages in the place of one collective, which is complete then.
class Messages {
public:
  Messages(Operation *op, ArrayAttr group)
      : op(op), group(group), builder(op), loc(op->getLoc()),
        mesh(op->getParentOfType<ProgramOp>().getMeshOp()),
        members(mesh.getGroupSize(group)) {}

  void expand(AllGatherStartOp gather);
  LogicalResult expand(AllReduceStartOp reduce);
  void expand(ReduceScatterStartOp scatter);

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value getRank();
  Value getPart(Value buffer, Value slot, StringAttr axis, Value index,
                int64_t count);
  /// Opens a loop over the other members; the insertion point is inside.
  std::pair<Value, Value> openHops(Value rank);
  void exchange(Value source, Value to, Value target, Value from);
  /// Nothing is left to wait for.
  void finish();

  Operation *op;
  ArrayAttr group;
  OpBuilder builder;
  Location loc;
  MeshOp mesh;
  int64_t members;
};
} // namespace

Value Messages::getRank() {
  Value rank;
  for (auto level : group.getAsRange<StringAttr>()) {
    Value own =
        GroupRankOp::create(builder, loc, builder.getIndexType(), level);
    if (!rank) {
      rank = own;
      continue;
    }
    rank = arith::MulIOp::create(builder, loc, rank,
                                 constant(mesh.getLevelSize(level)));
    rank = arith::AddIOp::create(builder, loc, rank, own);
  }
  return rank;
}

Value Messages::getPart(Value buffer, Value slot, StringAttr axis, Value index,
                        int64_t count) {
  auto type = cast<BufferType>(buffer.getType());
  SmallVector<Value> indices;
  SmallVector<Attribute> axes;
  SmallVector<int64_t> counts;
  if (axis) {
    indices.push_back(index);
    axes.push_back(axis);
    counts.push_back(count);
  }
  return PartOp::create(builder, loc, type.getTileType(), buffer, slot, indices,
                        builder.getArrayAttr(axes),
                        builder.getDenseI64ArrayAttr(counts));
}

std::pair<Value, Value> Messages::openHops(Value rank) {
  Value one = constant(1), count = constant(members);
  auto hops = scf::ForOp::create(builder, loc, one, count, one);
  builder.setInsertionPointToStart(hops.getBody());
  Value hop = hops.getInductionVar();
  auto wrap = [&](Value member) -> Value {
    return arith::RemUIOp::create(builder, loc, member, count);
  };
  Value to = wrap(arith::AddIOp::create(builder, loc, rank, hop));
  Value back = arith::SubIOp::create(builder, loc, count, hop);
  return {to, wrap(arith::AddIOp::create(builder, loc, rank, back))};
}

void Messages::exchange(Value source, Value to, Value target, Value from) {
  Value always = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto start =
      ExchangeStartOp::create(builder, loc, TokenType::get(op->getContext()),
                              source, to, target, from, group, always);
  start->setAttr("commir.transport", builder.getStringAttr("p2p"));
  WaitOp::create(builder, loc, start.getToken());
}

void Messages::finish() {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    user->erase();
  op->erase();
}

void Messages::expand(AllGatherStartOp gather) {
  Value rank = getRank();
  auto slotOf = [&](Value member) {
    return getPart(gather.getTarget(), member, gather.getAxisAttr(), member,
                   members);
  };
  CopyOp::create(builder, loc, gather.getSource(), slotOf(rank));
  auto [to, from] = openHops(rank);
  exchange(gather.getSource(), to, slotOf(from), from);
  finish();
}

/// Everybody sums all partial results in the order of ranks: what all get is
/// the same.
LogicalResult Messages::expand(AllReduceStartOp reduce) {
  auto part = reduce.getSource().getDefiningOp<PartOp>();
  if (!part || reduce.getMerge() != MergeKind::Sum)
    return reduce.emitOpError()
           << "cannot be taken apart into messages: it must sum a part of a "
              "buffer";
  Value buffer = part.getBuffer();
  auto program = op->getParentOfType<ProgramOp>();
  PlacementAttr placement;
  DictionaryAttr parts = builder.getDictionaryAttr({});
  if (auto made = buffer.getDefiningOp<AllocOp>()) {
    placement = made.getPlacement();
    parts = made.getParts();
  } else {
    int64_t number = cast<BlockArgument>(buffer).getArgNumber();
    BindingAttr binding = program.getBinding(number);
    placement =
        binding.getBoundary() ? binding.getBoundary() : binding.getInside();
  }
  Value slots = AllocOp::create(builder, loc, buffer.getType(), members,
                                placement, parts);
  auto slotOf = [&](Value member) -> Value {
    return PartOp::create(builder, loc, part.getTile().getType(), slots, member,
                          part.getIndices(), part.getAxes(),
                          part.getCountsAttr());
  };
  Value rank = getRank();
  CopyOp::create(builder, loc, reduce.getSource(), slotOf(rank));
  {
    OpBuilder::InsertionGuard guard(builder);
    auto [to, from] = openHops(rank);
    exchange(reduce.getSource(), to, slotOf(from), from);
  }
  Value zero = constant(0), one = constant(1), count = constant(members);
  CopyOp::create(builder, loc, slotOf(zero), reduce.getTarget());
  auto others = scf::ForOp::create(builder, loc, one, count, one);
  builder.setInsertionPointToStart(others.getBody());
  Value more = slotOf(others.getInductionVar());
  AccumulateOp::create(builder, loc, more, reduce.getTarget());
  finish();
  return success();
}

/// Each part is summed where it belongs, as the partial results come.
void Messages::expand(ReduceScatterStartOp scatter) {
  auto own = scatter.getTarget().getDefiningOp<PartOp>();
  auto made = scatter.getSource().getDefiningOp<AllocOp>();
  auto axes = own.getAxes().getAsRange<StringAttr>();
  int64_t number = llvm::find(axes, scatter.getAxisAttr()) - axes.begin();
  Value index = own.getIndices()[number];
  Value rank = getRank();
  // The parts of members are as far apart as their numbers, or that times more.
  auto stride = scatter->getAttrOfType<IntegerAttr>("commir.stride");
  Value apart = constant(stride ? stride.getInt() : 1);
  Value first = arith::SubIOp::create(
      builder, loc, index, arith::MulIOp::create(builder, loc, rank, apart));
  auto partOf = [&](Value buffer, Value member, Value slot = {}) -> Value {
    Value further = arith::MulIOp::create(builder, loc, member, apart);
    SmallVector<Value> indices(own.getIndices());
    indices[number] = arith::AddIOp::create(builder, loc, first, further);
    return PartOp::create(builder, loc, own.getTile().getType(), buffer, slot,
                          indices, own.getAxes(), own.getCountsAttr());
  };
  bool inSlots = made.getSlots() == static_cast<uint64_t>(members);
  auto slotOf = [&](Value member) {
    return partOf(scatter.getSource(), member, inSlots ? member : Value());
  };
  auto type = cast<BufferType>(scatter.getSource().getType());
  SmallVector<NamedAttribute> parts(made.getParts().getValue());
  if (!inSlots)
    parts.emplace_back(scatter.getAxisAttr(),
                       builder.getI64IntegerAttr(own.getCounts()[number]));
  auto makeMemory = [&]() -> Value {
    return AllocOp::create(builder, loc, type, 1, made.getPlacement(),
                           builder.getDictionaryAttr(parts));
  };
  Value outgoing = makeMemory(), incoming = makeMemory();
  CopyOp::create(builder, loc, slotOf(rank), scatter.getTarget());
  auto [to, from] = openHops(rank);
  Value leaves = partOf(outgoing, to), comes = partOf(incoming, rank);
  CopyOp::create(builder, loc, slotOf(to), leaves);
  exchange(leaves, to, comes, from);
  AccumulateOp::create(builder, loc, comes, scatter.getTarget());
  finish();
}

namespace {
struct SelectTransport
    : public commir::impl::SelectTransportBase<SelectTransport> {
  using SelectTransportBase::SelectTransportBase;

  void runOnOperation() override {
    for (const std::string &name : transports) {
      if (!llvm::is_contained({"p2p", "collective", "symm", "rma", "sim"},
                              name)) {
        getOperation().emitError()
            << "commir-select-transport: a transport must be p2p, collective, "
               "symm, rma or sim, got '"
            << name << "'";
        return signalPassFailure();
      }
      has.insert(name);
    }
    if (has.contains("rma") == rmaLevels.empty()) {
      getOperation().emitError()
          << "commir-select-transport: the transport rma and rma-levels go "
             "together: name the levels of the one group whose ranks put into "
             "each other's memory";
      return signalPassFailure();
    }
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ExchangeStartOp, AllGatherStartOp, ReduceScatterStartOp,
              AllReduceStartOp, BroadcastStartOp, RedistributeOp, LeaseOpenOp,
              PullStartOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(select(op)))
        return signalPassFailure();
    if (has.contains("rma") && !hasPut) {
      getOperation().emitError()
          << "commir-select-transport: no message of the group of '"
          << llvm::join(rmaLevels, "', '")
          << "' can be a put: its receiver must take it into a whole slot of "
             "the "
             "plan's own memory, the same slot on every rank, and the plan "
             "must "
             "lend none of that memory; do without the transport rma";
      return signalPassFailure();
    }
  }

private:
  void mark(Operation *op, StringRef transport) {
    op->setAttr("commir.transport", StringAttr::get(&getContext(), transport));
    ++numChosen;
  }

  InFlightDiagnostic refuse(Operation *op, StringRef what, StringRef needs) {
    return op->emitOpError()
           << what << ", which needs the transport " << needs
           << "; the target has "
           << (transports.empty() ? "none" : llvm::join(transports, ", "));
  }

  LogicalResult select(Operation *op) {
    auto exchange = dyn_cast<ExchangeStartOp>(op);
    if (exchange && isOfPuts(exchange) && makePut(exchange)) {
      hasPut = true;
      return mark(op, "rma"), success();
    }
    if (has.contains("sim"))
      return mark(op, "sim"), success();
    if (isa<LeaseOpenOp, PullStartOp>(op))
      return selectOneSided(op);
    if (exchange) {
      if (!has.contains("p2p"))
        return refuse(op, "sends messages", "p2p");
      return mark(op, "p2p"), success();
    }
    if (has.contains("collective"))
      return mark(op, "collective"), success();
    if (!has.contains("p2p") || isa<BroadcastStartOp>(op))
      return refuse(op, "is done by a whole group", "collective");
    ++numTakenApart;
    auto group = op->getAttrOfType<ArrayAttr>("group");
    if (auto gather = dyn_cast<AllGatherStartOp>(op))
      return Messages(op, group).expand(gather), success();
    if (auto reduce = dyn_cast<AllReduceStartOp>(op))
      return Messages(op, group).expand(reduce);
    if (auto scatter = dyn_cast<ReduceScatterStartOp>(op))
      return Messages(op, group).expand(scatter), success();
    // Its localization sends message by message.
    return mark(op, "p2p"), success();
  }

  /// Whether an exchange is of the group that puts, in a program that lends
  /// nothing of its own: what peers put into is a library's memory.
  bool isOfPuts(ExchangeStartOp op) {
    auto isLevelOfPuts = [&](Attribute level) {
      return llvm::is_contained(rmaLevels, cast<StringAttr>(level).getValue());
    };
    if (op.getGroup().size() != rmaLevels.size() ||
        !llvm::all_of(op.getGroup(), isLevelOfPuts))
      return false;
    auto walked = op->getParentOfType<ProgramOp>().walk([](LeaseOpenOp lease) {
      bool isOwn = !isa<BlockArgument>(lease.getMemory());
      return isOwn ? WalkResult::interrupt() : WalkResult::advance();
    });
    return !walked.wasInterrupted();
  }

  /// Memory is read only where all ranks of the group are on one machine.
  LogicalResult selectOneSided(Operation *op) {
    if (!has.contains("symm"))
      return refuse(op, "reads the memory of peers", "symm")
             << "; let reads rotate and results be delivered";
    auto open = dyn_cast<LeaseOpenOp>(op);
    if (auto pull = dyn_cast<PullStartOp>(op))
      open = pull.getLease().getDefiningOp<LeaseOpenOp>();
    for (auto level : open.getGroup().getAsRange<StringAttr>())
      if (!localLevels.empty() &&
          !llvm::is_contained(localLevels, level.getValue()))
        return op->emitOpError()
               << "reads the memory of peers on '" << level.getValue()
               << "', whose ranks are not local ("
               << llvm::join(localLevels, ", ")
               << " is); let reads rotate and results be delivered there";
    return mark(op, "symm"), success();
  }

  llvm::StringSet<> has;
  bool hasPut = false;
};
} // namespace
