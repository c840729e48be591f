//===- Transfers.cpp - Both ends of a transfer ----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

Value ProgramLocalizer::getRowBytes(Location loc, TileType type, Value tile,
                                    AxisAttr axis, int64_t &divisor) {
  Value row = constant(type.getElementType().getIntOrFloatBitWidth() / 8);
  for (auto [i, dim] : llvm::enumerate(type.getDims())) {
    if (axis && dim.getAxis() == axis.getName()) {
      divisor = dim.getDivisor();
      continue;
    }
    Value size = builder.fold<memref::DimOp>(loc, tile, constant(i));
    row = builder.fold<arith::MulIOp>(loc, row, size);
  }
  return row;
}

Value ProgramLocalizer::makeLengths(Location loc, int64_t members,
                                    function_ref<Value(Value)> body) {
  auto lengths = memref::AllocaOp::create(
      builder, loc, MemRefType::get({members}, builder.getI64Type()));
  Value zero = constant(0), count = constant(members), one = constant(1);
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value bytes = body(loop.getInductionVar());
  bytes = builder.fold<arith::IndexCastOp>(loc, builder.getI64Type(), bytes);
  memref::StoreOp::create(builder, loc, bytes, lengths, loop.getInductionVar());
  return lengths;
}

/// Both ends size a message from the axis' layout: the lengths of all members'
/// tiles, which differ along the gathered axis only.
LogicalResult ProgramLocalizer::convert(AllGatherStartOp op) {
  if (failed(checkWhole(op, op.getSource())))
    return failure();
  Location loc = op.getLoc();
  AxisAttr axis = op.getAxis() ? program.getAxis(*op.getAxis()) : AxisAttr();
  int64_t members = mesh.getGroupSize(op.getGroup()), divisor = 1;
  auto type = cast<TileType>(op.getSource().getType());
  Value tile = mapping.lookup(op.getSource());
  Value row = getRowBytes(loc, type, tile, axis, divisor);
  Value lengths = makeLengths(loc, members, [&](Value member) -> Value {
    if (!axis)
      return row;
    return mul(layouts.size(axis, Range{member, members}, divisor), row);
  });
  Value token =
      AllGatherStartOp::create(builder, loc, op.getToken().getType(), tile,
                               mapping.lookup(op.getTarget()), lengths,
                               op.getGroupAttr(), op.getAxisAttr());
  mapping.map(op.getToken(), token);
  return success();
}

/// The members' tiles are those around this rank's, as far apart as the levels
/// that cut the axis within theirs have parts.
LogicalResult ProgramLocalizer::convert(ReduceScatterStartOp op) {
  if (failed(checkWhole(op, op.getTarget())))
    return failure();
  Location loc = op.getLoc();
  AxisAttr axis = op.getAxis() ? program.getAxis(*op.getAxis()) : AxisAttr();
  int64_t members = mesh.getGroupSize(op.getGroup()), divisor = 1;
  auto type = cast<TileType>(op.getTarget().getType());
  Value tile = mapping.lookup(op.getTarget());
  Value row = getRowBytes(loc, type, tile, axis, divisor);
  Range own;
  for (auto [dim, extent] :
       llvm::zip_equal(type.getDims(), tiles[op.getTarget()].extents))
    if (axis && dim.getAxis() == axis.getName())
      own = extent.asked;
  if (axis && !own.index)
    return op.emitOpError()
           << "must scatter over the parts of axis '" << axis.getName() << "'";
  Value rank = constant(0);
  for (Attribute level : op.getGroup()) {
    rank = mul(rank, constant(mesh.getLevelSize(cast<StringAttr>(level))));
    rank = add(rank, getCoordinate(op, cast<StringAttr>(level), {}));
  }
  auto stride = op->getAttrOfType<IntegerAttr>("commir.stride");
  Value apart = constant(stride ? stride.getInt() : 1);
  Value lengths = makeLengths(loc, members, [&](Value member) -> Value {
    if (!axis)
      return row;
    Value part = add(sub(own.index, mul(rank, apart)), mul(member, apart));
    return mul(layouts.size(axis, Range{part, own.count}, divisor), row);
  });
  Value token = ReduceScatterStartOp::create(
      builder, loc, op.getToken().getType(), mapping.lookup(op.getSource()),
      tile, lengths, op.getMergeAttr(), op.getGroupAttr(), op.getAxisAttr());
  mapping.map(op.getToken(), token);
  return success();
}

//===----------------------------------------------------------------------===//
// Redistribution
//===----------------------------------------------------------------------===//

/// The levels of the mesh's on which ranks must send: those that cut the source
/// otherwise than the target.
static SmallVector<Attribute> getGroup(ProgramOp program, BufferType type,
                                       PlacementAttr from, PlacementAttr to) {
  MeshOp mesh = program.getMeshOp();
  llvm::SmallDenseSet<StringAttr> moves;
  for (DimAttr dim : type.getDims()) {
    CutAttr before = dim.isConstant() ? CutAttr() : from.getCut(dim.getAxis());
    if (!before)
      continue;
    CutAttr after = to.getCut(dim.getAxis());
    SmallVector<Attribute> factors = getFactors(mesh, before);
    size_t stay = 0;
    // Shards of an outer cut are unions of those of the inner one, so what both
    // begin with stays where it is.
    if (after && before.getLayout() == after.getLayout()) {
      // Striped shards are no such unions.
      SmallVector<Attribute> kept = getFactors(mesh, after);
      Layout::Kind kind =
          (before.getLayout() ? before.getLayout()
                              : program.getAxis(dim.getAxis()).getLayout())
              .getKind();
      bool nests = kind != Layout::Kind::Striped || factors == kept;
      while (nests && stay < std::min(factors.size(), kept.size()) &&
             factors[stay] == kept[stay])
        ++stay;
    }
    for (Attribute factor : ArrayRef(factors).drop_front(stay))
      if (auto level = dyn_cast<StringAttr>(factor))
        moves.insert(level);
  }
  SmallVector<Attribute> group;
  for (auto level : mesh.getLevels().getAsRange<LevelAttr>()) {
    auto name = StringAttr::get(program.getContext(), level.getName());
    if (moves.contains(name))
      group.push_back(name);
  }
  return group;
}

/// For each member of the group in turn: what this rank holds and that one
/// shall hold is packed, sent, and put where it belongs.
LogicalResult ProgramLocalizer::convert(RedistributeOp op) {
  Location loc = op.getLoc();
  const Memory source = memories[op.getSource()];
  const Memory target = memories[op.getTarget()];
  BufferType type = source.type;
  // Of no elements, nothing moves.
  if (llvm::any_of(type.getDims(), [&](DimAttr dim) {
        return (dim.isConstant()
                    ? dim.getValue()
                    : program.getAxis(dim.getAxis()).getExtent()) == 0;
      }))
    return success();
  SmallVector<Attribute> group =
      getGroup(program, type, source.placement, target.placement);
  int64_t members = mesh.getGroupSize(builder.getArrayAttr(group));

  Value rank = constant(0);
  for (Attribute level : group) {
    rank = mul(rank, constant(mesh.getLevelSize(cast<StringAttr>(level))));
    rank = add(rank, getCoordinate(op, cast<StringAttr>(level), {}));
  }
  auto coordinatesOf = [&](Value member) {
    llvm::StringMap<Value> coordinates;
    for (Attribute attribute : llvm::reverse(group)) {
      auto level = cast<StringAttr>(attribute);
      Value size = constant(mesh.getLevelSize(level));
      coordinates[level.getValue()] =
          builder.fold<arith::RemUIOp>(loc, member, size);
      member = builder.fold<arith::DivUIOp>(loc, member, size);
    }
    return coordinates;
  };

  // A box is one interval of the shard of each dimension.
  struct Side {
    Value offset, held;
  };
  struct Box {
    SmallVector<Value> sizes;
    SmallVector<Side> from, to;
  };
  SmallVector<int64_t> largest, fromPieces, toPieces;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant()) {
      largest.push_back(dim.getValue());
      fromPieces.push_back(1);
      toPieces.push_back(1);
      continue;
    }
    int64_t bound = std::numeric_limits<int64_t>::max();
    for (auto [memory, pieces] :
         {std::pair(&source, &fromPieces), {&target, &toPieces}}) {
      Shard shard = getShard(op, memory->placement, dim.getAxis(), {});
      pieces->push_back(getPieces(shard.axis, shard.range));
      if (!isOneInterval(shard.axis) && pieces->back() != 1 &&
          dim.getDivisor() != 1)
        return op.emitOpError()
               << "moves pieces of axis '" << dim.getAxis() << "', of which '"
               << dim.getAxis() << "/" << dim.getDivisor()
               << "' is a dimension; this version does not lower that";
      bound = std::min(
          bound, getLargestSize(shard.axis, shard.range, dim.getDivisor()));
    }
    // Intervals of a divided dimension can share an element, at most as many as
    // it stands for positions: it is then in the box of each two.
    for (int64_t pieces : {fromPieces.back(), toPieces.back()})
      bound *= std::min(pieces, dim.getDivisor());
    largest.push_back(bound);
  }
  // What the rank at `sender` holds of what the one at `receiver` shall.
  auto getBox = [&](const llvm::StringMap<Value> &sender,
                    const llvm::StringMap<Value> &receiver,
                    ArrayRef<Value> fromNumbers, ArrayRef<Value> toNumbers) {
    Box box;
    for (auto [i, dim] : llvm::enumerate(type.getDims())) {
      if (dim.isConstant()) {
        Value size = constant(dim.getValue()), zero = constant(0);
        box.sizes.push_back(size);
        box.from.push_back({zero, size});
        box.to.push_back({zero, size});
        continue;
      }
      int64_t divisor = dim.getDivisor();
      auto find = [&](const Memory &memory, const llvm::StringMap<Value> &at,
                      Value number, Value &held) {
        Shard shard = getShard(op, memory.placement, dim.getAxis(), at);
        held = layouts.size(shard.axis, shard.range, divisor);
        return layouts.piece(shard.axis, shard.range, number, divisor);
      };
      Value fromHeld, toHeld;
      Piece from = find(source, sender, fromNumbers[i], fromHeld);
      Piece to = find(target, receiver, toNumbers[i], toHeld);
      Value begin = builder.fold<arith::MaxSIOp>(loc, from.begin, to.begin);
      Value end = builder.fold<arith::MinSIOp>(loc, from.end, to.end);
      end = builder.fold<arith::MaxSIOp>(loc, begin, end);
      box.sizes.push_back(sub(end, begin));
      box.from.push_back({add(from.local, sub(begin, from.begin)), fromHeld});
      box.to.push_back({add(to.local, sub(begin, to.begin)), toHeld});
    }
    return box;
  };
  auto tileOf = [&](const Memory &memory, const Box &box,
                    ArrayRef<Side> sides) -> Value {
    SmallVector<Value> offsets, held;
    for (const Side &side : sides) {
      offsets.push_back(side.offset);
      held.push_back(side.held);
    }
    Value frame =
        makeView(memory.bytes, constant(0), type.getElementType(), held);
    return makeSubview(frame, offsets, box.sizes);
  };
  // Opens loops over the pieces of each dimension.
  auto openPieces = [&](ArrayRef<int64_t> counts) {
    SmallVector<Value> numbers;
    for (int64_t count : counts)
      numbers.push_back(count == 1 ? constant(0) : openLoop(constant(count)));
    return numbers;
  };

  {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Value> from = openPieces(fromPieces), to = openPieces(toPieces);
    Box mine = getBox({}, {}, from, to);
    CopyOp::create(builder, loc, tileOf(source, mine, mine.from),
                   tileOf(target, mine, mine.to));
  }
  if (members == 1)
    return success();
  auto packed = [&](Value memory, Value shift, const Box &box) {
    return castTile(builder,
                    makeView(memory, shift, type.getElementType(), box.sizes));
  };
  int64_t bytes;
  // One level moves between dimensions: all its ranks deal parts to each other
  // at once. A slot takes all pieces for a member, side by side.
  auto transport = op->getAttrOfType<StringAttr>("commir.transport");
  bool byMessages = transport && transport == "p2p";
  if (group.size() == 1 && !byMessages) {
    FailureOr<Value> outgoing =
        makeBytes(op, largest, type.getElementType(), members, bytes);
    FailureOr<Value> incoming =
        makeBytes(op, largest, type.getElementType(), members, bytes);
    if (failed(outgoing) || failed(incoming))
      return failure();
    auto none = [&](Value) { return constant(0); };
    Value sends = makeLengths(loc, members, none);
    Value receives = makeLengths(loc, members, none);
    Value taken = makeLengths(loc, members, none);
    // Runs `body` on every piece for or from each other member, with where it
    // lies; `lengths` counts the bytes of the pieces so far.
    auto forEachBox = [&](bool sending, Value lengths,
                          function_ref<void(const Box &, Value)> body) {
      OpBuilder::InsertionGuard guard(builder);
      Value hop = add(openLoop(constant(members - 1)), constant(1));
      Value member =
          builder.fold<arith::RemUIOp>(loc, add(rank, hop), constant(members));
      llvm::StringMap<Value> other = coordinatesOf(member);
      SmallVector<Value> from = openPieces(fromPieces),
                         to = openPieces(toPieces);
      Box box =
          sending ? getBox({}, other, from, to) : getBox(other, {}, from, to);
      Value size = constant(type.getElementType().getIntOrFloatBitWidth() / 8);
      for (Value length : box.sizes)
        size = mul(size, length);
      Value before = memref::LoadOp::create(builder, loc, lengths, member);
      before =
          builder.fold<arith::IndexCastOp>(loc, builder.getIndexType(), before);
      body(box, add(mul(member, constant(bytes)), before));
      Value after = builder.fold<arith::IndexCastOp>(loc, builder.getI64Type(),
                                                     add(before, size));
      memref::StoreOp::create(builder, loc, after, lengths, member);
    };
    forEachBox(true, sends, [&](const Box &box, Value shift) {
      CopyOp::create(builder, loc, tileOf(source, box, box.from),
                     packed(*outgoing, shift, box));
    });
    forEachBox(false, receives, [](const Box &, Value) {});
    auto deal = AllToAllStartOp::create(
        builder, loc, TokenType::get(op.getContext()), *outgoing, sends,
        *incoming, receives, builder.getArrayAttr(group));
    if (transport)
      deal->setAttr("commir.transport", transport);
    WaitOp::create(builder, loc, deal.getToken());
    forEachBox(false, taken, [&](const Box &box, Value shift) {
      CopyOp::create(builder, loc, packed(*incoming, shift, box),
                     tileOf(target, box, box.to));
    });
    return success();
  }
  FailureOr<Value> outgoing =
      makeBytes(op, largest, type.getElementType(), 1, bytes);
  FailureOr<Value> incoming =
      makeBytes(op, largest, type.getElementType(), 1, bytes);
  if (failed(outgoing) || failed(incoming))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  Value hop = add(openLoop(constant(members - 1)), constant(1));
  Value count = constant(members);
  auto wrap = [&](Value member) -> Value {
    return builder.fold<arith::RemUIOp>(loc, member, count);
  };
  Value to = wrap(add(rank, hop));
  Value from = wrap(sub(add(rank, count), hop));
  llvm::StringMap<Value> receiver = coordinatesOf(to);
  llvm::StringMap<Value> sender = coordinatesOf(from);
  SmallVector<Value> fromNumbers = openPieces(fromPieces);
  SmallVector<Value> toNumbers = openPieces(toPieces);
  Box leaves = getBox({}, receiver, fromNumbers, toNumbers);
  Box arrives = getBox(sender, {}, fromNumbers, toNumbers);
  Value out = packed(*outgoing, constant(0), leaves);
  Value in = packed(*incoming, constant(0), arrives);
  CopyOp::create(builder, loc, tileOf(source, leaves, leaves.from), out);
  Value always = builder.constant(loc, builder.getBoolAttr(true));
  auto start = ExchangeStartOp::create(
      builder, loc, TokenType::get(op.getContext()), out, to, in, from,
      builder.getArrayAttr(group), always);
  // Messages are all that it takes.
  if (transport)
    start->setAttr("commir.transport",
                   builder.getStringAttr(transport == "sim" ? "sim" : "p2p"));
  WaitOp::create(builder, loc, start.getToken());
  CopyOp::create(builder, loc, in, tileOf(target, arrives, arrives.to));
  return success();
}
