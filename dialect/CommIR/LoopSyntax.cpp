//===- LoopSyntax.cpp - Text of loops and masks ---------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Syntax.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

FailureOr<ShiftAttr> syntax::parseShift(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StringAttr> loops, levels;
  int64_t direction = 1, offset = 0, chunks = 1;
  ReadVia reads = ReadVia::Rotate;
  ResultVia results = ResultVia::Travel;
  DictionaryAttr via;
  Type link;

  // `by` introduces a term, everything else an operand of the shift.
  auto parseTerm = [&]() -> ParseResult {
    FailureOr<StringAttr> loop = parseName(parser);
    if (failed(loop) || parser.parseKeyword("on"))
      return failure();
    FailureOr<StringAttr> level = parseName(parser);
    if (failed(level))
      return failure();
    loops.push_back(*loop);
    levels.push_back(*level);
    return success();
  };
  auto parseOperand = [&]() -> ParseResult {
    SMLoc operandLoc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (keyword == "by")
      return parseTerm();
    if (keyword == "direction")
      return parser.parseInteger(direction);
    if (keyword == "offset")
      return parser.parseInteger(offset);
    if (keyword == "chunks")
      return parser.parseInteger(chunks);
    if (keyword == "link")
      return parser.parseType(link);
    if (keyword == "via")
      return parser.parseAttribute(via);
    StringRef mode;
    if ((keyword == "reads" || keyword == "results") &&
        parser.parseKeyword(&mode))
      return failure();
    if (keyword == "reads" && symbolizeReadVia(mode))
      return reads = *symbolizeReadVia(mode), success();
    if (keyword == "results" && symbolizeResultVia(mode))
      return results = *symbolizeResultVia(mode), success();
    return parser.emitError(operandLoc)
           << "expected 'by', 'direction', 'offset', 'reads rotate|pull', "
              "'results travel|deliver|fetch', 'via', 'chunks' or 'link', got '"
           << keyword << (mode.empty() ? "" : " ") << mode << "'";
  };
  if (parser.parseCommaSeparatedList(parseOperand))
    return failure();
  return getChecked<ShiftAttr>(parser, loc, ArrayRef<StringAttr>(loops),
                               ArrayRef<StringAttr>(levels), direction, offset,
                               reads, results, via, chunks, link);
}

void syntax::print(AsmPrinter &printer, ShiftAttr shift) {
  llvm::interleaveComma(llvm::zip_equal(shift.getLoops(), shift.getLevels()),
                        printer.getStream(), [&](auto term) {
                          printer << "by ";
                          printName(printer, std::get<0>(term));
                          printer << " on ";
                          printName(printer, std::get<1>(term));
                        });
  if (shift.getDirection() != 1)
    printer << ", direction " << shift.getDirection();
  if (shift.getOffset() != 0)
    printer << ", offset " << shift.getOffset();
  if (shift.getReads() != ReadVia::Rotate)
    printer << ", reads " << stringifyReadVia(shift.getReads());
  if (shift.getResults() != ResultVia::Travel)
    printer << ", results " << stringifyResultVia(shift.getResults());
  if (shift.getVia())
    printer << ", via " << shift.getVia();
  if (shift.getChunks() != 1)
    printer << ", chunks " << shift.getChunks();
  if (shift.getLink())
    printer << ", link " << shift.getLink();
}

FailureOr<LoopAttr> syntax::parseLoop(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<StringAttr> name = parseName(parser);
  if (failed(name))
    return failure();
  SmallVector<StringAttr> axes;
  if (failed(parser.parseOptionalKeyword("in"))) {
    axes.push_back(*name);
  } else if (failed(parser.parseOptionalLParen())) {
    FailureOr<StringAttr> axis = parseName(parser);
    if (failed(axis))
      return failure();
    axes.push_back(*axis);
  } else if (failed(parser.parseOptionalRParen())) {
    if (parseNames(parser, AsmParser::Delimiter::None, axes) ||
        parser.parseRParen())
      return failure();
  }
  int64_t parts = 1;
  if (succeeded(parser.parseOptionalKeyword("of")) &&
      parser.parseInteger(parts))
    return failure();
  SmallVector<StringAttr> levels;
  if (succeeded(parser.parseOptionalKeyword("parallel")) &&
      parseNames(parser, AsmParser::Delimiter::Paren, levels))
    return failure();
  ShiftAttr shift;
  if (succeeded(parser.parseOptionalKeyword("shift"))) {
    if (parser.parseLParen())
      return failure();
    FailureOr<ShiftAttr> parsed = parseShift(parser);
    if (failed(parsed) || parser.parseRParen())
      return failure();
    shift = *parsed;
  }
  return getChecked<LoopAttr>(parser, loc, name->getValue(),
                              ArrayRef<StringAttr>(axes), parts,
                              ArrayRef<StringAttr>(levels), shift);
}

void syntax::print(AsmPrinter &printer, LoopAttr loop) {
  printName(printer, loop.getName());
  if (loop.getAxes().size() != 1) {
    printer << " in (";
    printNames(printer, loop.getAxes());
    printer << ")";
  } else if (loop.getAxes().front() != loop.getName()) {
    printer << " in ";
    printName(printer, loop.getAxes().front());
  }
  if (loop.getParts() != 1)
    printer << " of " << loop.getParts();
  if (loop.isParallel()) {
    printer << " parallel(";
    printNames(printer, loop.getLevels());
    printer << ")";
  }
  if (!loop.getShift())
    return;
  printer << " shift(";
  print(printer, loop.getShift());
  printer << ")";
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

FailureOr<MaskAttr> syntax::parseMask(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t left = MaskAttr::kUnbounded, right = MaskAttr::kUnbounded;
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "causal") {
    right = 0;
    if (succeeded(parser.parseOptionalLParen()) &&
        (parser.parseInteger(right) || parser.parseRParen()))
      return failure();
  } else if (keyword == "window") {
    if (parser.parseLParen() || parser.parseInteger(left) ||
        parser.parseComma() || parser.parseInteger(right) ||
        parser.parseRParen())
      return failure();
  } else if (keyword != "full") {
    return parser.emitError(loc)
           << "expected 'full', 'causal' or 'window', got '" << keyword << "'";
  }
  SmallVector<int64_t> documents;
  if (succeeded(parser.parseOptionalKeyword("documents")) &&
      parseNumbers(parser, documents))
    return failure();
  return getChecked<MaskAttr>(parser, loc, left, right,
                              ArrayRef<int64_t>(documents));
}

void syntax::print(AsmPrinter &printer, MaskAttr mask) {
  if (mask.getLeft() != MaskAttr::kUnbounded) {
    printer << "window(" << mask.getLeft() << ", " << mask.getRight() << ")";
  } else if (mask.getRight() == MaskAttr::kUnbounded) {
    printer << "full";
  } else {
    printer << "causal";
    if (mask.getRight() != 0)
      printer << "(" << mask.getRight() << ")";
  }
  if (mask.getDocuments().empty())
    return;
  printer << " documents";
  printNumbers(printer, mask.getDocuments());
}
