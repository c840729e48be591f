//===- ProgramLocalizer.h - Tiles to memory of this rank --------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_TRANSFORMS_LOCALIZATION_PROGRAMLOCALIZER_H
#define LIB_TRANSFORMS_LOCALIZATION_PROGRAMLOCALIZER_H

#include "lib/Transforms/Runs.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::commir {

/// Gives a tile the fully dynamic type that all tiles have and kernels take.
Value castTile(FoldingBuilder &builder, Value tile);

/// Rewrites one SPMD program on tiles as a function on memrefs.
class ProgramLocalizer {
public:
  explicit ProgramLocalizer(ProgramOp program)
      : program(program), mesh(program.getMeshOp()),
        builder(program.getContext()), layouts(builder, program.getLoc()) {}

  LogicalResult localize();

private:
  using Range = AxisPart;
  /// A part of an axis, with the axis in the layout that it is cut by.
  struct Shard {
    AxisAttr axis;
    Range range;
  };
  /// The memory behind a buffer: bytes, and what part of each axis they hold.
  struct Memory {
    Value bytes;
    BufferType type;
    PlacementAttr placement;
    DictionaryAttr parts;
    int64_t slotBytes = 0;
    /// The levels on which another rank's memory is meant, with its
    /// coordinates there.
    llvm::StringMap<Value> coordinates;
  };
  /// One dimension of a tile: what it asks for of what its memory holds.
  struct Extent {
    Range asked, held;
    Value offset, size, heldSize;
    bool whole = true;
    /// Several intervals that do not lie together in memory.
    bool inPieces = false;
    /// Of a tile that is one of two whose pieces lie unlike: which, and where
    /// they lie in each.
    Value isFirst = {};
    std::shared_ptr<const Extent> first = {}, second = {};
    /// Whether pieces lie here as they do in other memory, but for which of its
    /// parts that holds.
    bool liesAs(const Extent &other) const {
      return !first && !other.first && held.count == other.held.count &&
             held.steps.empty() && other.held.steps.empty();
    }
  };
  /// A tile, as all of the memory it lies in and what it asks for of that.
  struct Tile {
    Value frame;
    SmallVector<Extent> extents;
    Value empty = {}; // the memory, if that is of no elements
  };
  /// An interval of an axis, and where it lies in memory.
  using Piece = LayoutBuilder::Piece;
  /// A run of what tiles ask for of an axis.
  struct AxisRun {
    StringRef axis;
    RunBuilder::Run run;
  };

  LogicalResult convert(Block &block);
  LogicalResult convert(scf::IfOp op);
  void keepLane(Operation &op, Operation *before);
  void keepTransport(Operation &op);
  LogicalResult convert(AllocOp op);
  LogicalResult convert(LeaseOpenOp op);
  LogicalResult convert(LeaseMemoryOp op);
  LogicalResult convert(PartOp op);
  LogicalResult convert(arith::SelectOp op);
  LogicalResult convert(PositionOp op);
  LogicalResult convert(AllGatherStartOp op);
  LogicalResult convert(ReduceScatterStartOp op);
  LogicalResult convert(RedistributeOp op);
  LogicalResult convert(LaunchOp op);
  LogicalResult convert(PullStartOp op);
  LogicalResult convert(WaitOp op);
  LogicalResult convertInPieces(Operation &op);
  /// A launch that takes its pieces of these axes together.
  LogicalResult convertJoined(LaunchOp op, StringRef queryAxis,
                              StringRef keyAxis);
  /// The bytes of a row of a tile: of all its dimensions but `axis`, whose
  /// divisor is set.
  Value getRowBytes(Location loc, TileType type, Value tile, AxisAttr axis,
                    int64_t &divisor);
  /// A table of one length for each member of a group; `body` gives that of a
  /// member.
  Value makeLengths(Location loc, int64_t members,
                    function_ref<Value(Value)> body);

  LogicalResult checkWhole(Operation *op, Value tile);
  FailureOr<Range> getHeldRange(Operation *op, const Memory &memory,
                                AxisAttr axis, Range asked);
  FailureOr<Extent> getExtent(PartOp op, const Memory &memory, DimAttr dim);
  /// How a cut divides its axis, without a first shard.
  Range getForm(CutAttr cut);
  /// The shard of an axis that `placement` gives to the rank at these
  /// coordinates; this rank's on levels that are not named.
  Shard getShard(Operation *op, PlacementAttr placement, StringRef axis,
                 const llvm::StringMap<Value> &coordinates);
  Value getCoordinate(Operation *op, StringAttr level,
                      const llvm::StringMap<Value> &coordinates);

  Value makeView(Value bytes, Value shift, Type element, ArrayRef<Value> sizes);
  Value takeSlab(const Tile &tile, ArrayRef<Value> offsets,
                 ArrayRef<Value> sizes);
  Value makeSubview(Value frame, ArrayRef<Value> offsets,
                    ArrayRef<Value> sizes);
  Value makeStack(Value frame, int64_t slots, int64_t slotElements,
                  ArrayRef<Value> sizes);
  /// Memory of the plan that holds tiles up to these sizes, in each slot.
  FailureOr<Value> makeBytes(Operation *op, ArrayRef<int64_t> sizes,
                             Type element, int64_t slots, int64_t &slotBytes);

  /// The axes of `tiles` that are taken in pieces, with the parts asked for.
  FailureOr<SmallVector<std::pair<AxisAttr, Range>>>
  getAxesInPieces(Operation *op, ArrayRef<Value> tiles,
                  const llvm::StringSet<> &always, bool isDocuments);
  FailureOr<DenseBoolArrayAttr> fillForPieces(LaunchOp op,
                                              ArrayRef<Value> operands,
                                              const llvm::StringSet<> &masked,
                                              bool isDocuments);

  /// Runs `body` on every piece of `tiles`: parts of them that are one interval
  /// of each axis and lie together in memory. An axis in `always` is taken
  /// interval by interval even where its pieces lie together. `begins` holds
  /// the first position of each axis that was taken in pieces. With `numbers`,
  /// runs it for that piece of each axis alone.
  LogicalResult forEachPiece(
      Operation *op, ArrayRef<Value> tiles, const llvm::StringSet<> &always,
      ArrayRef<int64_t> documents,
      function_ref<void(ArrayRef<Value>, const llvm::StringMap<Value> &)> body,
      ArrayRef<int64_t> numbers = {});
  /// A merge of what the steps of a ring made, piece by piece.
  LogicalResult convertMergeOfPieces(LaunchOp op, DictionaryAttr madeBy);
  /// The part of an axis that the first tile that has one asks for.
  Range findAsked(ArrayRef<Value> operands, StringRef axis);
  static SmallVector<Value> getTilesOf(LaunchOp op);
  /// Whether the pieces of each tile lie side by side in memory.
  bool lieTogether(ArrayRef<Value> tiles);

  /// A tile without what lies outside of runs.
  Value takeRun(Value tile, ArrayRef<AxisRun> runs);
  void launchRuns(LaunchOp op, const AxisRun &queries, const AxisRun &keys,
                  MaskAttr mask, DenseBoolArrayAttr overwrite);
  std::pair<RunBuilder::Run, RunBuilder::Run>
  launchPieces(LaunchOp op, const Shard &queries, const Shard &keys);
  /// Launches on two parts of striped(1) axes; gives the runs it took.
  std::pair<RunBuilder::Run, RunBuilder::Run>
  launchBand(LaunchOp op, MaskAttr mask, const Shard &queries,
             RunBuilder::Span queryNumbers, const Shard &keys,
             RunBuilder::Span keyNumbers, DenseBoolArrayAttr overwrite);
  /// Runs `body` on the results that a launch overwrites and must write all of,
  /// with what their merges start from.
  void forEachOverwritten(LaunchOp op,
                          function_ref<void(Value, FloatAttr)> body);
  /// Runs `body` under the condition that `size` is positive.
  void whenSome(Value size, function_ref<void()> body);
  /// Whether the keys of a launch are stripes that lie side by side, so that it
  /// need not run for each pair of pieces.
  bool takesStripes(LaunchOp op, StringRef queryAxis, StringRef keyAxis);
  void convertStriped(LaunchOp op, StringRef queryAxis, StringRef keyAxis);
  /// How many positions of a striped shard lie below one, of those in a
  /// document.
  Value countBelow(const Shard &stripes, Value position,
                   RunBuilder::Span document);
  RunBuilder::Span getSeenByAll(MaskAttr mask, Value first, Value last,
                                const Shard &keys, RunBuilder::Span document);
  void launchOnKeys(LaunchOp op, MaskAttr mask, const AxisRun &queries,
                    const Shard &keys, RunBuilder::Span numbers);
  void launchByHalves(LaunchOp op, MaskAttr mask, const Shard &queries,
                      const Shard &keys, RunBuilder::Span document);
  void launchOnSeen(LaunchOp op, MaskAttr mask, const AxisRun &queries,
                    const Shard &keys, RunBuilder::Span document,
                    bool byHalves);
  /// The dimensions of which one pull takes no more than one index: what it
  /// reads is rows that are equally far apart.
  SmallVector<int64_t> getDimsOutsideRows(PullStartOp op);
  /// A tile at one index of each of some dimensions.
  Value takeIndices(Value tile, ArrayRef<int64_t> dims,
                    ArrayRef<Value> indices);
  /// Where a piece of what was asked for lies in what is held.
  Value getLocalOffset(AxisAttr axis, const Extent &extent, const Piece &piece,
                       Value number);

  Value constant(int64_t value) {
    return builder.constant(program.getLoc(), value);
  }
  Value add(Value a, Value b) {
    return builder.fold<arith::AddIOp>(program.getLoc(), a, b);
  }
  Value sub(Value a, Value b) {
    return builder.fold<arith::SubIOp>(program.getLoc(), a, b);
  }
  Value mul(Value a, Value b) {
    return builder.fold<arith::MulIOp>(program.getLoc(), a, b);
  }
  /// Opens a loop from `begin` to `end`, and continues inside.
  Value openLoop(Value begin, Value end);
  Value openLoop(Value count) { return openLoop(constant(0), count); }
  /// Opens a loop over the documents of a mask, and gives the positions of one.
  std::pair<Value, Value> openDocuments(ArrayRef<int64_t> documents);

  ProgramOp program;
  MeshOp mesh;
  FoldingBuilder builder;
  LayoutBuilder layouts;
  IRMapping mapping;
  DenseMap<Value, Memory> memories;
  DenseMap<Value, Tile> tiles;
  /// Which part of an axis a position is the first of.
  struct PartOfAxis {
    AxisAttr axis;
    Range range;
    int64_t divisor;
  };
  DenseMap<Value, PartOfAxis> positions;
  /// Tiles that are all of their memory, or rows of it, so contiguous.
  DenseSet<Value> whole;
  /// The transfers of the pieces of each that moves a tile in pieces.
  DenseMap<Value, SmallVector<Value>> tokensOfPieces;
};

} // namespace mlir::commir

#endif // LIB_TRANSFORMS_LOCALIZATION_PROGRAMLOCALIZER_H
