//===- Syntax.cpp - Text of commir attributes -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Syntax.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// Names and numbers
//===----------------------------------------------------------------------===//

FailureOr<StringAttr> syntax::parseName(AsmParser &parser) {
  std::string name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&name))
    return failure();
  if (name.empty())
    return parser.emitError(loc, "expected a name that is not empty");
  return StringAttr::get(parser.getContext(), name);
}

void syntax::printName(AsmPrinter &printer, StringRef name) {
  printer.printKeywordOrString(name);
}

ParseResult syntax::parseNames(AsmParser &parser,
                               AsmParser::Delimiter delimiter,
                               SmallVectorImpl<StringAttr> &names) {
  return parser.parseCommaSeparatedList(delimiter, [&]() -> ParseResult {
    FailureOr<StringAttr> name = parseName(parser);
    if (failed(name))
      return failure();
    names.push_back(*name);
    return success();
  });
}

void syntax::printNames(AsmPrinter &printer, ArrayRef<StringAttr> names) {
  llvm::interleaveComma(names, printer.getStream(),
                        [&](StringAttr name) { printName(printer, name); });
}

ParseResult syntax::addInherent(OpAsmParser &parser, OperationState &result,
                                ArrayRef<NamedAttribute> attributes) {
  for (NamedAttribute attribute : attributes) {
    if (result.attributes.get(attribute.getName()))
      return parser.emitError(parser.getNameLoc())
             << "attribute '" << attribute.getName().getValue()
             << "' must not be given twice, the syntax of '" << result.name
             << "' gives it already";
    result.attributes.push_back(attribute);
  }
  return success();
}

ParseResult syntax::parseNumbers(AsmParser &parser,
                                 SmallVectorImpl<int64_t> &numbers) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(numbers.emplace_back());
  });
}

void syntax::printNumbers(AsmPrinter &printer, ArrayRef<int64_t> numbers) {
  printer << "[";
  llvm::interleaveComma(numbers, printer.getStream());
  printer << "]";
}

//===----------------------------------------------------------------------===//
// Mesh and axes
//===----------------------------------------------------------------------===//

FailureOr<LevelAttr> syntax::parseLevel(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<StringAttr> name = parseName(parser);
  int64_t size = 0;
  if (failed(name) || parser.parseEqual() || parser.parseInteger(size))
    return failure();
  return getChecked<LevelAttr>(parser, loc, name->getValue(), size);
}

void syntax::print(AsmPrinter &printer, LevelAttr level) {
  printName(printer, level.getName());
  printer << " = " << level.getSize();
}

FailureOr<LayoutAttr> syntax::parseOptionalLayout(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  Layout::Kind kind = Layout::Kind::Block;
  int64_t chunk = 0;
  SmallVector<int64_t> bounds;
  if (succeeded(parser.parseOptionalKeyword("block"))) {
    kind = Layout::Kind::Block;
  } else if (succeeded(parser.parseOptionalKeyword("zigzag"))) {
    kind = Layout::Kind::Zigzag;
  } else if (succeeded(parser.parseOptionalKeyword("striped"))) {
    kind = Layout::Kind::Striped;
    if (parser.parseLParen() || parser.parseInteger(chunk) ||
        parser.parseRParen())
      return failure();
  } else if (succeeded(parser.parseOptionalKeyword("bounds"))) {
    kind = Layout::Kind::Bounds;
    if (parseNumbers(parser, bounds))
      return failure();
  } else {
    return LayoutAttr();
  }
  return getChecked<LayoutAttr>(parser, loc, kind, chunk,
                                ArrayRef<int64_t>(bounds));
}

void syntax::print(AsmPrinter &printer, LayoutAttr layout) {
  switch (layout.getKind()) {
  case Layout::Kind::Block:
    printer << "block";
    return;
  case Layout::Kind::Zigzag:
    printer << "zigzag";
    return;
  case Layout::Kind::Striped:
    printer << "striped(" << layout.getChunk() << ")";
    return;
  case Layout::Kind::Bounds:
    printer << "bounds";
    printNumbers(printer, layout.getBounds());
    return;
  }
}

FailureOr<AxisAttr> syntax::parseAxis(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<StringAttr> name = parseName(parser);
  int64_t extent = 0;
  if (failed(name) || parser.parseEqual() || parser.parseInteger(extent))
    return failure();
  FailureOr<LayoutAttr> layout = parseOptionalLayout(parser);
  if (failed(layout))
    return failure();
  LayoutAttr cut =
      *layout ? *layout : LayoutAttr::get(parser.getContext(), Layout());
  return getChecked<AxisAttr>(parser, loc, name->getValue(), extent, cut);
}

void syntax::print(AsmPrinter &printer, AxisAttr axis) {
  printName(printer, axis.getName());
  printer << " = " << axis.getExtent();
  if (axis.getLayout().getKind() == Layout::Kind::Block)
    return;
  printer << " ";
  print(printer, axis.getLayout());
}

FailureOr<DimAttr> syntax::parseDim(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t value = 1;
  // A name first: `true` is one here, and an integer to the parser.
  std::string axis;
  if (failed(parser.parseOptionalKeywordOrString(&axis))) {
    if (parser.parseInteger(value))
      return failure();
    return getChecked<DimAttr>(parser, loc, StringRef(), value);
  }
  if (axis.empty())
    return parser.emitError(loc, "expected a name that is not empty");
  if (succeeded(parser.parseOptionalSlash()) && parser.parseInteger(value))
    return failure();
  return getChecked<DimAttr>(parser, loc, StringRef(axis), value);
}

void syntax::print(AsmPrinter &printer, DimAttr dim) {
  if (dim.isConstant()) {
    printer << dim.getValue();
    return;
  }
  printName(printer, dim.getAxis());
  if (dim.getDivisor() != 1)
    printer << "/" << dim.getDivisor();
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

static ParseResult parseFactor(AsmParser &parser,
                               SmallVectorImpl<Attribute> &factors) {
  int64_t number = 0;
  OptionalParseResult parsed = parser.parseOptionalInteger(number);
  if (parsed.has_value()) {
    factors.push_back(parser.getBuilder().getI64IntegerAttr(number));
    return *parsed;
  }
  FailureOr<StringAttr> level = syntax::parseName(parser);
  if (failed(level))
    return failure();
  factors.push_back(*level);
  return success();
}

FailureOr<CutAttr> syntax::parseCut(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<StringAttr> axis = parseName(parser);
  if (failed(axis) || parser.parseArrow())
    return failure();
  SmallVector<Attribute> factors;
  if (failed(parser.parseOptionalLParen())) {
    if (parseFactor(parser, factors))
      return failure();
  } else if (failed(parser.parseOptionalRParen())) {
    if (parser.parseCommaSeparatedList(
            [&] { return parseFactor(parser, factors); }) ||
        parser.parseRParen())
      return failure();
  }
  FailureOr<LayoutAttr> layout = parseOptionalLayout(parser);
  if (failed(layout))
    return failure();
  return getChecked<CutAttr>(parser, loc, axis->getValue(),
                             ArrayRef<Attribute>(factors), *layout);
}

void syntax::print(AsmPrinter &printer, CutAttr cut) {
  printName(printer, cut.getAxis());
  printer << " -> ";
  bool several = cut.getFactors().size() != 1;
  if (several)
    printer << "(";
  llvm::interleaveComma(cut.getFactors(), printer.getStream(),
                        [&](Attribute factor) {
                          if (auto level = dyn_cast<StringAttr>(factor))
                            printName(printer, level);
                          else
                            printer << cast<IntegerAttr>(factor).getInt();
                        });
  if (several)
    printer << ")";
  if (!cut.getLayout())
    return;
  printer << " ";
  print(printer, cut.getLayout());
}

FailureOr<PlacementAttr> syntax::parsePlacement(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<CutAttr> cuts;
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            FailureOr<CutAttr> cut = parseCut(parser);
            if (failed(cut))
              return failure();
            cuts.push_back(*cut);
            return success();
          }))
    return failure();
  return getChecked<PlacementAttr>(parser, loc, ArrayRef<CutAttr>(cuts));
}

void syntax::print(AsmPrinter &printer, PlacementAttr placement) {
  printer << "[";
  llvm::interleaveComma(placement.getCuts(), printer.getStream(),
                        [&](CutAttr cut) { print(printer, cut); });
  printer << "]";
}

static ParseResult parseOptionalPlacement(AsmParser &parser, StringRef keyword,
                                          PlacementAttr &placement) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  FailureOr<PlacementAttr> parsed = syntax::parsePlacement(parser);
  if (failed(parsed))
    return failure();
  placement = *parsed;
  return success();
}

FailureOr<BindingAttr> syntax::parseBinding(AsmParser &parser, StringRef name) {
  PlacementAttr boundary, shard, inside;
  SmallVector<StringAttr> replicate, broadcast;
  if (parseOptionalPlacement(parser, "at", boundary) ||
      parseOptionalPlacement(parser, "shard", shard))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("replicate")) &&
      parseNames(parser, AsmParser::Delimiter::Square, replicate))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("broadcast")) &&
      parseNames(parser, AsmParser::Delimiter::Square, broadcast))
    return failure();
  if (parseOptionalPlacement(parser, "inside", inside))
    return failure();
  return BindingAttr::get(parser.getContext(), name, boundary, shard, replicate,
                          broadcast, inside);
}

void syntax::printBindingBody(AsmPrinter &printer, BindingAttr binding) {
  auto placement = [&](StringRef keyword, PlacementAttr placement) {
    if (!placement)
      return;
    printer << " " << keyword << " ";
    print(printer, placement);
  };
  placement("at", binding.getBoundary());
  placement("shard", binding.getShard());
  auto names = [&](StringRef keyword, ArrayRef<StringAttr> names) {
    if (names.empty())
      return;
    printer << " " << keyword << " [";
    printNames(printer, names);
    printer << "]";
  };
  names("replicate", binding.getReplicate());
  names("broadcast", binding.getBroadcast());
  placement("inside", binding.getInside());
}
