//===- ProgramOp.cpp - The mesh and the program ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/LoopRules.h"
#include "dialect/CommIR/Syntax.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::commir;

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
    if (level.getSize() > kMaxShards / ranks)
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

int64_t MeshOp::getGroupSize(ArrayAttr group) {
  int64_t size = 1;
  for (auto level : group.getAsRange<StringAttr>())
    size *= getLevelSize(level);
  return size;
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
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
      return parseBuffer(parser, args, bindings);
    });
  };
  if (parser.parseSymbolName(name) || parser.parseKeyword("on") ||
      parser.parseAttribute(mesh) || parser.parseKeyword("axes") ||
      syntax::parseList(parser, axes, AsmParser::Delimiter::Paren,
                        syntax::parseAxis) ||
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
  return syntax::addInherent(
      parser, result,
      {{getSymNameAttrName(result.name), name},
       {getMeshAttrName(result.name), mesh},
       {getAxesAttrName(result.name), axes},
       {getBindingsAttrName(result.name), builder.getArrayAttr(bindings)},
       {getNumInputsAttrName(result.name), builder.getI64IntegerAttr(inputs)}});
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " on " << getMeshAttr() << " axes(";
  syntax::printList<AxisAttr>(printer, getAxes());
  printer << ")";
  auto printBuffer = [&](int64_t i) {
    BlockArgument argument = getBody().getArgument(i);
    std::string value;
    llvm::raw_string_ostream stream(value);
    printer.printOperand(argument, stream);
    printer.printRegionArgument(argument);
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
    llvm::interleave(llvm::seq(from, to), printBuffer, [&] {
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
        return emitOpError()
               << "buffer '" << name << "' must use axes of the program, '"
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

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto mesh = symbolTable.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "program '" << getSymName()
                         << "' must run on a commir.mesh, '" << getMesh()
                         << "' is none";
  for (int64_t i = 0, e = getBindings().size(); i < e; ++i)
    if (std::string why =
            whyNotBinding(*this, mesh, getBinding(i), getBufferType(i));
        !why.empty())
      return emitOpError() << why;
  SmallVector<BindingAttr> bindings(getBindings().getAsRange<BindingAttr>());
  for (ForOp nest : getBody().getOps<ForOp>()) {
    SmallVector<LoopAttr> loops(nest.getLoops().getAsRange<LoopAttr>());
    if (std::string why = whyNotLoops(*this, mesh, loops); !why.empty())
      return nest.emitOpError() << why;
    if (std::string why = whyNotBroadcast(mesh, nest, loops, bindings);
        !why.empty())
      return nest.emitOpError() << why;
    for (StoreOp store : nest.getBody().getOps<StoreOp>()) {
      auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(
          store.getMerge().value_or(Attribute()));
      if (symbol &&
          !symbolTable.lookupNearestSymbolFrom<MergeOp>(store, symbol))
        return store.emitOpError() << "the merge symbol must name a "
                                      "commir.merge, '"
                                   << symbol.getValue() << "' does not";
    }
  }
  return success();
}
