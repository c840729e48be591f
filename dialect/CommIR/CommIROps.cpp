//===- CommIROps.cpp - Ops of the commir dialect --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "dialect/CommIR/LoopRules.h"
#include "dialect/CommIR/Syntax.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// Parses a list of attributes by `parse` into an ArrayAttr.
template <typename AttrTy>
static ParseResult parseList(OpAsmParser &parser, ArrayAttr &list,
                             AsmParser::Delimiter delimiter,
                             FailureOr<AttrTy> (*parse)(AsmParser &)) {
  SmallVector<Attribute> attrs;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<AttrTy> attr = parse(parser);
    if (failed(attr))
      return failure();
    attrs.push_back(*attr);
    return success();
  };
  if (parser.parseCommaSeparatedList(delimiter, parseOne))
    return failure();
  list = parser.getBuilder().getArrayAttr(attrs);
  return success();
}

template <typename AttrTy>
static void printList(OpAsmPrinter &printer, ArrayAttr list) {
  llvm::interleaveComma(list.getAsRange<AttrTy>(), printer.getStream(),
                        [&](AttrTy attr) { syntax::print(printer, attr); });
}

static ParseResult parseLevels(OpAsmParser &parser, ArrayAttr &levels) {
  return parseList(parser, levels, AsmParser::Delimiter::Paren,
                   syntax::parseLevel);
}
static void printLevels(OpAsmPrinter &printer, Operation *, ArrayAttr levels) {
  printer << "(";
  printList<LevelAttr>(printer, levels);
  printer << ")";
}

static ParseResult parseLoops(OpAsmParser &parser, ArrayAttr &loops) {
  return parseList(parser, loops, AsmParser::Delimiter::None,
                   syntax::parseLoop);
}
static void printLoops(OpAsmPrinter &printer, Operation *, ArrayAttr loops) {
  printList<LoopAttr>(printer, loops);
}

template <typename AttrTy>
static ParseResult parseOne(OpAsmParser &parser, AttrTy &attr,
                            FailureOr<AttrTy> (*parse)(AsmParser &)) {
  FailureOr<AttrTy> parsed = parse(parser);
  if (failed(parsed))
    return failure();
  attr = *parsed;
  return success();
}

static ParseResult parseMask(OpAsmParser &parser, MaskAttr &mask) {
  return parseOne(parser, mask, syntax::parseMask);
}
static void printMask(OpAsmPrinter &printer, Operation *, MaskAttr mask) {
  syntax::print(printer, mask);
}

static ParseResult parsePlacement(OpAsmParser &parser, PlacementAttr &attr) {
  return parseOne(parser, attr, syntax::parsePlacement);
}
static void printPlacement(OpAsmPrinter &printer, Operation *,
                           PlacementAttr attr) {
  syntax::print(printer, attr);
}

static ParseResult parseName(OpAsmParser &parser, StringAttr &name) {
  return parseOne(parser, name, syntax::parseName);
}
static void printName(OpAsmPrinter &printer, Operation *, StringAttr name) {
  syntax::printName(printer, name);
}

static ParseResult parseNames(OpAsmParser &parser, ArrayAttr &names) {
  return parseList(parser, names, AsmParser::Delimiter::None,
                   syntax::parseName);
}
static void printNames(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  llvm::interleaveComma(
      names.getAsRange<StringAttr>(), printer.getStream(),
      [&](StringAttr name) { syntax::printName(printer, name); });
}

static ParseResult parseMerge(OpAsmParser &parser, Attribute &merge) {
  StringAttr symbol;
  if (succeeded(parser.parseOptionalSymbolName(symbol))) {
    merge = FlatSymbolRefAttr::get(symbol);
    return success();
  }
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<MergeKind> kind = symbolizeMergeKind(keyword);
  if (!kind)
    return parser.emitError(loc)
           << "expected 'sum', 'max', 'softmax' or a symbol, got '" << keyword
           << "'";
  merge = MergeKindAttr::get(parser.getContext(), *kind);
  return success();
}
static void printMerge(OpAsmPrinter &printer, Operation *, Attribute merge) {
  if (auto kind = dyn_cast<MergeKindAttr>(merge))
    printer << stringifyMergeKind(kind.getValue());
  else
    printer << merge;
}

/// `[sk : %p of 4, h : %r of 2]`.
static ParseResult
parseParts(OpAsmParser &parser,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &indices,
           ArrayAttr &axes, DenseI64ArrayAttr &counts) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> numbers;
  auto parsePart = [&]() -> ParseResult {
    FailureOr<StringAttr> name = syntax::parseName(parser);
    if (failed(name) || parser.parseColon() ||
        parser.parseOperand(indices.emplace_back()) ||
        parser.parseKeyword("of") ||
        parser.parseInteger(numbers.emplace_back()))
      return failure();
    names.push_back(*name);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePart))
    return failure();
  axes = parser.getBuilder().getArrayAttr(names);
  counts = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}
static void printParts(OpAsmPrinter &printer, Operation *, OperandRange indices,
                       ArrayAttr axes, DenseI64ArrayAttr counts) {
  printer << "[";
  llvm::interleaveComma(
      llvm::zip(axes.getAsRange<StringAttr>(), indices, counts.asArrayRef()),
      printer.getStream(), [&](auto part) {
        syntax::printName(printer, std::get<0>(part));
        printer << " : " << std::get<1>(part) << " of " << std::get<2>(part);
      });
  printer << "]";
}

#define GET_OP_CLASSES
#include "dialect/CommIR/CommIROps.cpp.inc"

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  if (getLevels().empty())
    return emitOpError() << "mesh '" << getSymName()
                         << "' must have at least one level";
  llvm::StringSet<> seen;
  int64_t ranks = 1;
  for (auto level : getLevels().getAsRange<LevelAttr>()) {
    if (!seen.insert(level.getName()).second)
      return emitOpError() << "mesh '" << getSymName()
                           << "' must not name a level twice, got '"
                           << level.getName() << "' again";
    if (level.getSize() > (int64_t(1) << 20) / ranks)
      return emitOpError() << "mesh '" << getSymName()
                           << "' must have at most 2^20 ranks";
    ranks *= level.getSize();
  }
  return success();
}

int64_t MeshOp::getLevelSize(StringRef name) {
  for (auto level : getLevels().getAsRange<LevelAttr>())
    if (level.getName() == name)
      return level.getSize();
  return 0;
}

int64_t MeshOp::getLevelNumber(StringRef name) {
  for (auto [i, level] : llvm::enumerate(getLevels().getAsRange<LevelAttr>()))
    if (level.getName() == name)
      return i;
  return -1;
}

std::string MeshOp::describeLevels() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(
      getLevels().getAsRange<LevelAttr>(), stream,
      [&](LevelAttr level) { stream << "'" << level.getName() << "'"; });
  return text;
}

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

MeshOp ProgramOp::getMeshOp() {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
}

AxisAttr ProgramOp::getAxis(StringRef name) {
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    if (axis.getName() == name)
      return axis;
  return {};
}

int64_t ProgramOp::getBufferNumber(StringRef name) {
  for (auto [i, binding] :
       llvm::enumerate(getBindings().getAsRange<BindingAttr>()))
    if (binding.getName() == name)
      return i;
  return -1;
}

BindingAttr ProgramOp::getBinding(int64_t buffer) {
  return cast<BindingAttr>(getBindings()[buffer]);
}

BufferType ProgramOp::getBufferType(int64_t buffer) {
  return cast<BufferType>(getBody().getArgument(buffer).getType());
}

void ProgramOp::getAsmBlockArgumentNames(Region &region,
                                         OpAsmSetValueNameFn setName) {
  for (auto [binding, argument] : llvm::zip(
           getBindings().getAsRange<BindingAttr>(), region.getArguments()))
    setName(argument, binding.getName());
}

/// Parses `%Q: !commir.buffer<...> at [...]`. The buffer has its value's name,
/// unless `named` gives another.
static ParseResult parseBuffer(OpAsmParser &parser,
                               SmallVectorImpl<OpAsmParser::Argument> &args,
                               SmallVectorImpl<Attribute> &bindings) {
  OpAsmParser::Argument &argument = args.emplace_back();
  if (parser.parseArgument(argument, /*allowType=*/true))
    return failure();
  std::string name = argument.ssaName.name.drop_front().str();
  if (succeeded(parser.parseOptionalKeyword("named")) &&
      parser.parseString(&name))
    return failure();
  FailureOr<BindingAttr> binding = syntax::parseBinding(parser, name);
  if (failed(binding))
    return failure();
  bindings.push_back(*binding);
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  FlatSymbolRefAttr mesh;
  ArrayAttr axes;
  SmallVector<OpAsmParser::Argument> args;
  SmallVector<Attribute> bindings;
  auto parseBuffers = [&](StringRef keyword) -> ParseResult {
    if (parser.parseKeyword(keyword))
      return failure();
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Paren,
        [&] { return parseBuffer(parser, args, bindings); });
  };
  if (parser.parseSymbolName(name) || parser.parseKeyword("on") ||
      parser.parseAttribute(mesh) || parser.parseKeyword("axes") ||
      parseList(parser, axes, AsmParser::Delimiter::Paren, syntax::parseAxis) ||
      parseBuffers("inputs"))
    return failure();
  int64_t inputs = args.size();
  Region *body = result.addRegion();
  if (parseBuffers("outputs") ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, args))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  Builder &builder = parser.getBuilder();
  result.addAttribute(getSymNameAttrName(result.name), name);
  result.addAttribute(getMeshAttrName(result.name), mesh);
  result.addAttribute(getAxesAttrName(result.name), axes);
  result.addAttribute(getBindingsAttrName(result.name),
                      builder.getArrayAttr(bindings));
  result.addAttribute(getNumInputsAttrName(result.name),
                      builder.getI64IntegerAttr(inputs));
  return success();
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " on " << getMeshAttr() << " axes(";
  printList<AxisAttr>(printer, getAxes());
  printer << ")";
  auto printBuffer = [&](int64_t i) {
    BlockArgument argument = getBody().getArgument(i);
    std::string value;
    llvm::raw_string_ostream stream(value);
    printer.printOperand(argument, stream);
    printer << value << ": " << argument.getType();
    if (value != "%" + getBinding(i).getName().str()) {
      printer << " named ";
      printer.printString(getBinding(i).getName());
    }
    syntax::printBindingBody(printer, getBinding(i));
  };
  int64_t inputs = getNumInputs(), count = getBindings().size();
  auto printBuffers = [&](StringRef keyword, int64_t from, int64_t to) {
    printer.printNewline();
    printer << "    " << keyword << "(";
    llvm::interleave(
        llvm::seq(from, to), printBuffer,
        [&] {
          printer << ",";
          printer.printNewline();
          printer << "      ";
        });
    printer << ")";
  };
  printBuffers("inputs", 0, inputs);
  printBuffers("outputs", inputs, count);
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getMeshAttrName(), getAxesAttrName(),
       getBindingsAttrName(), getNumInputsAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::StringSet<> axes;
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    if (!axes.insert(axis.getName()).second)
      return emitOpError() << "program '" << getSymName()
                           << "' must not name an axis twice, got '"
                           << axis.getName() << "' again";

  int64_t count = getBody().getNumArguments();
  if (static_cast<int64_t>(getBindings().size()) != count ||
      !llvm::all_of(getBody().getArgumentTypes(), llvm::IsaPred<BufferType>))
    return emitOpError() << "each argument must be a buffer with one binding, "
                            "got "
                         << getBindings().size() << " bindings for " << count
                         << " arguments";
  int64_t inputs = getNumInputsAttr().getInt();
  if (inputs < 0 || inputs > count)
    return emitOpError() << "num_inputs must be from 0 to " << count << ", got "
                         << inputs;

  llvm::StringSet<> buffers;
  for (int64_t i = 0; i < count; ++i) {
    StringRef name = getBinding(i).getName();
    if (!buffers.insert(name).second)
      return emitOpError() << "program '" << getSymName()
                           << "' must not name a buffer twice, got '" << name
                           << "' again";
    for (DimAttr dim : getBufferType(i).getDims()) {
      if (dim.isConstant())
        continue;
      AxisAttr axis = getAxis(dim.getAxis());
      if (!axis)
        return emitOpError() << "buffer '" << name
                             << "' must use axes of the program, '"
                             << dim.getAxis() << "' is none";
      if (axis.getExtent() % dim.getDivisor() != 0)
        return emitOpError()
               << "the divisor of a dimension of buffer '" << name
               << "' must divide its axis, '" << dim.getAxis() << "' of extent "
               << axis.getExtent() << " by " << dim.getDivisor();
    }
    if (isInput(i))
      continue;
    if (getBody().getArgument(i).use_empty())
      return emitOpError() << "output '" << name << "' must be stored to";
  }

  llvm::StringSet<> loops;
  for (ForOp nest : getBody().getOps<ForOp>())
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      if (!loops.insert(loop.getName()).second)
        return nest.emitOpError() << "a program must not name a loop twice, "
                                     "got '"
                                  << loop.getName() << "' again";
  return success();
}

LogicalResult
ProgramOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto mesh =
      symbolTable.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "program '" << getSymName()
                         << "' must run on a commir.mesh, '" << getMesh()
                         << "' is none";
  for (int64_t i = 0, e = getBindings().size(); i < e; ++i)
    if (std::string why =
            whyNotBinding(*this, mesh, getBinding(i), getBufferType(i));
        !why.empty())
      return emitOpError() << why;
  for (ForOp nest : getBody().getOps<ForOp>()) {
    SmallVector<LoopAttr> loops(nest.getLoops().getAsRange<LoopAttr>());
    if (std::string why = whyNotLoops(*this, mesh, loops); !why.empty())
      return nest.emitOpError() << why;
    for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
      auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(
          store.getMerge().value_or(Attribute()));
      if (symbol && !symbolTable.lookupNearestSymbolFrom<MergeOp>(store, symbol))
        return store.emitOpError() << "the merge symbol must name a "
                                      "commir.merge, '"
                                   << symbol.getValue() << "' does not";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ForOp
//===----------------------------------------------------------------------===//

LogicalResult ForOp::verify() {
  for (Operation &op : getBody().getOps())
    if (!isa<LoadOp, KernelOp, StoreOp>(op))
      return emitOpError() << "the body of a nest must hold loads, kernels and "
                              "stores only, got '"
                           << op.getName() << "'";
  return success();
}

LoopAttr ForOp::getLoop(StringRef name) {
  for (auto loop : getLoops().getAsRange<LoopAttr>())
    if (loop.getName() == name)
      return loop;
  return {};
}

int64_t ForOp::getParts(StringRef axis) {
  auto program = (*this)->getParentOfType<ProgramOp>();
  int64_t total = 1;
  for (auto loop : getLoops().getAsRange<LoopAttr>()) {
    SmallVector<int64_t> parts = *getPartsOfAxes(program, loop);
    for (auto [name, count] : llvm::zip_equal(loop.getAxes(), parts))
      if (name == axis)
        total *= count;
  }
  return total;
}

/// Whether some loop of the nest runs over `axis`.
static bool hasLoopOver(ForOp nest, StringRef axis) {
  return llvm::any_of(nest.getLoops().getAsRange<LoopAttr>(),
                      [&](LoopAttr loop) { return loop.isOver(axis); });
}

/// A nest walks every axis of the buffers that its body touches.
static LogicalResult verifyLooped(Operation *op, Value buffer) {
  auto nest = cast<ForOp>(op->getParentOp());
  for (DimAttr dim : cast<BufferType>(buffer.getType()).getDims())
    if (!dim.isConstant() && !hasLoopOver(nest, dim.getAxis()))
      return op->emitOpError()
             << "each axis of a loaded or stored buffer must have a loop in the "
                "nest, '"
             << dim.getAxis() << "' has none";
  return success();
}

/// Whether `buffer` is an argument of the program, in the given role.
static bool isProgramBuffer(Operation *op, Value buffer, bool input) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  auto program = op->getParentOfType<ProgramOp>();
  return argument && program && argument.getOwner() == &program.getBody().front() &&
         program.isInput(argument.getArgNumber()) == input;
}

//===----------------------------------------------------------------------===//
// LoadOp, KernelOp, StoreOp
//===----------------------------------------------------------------------===//

static TileType tileOf(BufferType buffer) {
  return TileType::get(buffer.getContext(), buffer.getDims(),
                       buffer.getElementType());
}

void LoadOp::build(OpBuilder &, OperationState &state, Value buffer) {
  state.addOperands(buffer);
  state.addTypes(tileOf(cast<BufferType>(buffer.getType())));
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand buffer;
  BufferType type;
  if (parser.parseOperand(buffer) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(type) ||
      parser.resolveOperand(buffer, type, result.operands))
    return failure();
  result.addTypes(tileOf(type));
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << " " << getBuffer();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getBuffer().getType();
}

LogicalResult LoadOp::verify() {
  auto buffer = getBuffer().getType();
  if (getTile().getType() != tileOf(buffer))
    return emitOpError() << "must give the tile of its buffer, "
                         << tileOf(buffer) << ", got " << getTile().getType();
  if (!isProgramBuffer(*this, getBuffer(), /*input=*/true))
    return emitOpError() << "must read an input; outputs are only stored to";
  return verifyLooped(*this, getBuffer());
}

LogicalResult KernelOp::verify() { return verifySignature(*this); }

LogicalResult StoreOp::verify() {
  if (getTiles().size() != getBuffers().size() || getTiles().empty())
    return emitOpError() << "must have one buffer for each tile, got "
                         << getTiles().size() << " tiles and "
                         << getBuffers().size() << " buffers";
  auto nest = cast<ForOp>((*this)->getParentOp());
  SmallVector<StringRef> over;
  if (std::optional<ArrayAttr> axes = getOver())
    for (auto axis : axes->getAsRange<StringAttr>())
      over.push_back(axis.getValue());
  for (auto [tile, buffer] : llvm::zip_equal(getTiles(), getBuffers())) {
    auto type = cast<BufferType>(buffer.getType());
    if (cast<TileType>(tile.getType()).getDims() != type.getDims())
      return emitOpError() << "a stored tile must have the dimensions of its "
                              "buffer, "
                           << type << ", got " << tile.getType();
    if (!isProgramBuffer(*this, buffer, /*input=*/false))
      return emitOpError() << "must write an output; inputs are only loaded";
    if (!buffer.hasOneUse())
      return emitOpError() << "a buffer must be stored to once";
    if (failed(verifyLooped(*this, buffer)))
      return failure();
    for (auto loop : nest.getLoops().getAsRange<LoopAttr>())
      for (StringAttr axis : loop.getAxes()) {
        bool has = llvm::any_of(type.getDims(), [&](DimAttr dim) {
          return !dim.isConstant() && dim.getAxis() == axis.getValue();
        });
        if (has == llvm::is_contained(over, axis.getValue()))
          return emitOpError()
                 << "over must name the loop axes that the buffer lacks: '"
                 << axis.getValue() << "' is " << (has ? "" : "not ")
                 << "a dimension of " << type;
      }
  }
  for (StringRef axis : over)
    if (!hasLoopOver(nest, axis))
      return emitOpError() << "over must name the loop axes that the buffer "
                              "lacks: no loop runs over '"
                           << axis << "'";
  if (!over.empty() && !getMerge())
    return emitOpError()
           << "a reduced result must name its merge, as in merge(sum)";
  if (over.empty() && getMerge())
    return emitOpError() << "a result that is not reduced must not name a merge";
  auto kind = dyn_cast_or_null<MergeKindAttr>(getMerge().value_or(Attribute()));
  if (kind && kind.getValue() == MergeKind::Softmax && getTiles().size() != 2)
    return emitOpError() << "a softmax merge must store a pair, (o, lse), got "
                         << getTiles().size();
  return success();
}

//===----------------------------------------------------------------------===//
// MergeOp
//===----------------------------------------------------------------------===//

ParseResult MergeOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  TypedAttr identity;
  SmallVector<OpAsmParser::Argument> args;
  Region *body = result.addRegion();
  if (parser.parseSymbolName(name) || parser.parseKeyword("identity") ||
      parser.parseLParen() || parser.parseAttribute(identity) ||
      parser.parseRParen() ||
      parser.parseArgumentList(args, AsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, args))
    return failure();
  result.addAttribute(getSymNameAttrName(result.name), name);
  result.addAttribute(getIdentityAttrName(result.name), identity);
  MergeOp::ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void MergeOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " identity(" << getIdentity() << ") (";
  llvm::interleaveComma(getBody().getArguments(), printer.getStream(),
                        [&](BlockArgument argument) {
                          printer.printRegionArgument(argument);
                        });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getIdentityAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult MergeOp::verifyRegions() {
  Type type = getIdentity().getType();
  if (getBody().getNumArguments() != 2 ||
      llvm::any_of(getBody().getArgumentTypes(),
                   [&](Type argument) { return argument != type; }))
    return emitOpError()
           << "must take two values of the identity's type, " << type;
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValues().size() != 1 ||
      yield.getValues().front().getType() != type)
    return yield.emitOpError()
           << "a merge must yield one value of the identity's type, " << type;
  return success();
}
