//===- Reshard.cpp - Rule R7: from one placement to another ---------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Placement.h"
#include "lib/Transforms/Expansion/NestExpander.h"

using namespace mlir;
using namespace mlir::commir;

/// The levels that cut an axis, outermost first. Nullopt when the axis is cut
/// inside a rank as well, or in another layout than its own.
static std::optional<SmallVector<StringAttr>>
getCutLevels(ProgramOp program, PlacementAttr placement, StringRef axis) {
  SmallVector<StringAttr> levels;
  CutAttr cut = placement.getCut(axis);
  if (!cut)
    return levels;
  if (cut.getLayout() && cut.getLayout() != program.getAxis(axis).getLayout())
    return std::nullopt;
  for (Attribute factor : getFactors(program.getMeshOp(), cut)) {
    if (!isa<StringAttr>(factor))
      return std::nullopt;
    levels.push_back(cast<StringAttr>(factor));
  }
  return levels;
}

/// The one level that moves between two placements, as the axis it cuts before
/// and after; null where it cuts none.
namespace {
struct Move {
  StringAttr level;
  StringRef from, to;
};
} // namespace

/// Finds the only difference of two placements; nullopt when there are more, or
/// the level is not the innermost of its axis.
static std::optional<Move> findMove(ProgramOp program, BufferType type,
                                    PlacementAttr from, PlacementAttr to) {
  Move move;
  for (DimAttr dim : type.getDims()) {
    if (dim.isConstant())
      continue;
    auto before = getCutLevels(program, from, dim.getAxis());
    auto after = getCutLevels(program, to, dim.getAxis());
    if (!before || !after)
      return std::nullopt;
    if (*before == *after)
      continue;
    bool leaves = before->size() > after->size();
    StringAttr level = leaves ? before->pop_back_val() : after->pop_back_val();
    StringRef &axis = leaves ? move.from : move.to;
    if (*before != *after || !axis.empty() ||
        (move.level && move.level != level))
      return std::nullopt;
    move.level = level;
    axis = dim.getAxis();
  }
  return move;
}

/// `[i -> gpu]` of the text of a placement.
static StringRef brackets(StringRef text) {
  return text.slice(text.find('['), text.rfind(']') + 1);
}

/// Gives a buffer another placement, in `target` or in memory of its own.
FailureOr<Value> NestExpander::reshard(StringRef name, Value source,
                                       PlacementAttr from, PlacementAttr to,
                                       Value target) {
  auto type = cast<BufferType>(source.getType());
  std::optional<Move> move = findMove(program, type, from, to);
  if (!move || !move->level) {
    std::string before, after;
    llvm::raw_string_ostream(before) << from;
    llvm::raw_string_ostream(after) << to;
    return needsRule("R8", "'" + name + "' moves from " + brackets(before) +
                               " to " + brackets(after));
  }
  Location loc = nest.getLoc();
  if (!target)
    target = makeMemory(type, 1, to);
  Value rank = getRank(move->level);
  SmallVector<StringAttr> sendLevels, receiveLevels;
  if (!move->from.empty())
    sendLevels = *getCutLevels(program, from, move->from);
  if (!move->to.empty())
    receiveLevels = *getCutLevels(program, to, move->to);

  // The box of the buffer that belongs to `before` in the old placement and to
  // `after` in the new one.
  auto tileAt = [&](Value memory, Value before, Value after) {
    SmallVector<std::pair<StringRef, Part>> at;
    if (!move->from.empty())
      at.emplace_back(move->from, getPart(sendLevels, move->level, before));
    if (!move->to.empty())
      at.emplace_back(move->to, getPart(receiveLevels, move->level, after));
    return getTileAt(memory, at);
  };
  auto copy = [&](Value from, Value to) {
    CopyOp::create(builder, loc, from, to);
  };
  Value mine = tileAt(source, rank, rank);
  copy(mine, tileAt(target, rank, rank));
  // A whole copy on each rank: all that is needed is there.
  if (move->from.empty())
    return target;

  SmallVector<NamedAttribute> boxes;
  for (auto [axis, levels] : {std::pair(move->from, ArrayRef(sendLevels)),
                              std::pair(move->to, ArrayRef(receiveLevels))})
    if (!axis.empty())
      boxes.emplace_back(builder.getStringAttr(axis),
                         builder.getI64IntegerAttr(getRanks(levels)));
  PlacementAttr others = dropCuts(from, {move->from, move->to});
  Value outgoing = makeMemory(type, 1, others, boxes);
  Value incoming = makeMemory(type, 1, others, boxes);
  forEachHop(move->level, [&](Value to, Value from) {
    Value packed = tileAt(outgoing, rank, to);
    copy(tileAt(source, rank, to), packed);
    Value came = tileAt(incoming, from, rank);
    exchange(move->level, packed, to, came, from);
    copy(came, tileAt(target, from, rank));
  });
  return target;
}
