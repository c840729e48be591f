//===- CommIRTypes.cpp - Types of the commir dialect ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Syntax.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::commir;

#define GET_TYPEDEF_CLASSES
#include "dialect/CommIR/CommIRTypes.cpp.inc"

void CommIRDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/CommIR/CommIRTypes.cpp.inc"
      >();
}

/// `<[b, sk, h/4, 128], bf16>`, the text of both shaped types.
template <typename TypeTy> static Type parseShaped(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<DimAttr> dims;
  Type elementType;
  auto parseDim = [&]() -> ParseResult {
    FailureOr<DimAttr> dim = syntax::parseDim(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      parser.parseComma() || parser.parseType(elementType) ||
      parser.parseGreater())
    return {};
  return TypeTy::getChecked([&] { return parser.emitError(loc); },
                            parser.getContext(), ArrayRef<DimAttr>(dims),
                            elementType);
}

template <typename TypeTy>
static void printShaped(AsmPrinter &printer, TypeTy type) {
  printer << "<[";
  llvm::interleaveComma(type.getDims(), printer.getStream(),
                        [&](DimAttr dim) { syntax::print(printer, dim); });
  printer << "], " << type.getElementType() << ">";
}

static LogicalResult verifyShaped(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<DimAttr> dims, Type elementType) {
  llvm::StringSet<> axes;
  for (DimAttr dim : dims)
    if (!dim.isConstant() && !axes.insert(dim.getAxis()).second)
      return emitError() << "a buffer or tile must not use an axis for two "
                            "dimensions, got '"
                         << dim.getAxis() << "' again";
  if (!isa<FloatType>(elementType))
    return emitError() << "the element type of a buffer or tile must be a "
                          "floating-point type, got "
                       << elementType;
  return success();
}

Type BufferType::parse(AsmParser &p) { return parseShaped<BufferType>(p); }
void BufferType::print(AsmPrinter &p) const { printShaped(p, *this); }
LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<DimAttr> dims, Type elementType) {
  return verifyShaped(emitError, dims, elementType);
}

bool BufferType::hasAxis(StringRef axis) const {
  return llvm::any_of(getDims(), [&](DimAttr dim) {
    return !dim.isConstant() && dim.getAxis() == axis;
  });
}
TileType BufferType::getTileType() const {
  return TileType::get(getContext(), getDims(), getElementType());
}

Type TileType::parse(AsmParser &p) { return parseShaped<TileType>(p); }
void TileType::print(AsmPrinter &p) const { printShaped(p, *this); }
LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<DimAttr> dims, Type elementType) {
  return verifyShaped(emitError, dims, elementType);
}
