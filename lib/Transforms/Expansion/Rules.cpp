//===- Rules.cpp - Which rule a buffer needs ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// Whether a rank's shard holds what its iterations touch: the cut is that of
/// the outermost loops over the axis, in their order.
bool NestSchedule::followsLoops(CutAttr cut) {
  SmallVector<Attribute> held = getFactors(mesh, cut);
  SmallVector<Attribute> walked = getLoopFactors(program, nest, cut.getAxis());
  // Where several terms add, each buffer is cut by one of them.
  for (LoopAttr loop : loops)
    if (loop.isOver(cut.getAxis()) && getTerms(loop) > 1)
      llvm::erase_if(walked, [&](Attribute factor) {
        auto level = dyn_cast<StringAttr>(factor);
        return level &&
               llvm::is_contained(loop.getShift().getLevels(), level) &&
               !llvm::is_contained(held, factor);
      });
  // A rank starts with parts that are its own, and no others: one part of an
  // outer loop, and on one level.
  for (LoopAttr loop : loops) {
    if (!loop.isOver(cut.getAxis()))
      continue;
    SmallVector<StringAttr> levels(
        llvm::make_filter_range(getRingLevels(loop), [&](StringAttr level) {
          return llvm::is_contained(held, level);
        }));
    bool isSeveral =
        !levels.empty() && loop.getParts() != mesh.getLevelSize(levels.front());
    if (levels.size() > 1 || (isSeveral && held.back() != levels.front()) ||
        (isSeveral && isStriped(cut.getAxis()) && getTerms(loop) > 1))
      return false;
  }
  // A striped shard is no union of finer ones.
  if (isStriped(cut.getAxis()))
    return held == walked;
  return held.size() <= walked.size() &&
         ArrayRef(walked).take_front(held.size()) == ArrayRef(held);
}

bool mlir::commir::cutsGroups(AxisAttr axis, int64_t parts, int64_t divisor) {
  if (divisor == 1)
    return false;
  Layout layout = axis.getLayout().getLayout();
  for (int64_t part = 0; part < parts; ++part)
    for (Interval i : layout.shard(axis.getExtent(), parts, part))
      if (i.begin % divisor != 0 || i.end % divisor != 0)
        return true;
  return false;
}

bool mlir::commir::cutsGroups(ProgramOp program, ForOp nest, DimAttr dim) {
  if (dim.isConstant())
    return false;
  int64_t parts = nest.getParts(dim.getAxis());
  // Chunks of what moves are parts, too.
  for (LoopAttr loop : nest.getLoops().getAsRange<LoopAttr>())
    if (loop.getShift() && loop.isOver(dim.getAxis()))
      parts *= loop.getShift().getChunks();
  return cutsGroups(program.getAxis(dim.getAxis()), parts, dim.getDivisor());
}

/// Whether parts of a loop over `axis` make partial results of one position:
/// its buffers lack the axis, or have it divided and a cut falls within a
/// group.
bool NestSchedule::isReducedOver(StoreOp store, StringAttr axis) {
  if (!store.getOver() || !llvm::is_contained(*store.getOver(), axis))
    return false;
  return llvm::any_of(store.getBuffers(), [&](Value buffer) {
    auto type = cast<BufferType>(buffer.getType());
    return !type.hasAxis(axis) ||
           llvm::any_of(type.getDims(), [&](DimAttr dim) {
             return dim.getAxis() == axis.getValue() &&
                    cutsGroups(program, nest, dim);
           });
  });
}

/// Two parts of `axis / n` share a position when a cut falls within a group.
/// That is right for what is read beside the whole axis (grouped heads), and
/// for a result that is reduced over the groups. It counts twice in another
/// result and in a sum.
LogicalResult NestSchedule::checkDivided(StoreOp store) {
  auto refuse = [&](DimAttr dim) {
    return needsRule(
        "R8", "axis '" + dim.getAxis() + "' is cut within the groups of '" +
                  dim.getAxis() + "/" + Twine(dim.getDivisor()) +
                  "'; cut it at multiples of " + Twine(dim.getDivisor()));
  };
  auto isReduced = [&](DimAttr dim) {
    return !dim.isConstant() &&
           isReducedOver(store,
                         StringAttr::get(nest.getContext(), dim.getAxis()));
  };
  for (Value buffer : store.getBuffers())
    for (DimAttr dim : cast<BufferType>(buffer.getType()).getDims())
      if (cutsGroups(program, nest, dim) && !isReduced(dim))
        return refuse(dim);
  for (Value tile : store.getTiles()) {
    auto kernel = tile.getDefiningOp<KernelOp>();
    for (Value input : kernel.getInputs())
      for (DimAttr dim : cast<TileType>(input.getType()).getDims())
        if (isReduced(dim) && cutsGroups(program, nest, dim) &&
            dim.getDivisor() == getFinestDivisor(kernel, dim.getAxis()))
          return refuse(dim);
  }
  return success();
}

/// A result that a parallel loop reduces needs its ranks to merge.
LogicalResult NestSchedule::checkStores() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    for (Value tile : store.getTiles())
      if (!tile.getDefiningOp<KernelOp>())
        return store.emitOpError()
               << "stores a tile that no kernel makes, which this version does "
                  "not lower yet; store what a kernel gives";
    if (failed(checkDivided(store)))
      return failure();
  }
  return success();
}

/// Whether the loops and the rules of reduction make the shard of an output
/// that each rank owns, all of it and no more.
bool NestSchedule::isMadeInPlace(StoreOp store, int64_t buffer) {
  PlacementAttr inside = getInside(buffer);
  SmallVector<StringAttr> reduced = getReducedLevels(store);
  PlacementAttr partial = getPartialPlacement(store, inside);
  for (CutAttr cut : inside.getCuts()) {
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      // R6: the sum comes along the ring.
      if (llvm::any_of(loops, [&](LoopAttr loop) {
            return loop.isOver(cut.getAxis()) && travels(store, loop) &&
                   getRingLevels(loop).front() == level;
          }))
        continue;
      // R5: the ranks of the level share the sum out, where it lies together;
      // a striped shard is no union of finer ones.
      if (!llvm::is_contained(reduced, level) ||
          llvm::any_of(getFactors(mesh, cut), llvm::IsaPred<IntegerAttr>) ||
          (isStriped(cut.getAxis()) && partial.getCut(cut.getAxis())))
        return false;
    }
    CutAttr made = partial.getCut(cut.getAxis());
    if (made && !followsLoops(made))
      return false;
  }
  for (DimAttr dim : program.getBufferType(buffer).getDims())
    for (auto level : mesh.getLevels().getAsRange<LevelAttr>())
      if (!dim.isConstant() && level.getSize() != 1 &&
          isParallelOver(dim.getAxis(), level.getName()) &&
          !inside.hasLevel(level.getName()) &&
          !llvm::is_contained(
              reduced, StringAttr::get(nest.getContext(), level.getName())))
        return false;
  return isSamePlacement(program, getMergedPlacement(store, inside), inside);
}

/// Bounds that are given for chunks may not name the parts of the loops, where
/// R8 moves a buffer.
LogicalResult NestExpander::checkTouched(int64_t buffer) {
  for (CutAttr cut : touched.lookup(buffer).getCuts()) {
    AxisAttr axis = program.getAxis(cut.getAxis());
    std::string why = axis.getLayout().getLayout().whyNot(
        axis.getExtent(), countParts(cut.getFactors()));
    if (!why.empty())
      return nest.emitOpError()
             << "uses '" << getName(buffer) << "' in the parts of its loops "
             << "over '" << axis.getName() << "', but " << why << "; give '"
             << axis.getName() << "' bounds for these parts";
  }
  return success();
}

/// R8: results that no rule makes in place are made where the loops do, and
/// moved to where they belong at the end.
LogicalResult NestExpander::placeOutputs() {
  for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
    bool inPlace = llvm::all_of(store.getBuffers(), [&](Value buffer) {
      return isMadeInPlace(store, cast<BlockArgument>(buffer).getArgNumber());
    });
    // Several results merge together: all or none are shared out over a level,
    // and wait for the same levels after it.
    for (StringAttr level : getReducedLevels(store))
      inPlace &= llvm::all_equal(
          llvm::map_range(store.getBuffers(), [&](Value buffer) {
            PlacementAttr inside =
                getInside(cast<BlockArgument>(buffer).getArgNumber());
            return std::make_pair(inside.hasLevel(level),
                                  getPendingLevels(store, inside, level));
          }));
    if (inPlace) {
      shareBeforeGathering(store);
      continue;
    }
    // What travels goes on doing so, to the ranks that own it along the rings.
    auto place = [&](Value buffer) {
      SmallVector<LoopAttr> moving(llvm::make_filter_range(
          loops, [&](LoopAttr loop) { return travels(store, loop); }));
      return getPartialPlacement(
          store,
          getTouchedPlacement(cast<BufferType>(buffer.getType()), moving));
    };
    for (LoopAttr loop : loops) {
      if (!travels(store, loop))
        continue;
      StringAttr axis = loop.getAxes().front();
      bool isWhole = llvm::all_of(store.getBuffers(), [&](Value buffer) {
        CutAttr cut = place(buffer).getCut(axis);
        return !cut || isOpenAround(loop, axis, getFactors(mesh, cut));
      });
      if (!isWhole && failed(keepBack(store, loop,
                                      "a part of axis '" + axis.getValue() +
                                          "' is in pieces")))
        return failure();
    }
    for (Value buffer : store.getBuffers()) {
      int64_t number = cast<BlockArgument>(buffer).getArgNumber();
      touched[number] = place(buffer);
      if (failed(checkTouched(number)))
        return failure();
    }
    shareBeforeGathering(store);
  }
  return success();
}

/// Whether the ranks of some levels, to which parts come along a loop, are at
/// different slices of what moves: a loop around it, over another axis of that,
/// is shifted over the same ranks.
bool NestSchedule::movesUnlikeSlices(LoopAttr ring, BufferType type,
                                     ArrayRef<StringAttr> levels) {
  auto around =
      ArrayRef(loops).take_while([&](LoopAttr outer) { return outer != ring; });
  return llvm::any_of(around, [&](LoopAttr outer) {
    return outer.getShift() && outer.getParts() != 1 &&
           outer.getAxes() != ring.getAxes() &&
           llvm::any_of(outer.getAxes(),
                        [&](StringAttr axis) { return type.hasAxis(axis); }) &&
           llvm::any_of(levels, [&](StringAttr level) {
             return llvm::is_contained(outer.getShift().getLevels(), level);
           });
  });
}

/// The rule that brings an input to the ranks that use it.
NestSchedule::Movement NestSchedule::findMovement(int64_t buffer) {
  Movement movement;
  BufferType type = program.getBufferType(buffer);
  bool exchanges = false;
  for (CutAttr cut : getInside(buffer).getCuts()) {
    SmallVector<StringAttr> foreign;
    SmallVector<LoopAttr> shifted;
    for (Attribute factor : getFactors(mesh, cut)) {
      auto level = dyn_cast<StringAttr>(factor);
      // R1: the loop over the axis runs in parallel on the level.
      if (!level || isParallelOver(cut.getAxis(), level))
        continue;
      foreign.push_back(level);
      for (LoopAttr loop : loops)
        if (loop.isOver(cut.getAxis()) && loop.getShift() &&
            llvm::is_contained(loop.getShift().getLevels(), level))
          shifted.push_back(loop);
    }
    // Levels of one rank cut nothing.
    if (foreign.empty() && (getFactors(mesh, cut).empty() || followsLoops(cut)))
      continue;
    bool follows = llvm::none_of(foreign, [&](StringAttr level) {
      return llvm::any_of(type.getDims(), [&](DimAttr dim) {
        return !dim.isConstant() && isParallelOver(dim.getAxis(), level);
      });
    });
    bool first = !movement.cut;
    movement.cut = cut;
    movement.rings = shifted;
    // R3, R9: each level has its own ring. R2: all of the cut is gathered. R8:
    // anything else.
    bool rotates =
        shifted.size() == foreign.size() && followsLoops(cut) &&
        llvm::all_of(shifted, [&](LoopAttr loop) {
          return isOpenAround(loop, cut.getAxis(), getFactors(mesh, cut));
        });
    bool gathers = shifted.empty() && isInMeshOrder(foreign) &&
                   foreign.size() == getFactors(mesh, cut).size();
    exchanges |= !first || !follows || !(rotates || gathers);
  }
  // Of loops that pull, the innermost has a ring over the levels of all.
  SmallVector<StringAttr> levels;
  for (const Move &move : findMoves(buffer, movement)) {
    levels.push_back(move.level);
    if (!move.hasRing)
      continue;
    exchanges |= movesUnlikeSlices(move.loop, type, levels);
    levels.clear();
  }
  if (exchanges)
    movement = {{}, {}, /*exchanges=*/true};
  return movement;
}

/// Whether the ranks of a cut over these levels are those of their group.
bool NestSchedule::isInMeshOrder(ArrayRef<StringAttr> levels) {
  return llvm::is_sorted(levels, [&](StringAttr a, StringAttr b) {
    return mesh.getLevelNumber(a) < mesh.getLevelNumber(b);
  });
}

/// Where an input is needed that only enters results once, when they are whole:
/// cut as they are. Null where the loops need it as well.
PlacementAttr NestSchedule::getPlacementBesideResult(int64_t buffer) {
  Value argument = program.getBody().getArgument(buffer);
  StoreOp beside;
  for (LoadOp load : nest.getBody().getOps<LoadOp>()) {
    if (load.getBuffer() != argument)
      continue;
    for (Operation *user : load->getUsers()) {
      auto kernel = dyn_cast<KernelOp>(user);
      if (!kernel || !entersOnce(kernel))
        return {};
      for (Operation *taker : kernel->getUsers())
        beside = cast<StoreOp>(taker);
    }
  }
  if (!beside)
    return {};
  int64_t result =
      cast<BlockArgument>(beside.getBuffers().front()).getArgNumber();
  SmallVector<CutAttr> cuts;
  for (DimAttr dim : program.getBufferType(buffer).getDims())
    if (!dim.isConstant())
      if (CutAttr cut = getInside(result).getCut(dim.getAxis()))
        cuts.push_back(cut);
  return PlacementAttr::get(nest.getContext(), cuts);
}

LogicalResult NestExpander::placeInput(int64_t buffer) {
  BindingAttr binding = program.getBinding(buffer);
  Value argument = program.getBody().getArgument(buffer);
  memory[argument] = argument;
  if (PlacementAttr beside = getPlacementBesideResult(buffer)) {
    touched[buffer] = beside;
    remarkBroadcast(buffer, "it enters results once, when these are whole");
    if (!isSamePlacement(program, binding.getBoundary(), beside))
      memory[argument] = reshardInput(argument, beside);
    return success();
  }
  Movement movement = findMovement(buffer);
  PlacementAttr inside = binding.getInside();
  if (movement.exchanges) {
    BufferType type = program.getBufferType(buffer);
    touched[buffer] = inside = getTouchedPlacement(type);
    if (failed(checkTouched(buffer)))
      return failure();
    remarkBroadcast(buffer, "no loop walks its placement");
    // A schedule that asked for one part a step is told what it gets.
    for (DimAttr dim : type.getDims())
      if (!dim.isConstant() && llvm::any_of(loops, [&](LoopAttr loop) {
            return loop.isOver(dim.getAxis()) && loop.getShift();
          }))
        nest.emitRemark() << "'" << getName(buffer)
                          << "' is exchanged whole before the loops (R8): no "
                             "ring over '"
                          << dim.getAxis() << "' serves its placement";
  }
  bool stays = isSamePlacement(program, binding.getBoundary(), inside);
  if (!stays && (movement.exchanges || !movement.cut) &&
      addExchangedInput(buffer, inside))
    return success();
  if (!stays)
    memory[argument] = reshardInput(argument, inside);
  if (movement.exchanges || !movement.cut)
    return success();
  if (!movement.rings.empty())
    return addToRings(buffer, movement);
  StringAttr axis = builder.getStringAttr(movement.cut.getAxis());
  if (llvm::is_contained(binding.getBroadcast(), axis))
    if (LoopAttr loop = findPanelLoop(buffer, movement.cut)) {
      addPanels(buffer, movement.cut, loop);
      return success();
    }
  return gather(buffer, movement.cut);
}
