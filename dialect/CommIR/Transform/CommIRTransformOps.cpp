//===- CommIRTransformOps.cpp - The schedule ------------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/Transform/CommIRTransformOps.h"
#include "dialect/CommIR/Syntax.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::commir;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// `4` or `"gpu0"`.
static ParseResult parseInto(OpAsmParser &parser, Attribute &into) {
  int64_t parts = 0;
  OptionalParseResult number = parser.parseOptionalInteger(parts);
  if (number.has_value()) {
    into = parser.getBuilder().getI64IntegerAttr(parts);
    return *number;
  }
  SmallVector<int64_t> sizes;
  auto parseSize = [&] { return parser.parseInteger(sizes.emplace_back()); };
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parser.parseCommaSeparatedList(parseSize) || parser.parseRSquare())
      return failure();
    into = parser.getBuilder().getDenseI64ArrayAttr(sizes);
    return success();
  }
  std::string level;
  if (parser.parseString(&level))
    return failure();
  into = parser.getBuilder().getStringAttr(level);
  return success();
}
static void printInto(OpAsmPrinter &printer, Operation *, Attribute into) {
  if (auto number = dyn_cast<IntegerAttr>(into))
    printer << number.getInt();
  else if (auto sizes = dyn_cast<DenseI64ArrayAttr>(into))
    printer << "[" << sizes.asArrayRef() << "]";
  else
    printer << into;
}

/// `(gpu0 = 2, gpu1 = 4)`.
static ParseResult parseLevels(OpAsmParser &parser, ArrayAttr &levels) {
  return syntax::parseList(parser, levels, AsmParser::Delimiter::Paren,
                           syntax::parseLevel);
}
static void printLevels(OpAsmPrinter &printer, Operation *, ArrayAttr levels) {
  printer << "(";
  syntax::printList<LevelAttr>(printer, levels);
  printer << ")";
}

#define GET_OP_CLASSES
#include "dialect/CommIR/Transform/CommIRTransformOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
class CommIRTransformExtension
    : public transform::TransformDialectExtension<CommIRTransformExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CommIRTransformExtension)
  using Base::Base;

  void init() {
    declareGeneratedDialect<CommIRDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "dialect/CommIR/Transform/CommIRTransformOps.cpp.inc"
        >();
  }
};
} // namespace

void mlir::commir::registerTransformExtension(DialectRegistry &registry) {
  registry.addExtensions<CommIRTransformExtension>();
}
