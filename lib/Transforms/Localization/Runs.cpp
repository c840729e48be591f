//===- Runs.cpp - Launches on runs of pieces ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch that was found to see the same takes runs of pieces; see Runs.h.
// What it overwrites and leaves out becomes the merge's identity, unless what
// reads it leaves that out, too: a merge of what the steps of a ring made
// takes, of each piece, the slots of those steps that made it.
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Transforms/Localization/ProgramLocalizer.h"

using namespace mlir;
using namespace mlir::commir;

static ArrayRef<DimAttr> getDims(Value tile) {
  return cast<TileType>(tile.getType()).getDims();
}

SmallVector<Value> ProgramLocalizer::getTilesOf(LaunchOp op) {
  SmallVector<Value> operands(op.getInputs());
  llvm::append_range(operands, op.getOutputs());
  return operands;
}

ProgramLocalizer::Range ProgramLocalizer::findAsked(ArrayRef<Value> operands,
                                                    StringRef axis) {
  for (Value tile : operands)
    for (auto [dim, extent] :
         llvm::zip_equal(getDims(tile), tiles.lookup(tile).extents))
      if (!dim.isConstant() && dim.getAxis() == axis)
        return extent.asked;
  return {};
}

bool ProgramLocalizer::lieTogether(ArrayRef<Value> operands) {
  return llvm::all_of(operands, [&](Value operand) {
    return llvm::none_of(tiles.lookup(operand).extents,
                         [](const Extent &extent) { return extent.inPieces; });
  });
}

Value ProgramLocalizer::takeRun(Value operand, ArrayRef<AxisRun> runs) {
  const Tile &tile = tiles[operand];
  SmallVector<Value> offsets, sizes;
  for (auto [dim, extent] : llvm::zip_equal(getDims(operand), tile.extents)) {
    Value offset = extent.offset, size = extent.size;
    for (const auto &[axis, run] : runs)
      if (!dim.isConstant() && dim.getAxis() == axis) {
        offset = add(offset, run.local);
        size = run.size;
      }
    offsets.push_back(offset);
    sizes.push_back(size);
  }
  return takeSlab(tile, offsets, sizes);
}

void ProgramLocalizer::launchRuns(LaunchOp op, const AxisRun &queries,
                                  const AxisRun &keys, MaskAttr mask,
                                  DenseBoolArrayAttr overwrite) {
  SmallVector<Value> taken, at;
  for (Value operand : getTilesOf(op))
    taken.push_back(takeRun(operand, {queries, keys}));
  for (auto [letter, position] : llvm::zip(
           KernelSignature::positions(op.getKernel()), op.getPositions())) {
    if (letter.letter == "sq" || letter.letter == "sk") {
      at.push_back((letter.letter == "sq" ? queries : keys).run.begin);
      continue;
    }
    auto found = positions.find(position);
    at.push_back(found == positions.end()
                     ? mapping.lookup(position)
                     : layouts.begin(found->second.axis, found->second.range,
                                     found->second.divisor));
  }
  ValueRange all(taken);
  Value scratch = op.getScratch() ? mapping.lookup(op.getScratch()) : Value();
  LaunchOp::create(builder, op.getLoc(), op.getKernelAttr(),
                   all.take_front(op.getInputs().size()),
                   all.drop_front(op.getInputs().size()), at, mask,
                   op.getScaleAttr(), op.getGroupAttr(), op.getImplAttr(),
                   scratch, overwrite);
}

void ProgramLocalizer::forEachOverwritten(
    LaunchOp op, function_ref<void(Value, FloatAttr)> body) {
  auto leavesOut = op->getAttrOfType<DenseBoolArrayAttr>("commir.leaves_out");
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    if (op.overwrites(i) && !tiles[output].empty &&
        !(leavesOut && leavesOut[i]))
      body(output, builder.getF64FloatAttr(
                       KernelSignature::getIdentity(op.getKernel(), i)));
}

void ProgramLocalizer::whenSome(Value size, function_ref<void()> body) {
  Location loc = program.getLoc();
  Value some = builder.fold<arith::CmpIOp>(loc, arith::CmpIPredicate::sgt, size,
                                           constant(0));
  auto branch = scf::IfOp::create(builder, loc, some, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Launches on those pieces that see one another.
std::pair<RunBuilder::Run, RunBuilder::Run>
ProgramLocalizer::launchPieces(LaunchOp op, const Shard &queries,
                               const Shard &keys) {
  RunBuilder runs{builder, op.getLoc()};
  auto getPieces = [&](const Shard &shard) {
    SmallVector<Piece> pieces;
    for (int64_t i = 0, e = commir::getPieces(shard.axis, shard.range); i < e;
         ++i)
      pieces.push_back(layouts.piece(shard.axis, shard.range, constant(i)));
    return pieces;
  };
  SmallVector<Piece> rows = getPieces(queries), columns = getPieces(keys);
  SmallVector<Value> rowsNeeded(rows.size()), columnsNeeded(columns.size());
  auto orElse = [&](Value &held, Value value) {
    held = held ? builder.fold<arith::OrIOp>(op.getLoc(), held, value) : value;
  };
  for (auto [i, row] : llvm::enumerate(rows)) {
    for (auto [j, column] : llvm::enumerate(columns)) {
      Value seen = runs.sees(*op.getMask(), row, column);
      orElse(rowsNeeded[i], seen);
      orElse(columnsNeeded[j], seen);
    }
  }
  std::pair<RunBuilder::Run, RunBuilder::Run> taken{
      runs.getRun(rows, rowsNeeded), runs.getRun(columns, columnsNeeded)};
  launchRuns(op, {queries.axis.getName(), taken.first},
             {keys.axis.getName(), taken.second}, *op.getMask(),
             op.getOverwriteAttr());
  return taken;
}

std::pair<RunBuilder::Run, RunBuilder::Run>
ProgramLocalizer::launchBand(LaunchOp op, MaskAttr within, const Shard &queries,
                             RunBuilder::Span queryNumbers, const Shard &keys,
                             RunBuilder::Span keyNumbers,
                             DenseBoolArrayAttr overwrite) {
  RunBuilder::Band band = RunBuilder{builder, op.getLoc()}.getBand(
      within, queries.range, queryNumbers, keys.range, keyNumbers);
  auto launch = [&](const RunBuilder::Launch &taken) {
    launchRuns(op, {queries.axis.getName(), taken.queries},
               {keys.axis.getName(), taken.keys}, taken.mask, overwrite);
  };
  const auto &[rows, columns, mask] = band.wide;
  std::pair<RunBuilder::Run, RunBuilder::Run> taken{rows, columns};
  if (!band.isWide) {
    launch(band.wide);
    return taken;
  }
  auto branch = scf::IfOp::create(builder, op.getLoc(), band.isWide,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  launch(band.wide);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (band.narrow)
    launch(*band.narrow);
  else if (overwrite)
    forEachOverwritten(op, [&](Value output, FloatAttr identity) {
      Value tile = takeRun(output, {{queries.axis.getName(), rows},
                                    {keys.axis.getName(), columns}});
      FillOp::create(builder, op.getLoc(), tile, identity);
    });
  return taken;
}

LogicalResult ProgramLocalizer::convertJoined(LaunchOp op, StringRef queryAxis,
                                              StringRef keyAxis) {
  SmallVector<Value> operands = getTilesOf(op);
  if (!lieTogether(operands))
    return op.emitOpError() << "takes its pieces together, which do not lie "
                               "together in memory";
  Shard queries{program.getAxis(queryAxis), findAsked(operands, queryAxis)};
  Shard keys{program.getAxis(keyAxis), findAsked(operands, keyAxis)};
  auto getAll = [&](const Shard &shard) -> RunBuilder::Span {
    return {constant(0), layouts.size(shard.axis, shard.range)};
  };
  auto [rows, columns] =
      isDealtOneByOne(queries.axis)
          ? launchBand(op, *op.getMask(), queries, getAll(queries), keys,
                       getAll(keys), op.getOverwriteAttr())
          : launchPieces(op, queries, keys);
  forEachOverwritten(op, [&](Value output, FloatAttr identity) {
    auto fillRest = [&](StringRef axis, Value begin, Value end) {
      RunBuilder::Run rest{{}, begin, sub(end, begin)};
      whenSome(rest.size, [&] {
        Value tile = takeRun(output, {{axis, rest}});
        FillOp::create(builder, op.getLoc(), tile, identity);
      });
    };
    for (const auto &[shard, run] :
         {std::pair(queries, rows), std::pair(keys, columns)}) {
      StringRef axis = shard.axis.getName();
      if (llvm::none_of(getDims(output), [&](DimAttr dim) {
            return !dim.isConstant() && dim.getAxis() == axis;
          }))
        continue;
      fillRest(axis, constant(0), run.local);
      fillRest(axis, add(run.local, run.size), getAll(shard).end);
    }
  });
  return success();
}

LogicalResult ProgramLocalizer::convertMergeOfPieces(LaunchOp op,
                                                     DictionaryAttr madeBy) {
  Location loc = op.getLoc();
  auto number = [&](StringRef name) {
    return madeBy.getAs<IntegerAttr>(name).getInt();
  };
  auto mask = madeBy.getAs<MaskAttr>("mask");
  bool isOfQueries = madeBy.getAs<BoolAttr>("queries").getValue();
  StringRef stays = madeBy.getAs<StringAttr>("stays").getValue();
  AxisAttr own = program.getAxis(stays);
  AxisAttr moves =
      program.getAxis(madeBy.getAs<StringAttr>("moves").getValue());
  int64_t parts = number("parts"), home = number("home");
  SmallVector<Value> stacks(op.getInputs()), sums(op.getOutputs());
  Range asked = findAsked(sums, stays);
  SmallVector<Piece> pieces;
  for (int64_t i = 0, e = getPieces(own, asked); i < e; ++i)
    pieces.push_back(layouts.piece(own, asked, constant(i)));
  Value slots = tiles[op.getInputs()[0]].extents.front().size;
  RunBuilder runs{builder, loc};
  auto choose = [&](Value condition, Value value, Value other) -> Value {
    return builder.fold<arith::SelectOp>(loc, condition, value, other);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a,
                     Value b) -> Value {
    return builder.fold<arith::CmpIOp>(loc, predicate, a, b);
  };
  // For each piece the first slot that has it, then how many do.
  SmallVector<Value> none(2 * pieces.size(), constant(0));
  auto count =
      scf::ForOp::create(builder, loc, constant(0), slots, constant(1), none);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(count.getBody());
    Value slot = count.getInductionVar();
    Value step =
        choose(compare(arith::CmpIPredicate::sge, slot, constant(home)),
               add(slot, constant(1)), slot);
    Value ahead =
        number("direction") == 1 ? step : sub(constant(2 * parts), step);
    Value phase = mapping.lookup(op.getPositions()[0]);
    Value part =
        builder.fold<arith::RemUIOp>(loc, add(ahead, phase), constant(parts));
    Range other{part, parts};
    SmallVector<Value> needed(pieces.size());
    for (int64_t j = 0, e = getPieces(moves, other); j < e; ++j) {
      Piece seen = layouts.piece(moves, other, constant(j));
      for (auto [i, piece] : llvm::enumerate(pieces)) {
        Value sees = isOfQueries ? runs.sees(mask, piece, seen)
                                 : runs.sees(mask, seen, piece);
        needed[i] =
            j == 0 ? sees : builder.fold<arith::OrIOp>(loc, needed[i], sees);
      }
    }
    // What lies between two that are needed is made, too.
    SmallVector<Value> from(needed), to(needed), next;
    for (size_t i = 1; i < pieces.size(); ++i) {
      from[i] = builder.fold<arith::OrIOp>(loc, from[i - 1], needed[i]);
      size_t back = pieces.size() - 1 - i;
      to[back] = builder.fold<arith::OrIOp>(loc, to[back + 1], needed[back]);
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      Value made = builder.fold<arith::AndIOp>(loc, from[i], to[i]);
      Value first = count.getRegionIterArg(2 * i);
      Value sofar = count.getRegionIterArg(2 * i + 1);
      Value isFirst = builder.fold<arith::AndIOp>(
          loc, made, compare(arith::CmpIPredicate::eq, sofar, constant(0)));
      next.push_back(choose(isFirst, slot, first));
      next.push_back(choose(made, add(sofar, constant(1)), sofar));
    }
    scf::YieldOp::create(builder, loc, next);
  }
  auto emit = [&](Value offset, Value size, Value first, Value several) {
    SmallVector<Value> operands;
    for (Value operand : llvm::concat<const Value>(stacks, sums)) {
      const Tile &tile = tiles[operand];
      bool isStack = operands.size() < stacks.size();
      SmallVector<Value> offsets, sizes;
      for (auto [i, dim] : llvm::enumerate(getDims(operand))) {
        const Extent &extent = tile.extents[i];
        bool isSlot = isStack && i == 0;
        bool isRows = !dim.isConstant() && dim.getAxis() == stays;
        offsets.push_back(isSlot   ? first
                          : isRows ? add(extent.offset, offset)
                                   : extent.offset);
        sizes.push_back(isSlot ? several : isRows ? size : extent.size);
      }
      operands.push_back(takeSlab(tile, offsets, sizes));
    }
    ValueRange all(operands);
    auto merge = LaunchOp::create(builder, loc, op.getKernelAttr(),
                                  all.take_front(stacks.size()),
                                  all.drop_front(stacks.size()));
    if (op.getOverwriteAttr())
      merge.setOverwriteAttr(op.getOverwriteAttr());
  };
  // One merge where all pieces are of the same slots; none where they have
  // none.
  Value same = builder.constant(loc, builder.getBoolAttr(true));
  for (size_t i = 2; i < count.getNumResults(); ++i)
    same = builder.fold<arith::AndIOp>(loc, same,
                                       compare(arith::CmpIPredicate::eq,
                                               count.getResult(i),
                                               count.getResult(i % 2)));
  auto branch = scf::IfOp::create(builder, loc, same, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  auto emitPiece = [&](Value offset, Value size, size_t piece) {
    Value several = count.getResult(2 * piece + 1);
    whenSome(several,
             [&] { emit(offset, size, count.getResult(2 * piece), several); });
  };
  builder.setInsertionPointToStart(branch.thenBlock());
  emitPiece(constant(0), layouts.size(own, asked), 0);
  builder.setInsertionPointToStart(branch.elseBlock());
  for (auto [i, piece] : llvm::enumerate(pieces))
    emitPiece(piece.local, sub(piece.end, piece.begin), i);
  return success();
}
