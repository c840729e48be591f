//===- CommIROps.cpp - Ops of the commir dialect --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Syntax.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// A group of ranks: one level, "gpu", or several, ["node", "gpu"]; of none,
/// [], this rank alone.
static ParseResult parseGroup(OpAsmParser &parser, ArrayAttr &group) {
  // Not as an attribute, which would take a type that follows.
  std::string level;
  if (succeeded(parser.parseOptionalString(&level))) {
    group = parser.getBuilder().getStrArrayAttr({level});
    return success();
  }
  Attribute levels;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(levels))
    return failure();
  group = dyn_cast<ArrayAttr>(levels);
  if (!group || !llvm::all_of(group, llvm::IsaPred<StringAttr>))
    return parser.emitError(loc, "expected a level or a list of levels, such "
                                 "as \"gpu\" or [\"node\", \"gpu\"]");
  return success();
}

static void printGroup(OpAsmPrinter &printer, Operation *, ArrayAttr group) {
  printer << (group.size() == 1 ? group[0] : Attribute(group));
}

static ParseResult parseLevels(OpAsmParser &parser, ArrayAttr &levels) {
  return syntax::parseList(parser, levels, AsmParser::Delimiter::Paren,
                           syntax::parseLevel);
}
static void printLevels(OpAsmPrinter &printer, Operation *, ArrayAttr levels) {
  printer << "(";
  syntax::printList<LevelAttr>(printer, levels);
  printer << ")";
}

static ParseResult parseLoops(OpAsmParser &parser, ArrayAttr &loops) {
  return syntax::parseList(parser, loops, AsmParser::Delimiter::None,
                           syntax::parseLoop);
}
static void printLoops(OpAsmPrinter &printer, Operation *, ArrayAttr loops) {
  syntax::printList<LoopAttr>(printer, loops);
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
  return syntax::parseList(parser, names, AsmParser::Delimiter::None,
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

static ParseResult parseMergeKind(OpAsmParser &parser, MergeKindAttr &merge) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<MergeKind> kind = symbolizeMergeKind(keyword);
  if (!kind)
    return parser.emitError(loc)
           << "expected 'sum', 'max' or 'softmax', got '" << keyword << "'";
  merge = MergeKindAttr::get(parser.getContext(), *kind);
  return success();
}
static void printMergeKind(OpAsmPrinter &printer, Operation *,
                           MergeKindAttr merge) {
  printer << stringifyMergeKind(merge.getValue());
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
  if (syntax::addInherent(parser, result,
                          {{getSymNameAttrName(result.name), name},
                           {getIdentityAttrName(result.name), identity}}))
    return failure();
  MergeOp::ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void MergeOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " identity(" << getIdentity() << ") (";
  llvm::interleaveComma(
      getBody().getArguments(), printer.getStream(),
      [&](BlockArgument argument) { printer.printRegionArgument(argument); });
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
    return emitOpError() << "must take two values of the identity's type, "
                         << type;
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValues().size() != 1 ||
      yield.getValues().front().getType() != type)
    return yield.emitOpError()
           << "a merge must yield one value of the identity's type, " << type;
  return success();
}
