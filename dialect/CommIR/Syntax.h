//===- Syntax.h - Text of commir attributes ---------------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops print attributes without their `#commir.x<...>` shell, so that a program
// reads like a sentence. An attribute and the ops that show it share these.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_SYNTAX_H
#define DIALECT_COMMIR_SYNTAX_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir::syntax {

/// Builds an attribute through its verifier, at `loc`.
template <typename AttrTy, typename... Args>
FailureOr<AttrTy> getChecked(AsmParser &parser, SMLoc loc, Args &&...args) {
  AttrTy attr =
      AttrTy::getChecked([&] { return parser.emitError(loc); },
                         parser.getContext(), std::forward<Args>(args)...);
  if (!attr)
    return failure();
  return attr;
}

/// A list of attributes by `parse`, as an ArrayAttr.
template <typename AttrTy>
ParseResult parseList(AsmParser &parser, ArrayAttr &list,
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

/// A name: an identifier, or a string when it is not one.
FailureOr<StringAttr> parseName(AsmParser &parser);
void printName(AsmPrinter &printer, StringRef name);

/// `[a, b]`.
ParseResult parseNames(AsmParser &parser, AsmParser::Delimiter delimiter,
                       SmallVectorImpl<StringAttr> &names);
void printNames(AsmPrinter &printer, ArrayRef<StringAttr> names);

/// Adds the attributes that an op's syntax gives. Its attribute dictionary must
/// not give one of them again.
ParseResult addInherent(OpAsmParser &parser, OperationState &result,
                        ArrayRef<NamedAttribute> attributes);

/// `[0, 5, 14]`.
ParseResult parseNumbers(AsmParser &parser, SmallVectorImpl<int64_t> &numbers);
void printNumbers(AsmPrinter &printer, ArrayRef<int64_t> numbers);

/// `gpu = 4`.
FailureOr<LevelAttr> parseLevel(AsmParser &parser);
void print(AsmPrinter &printer, LevelAttr level);

/// `zigzag`; null when there is no layout here.
FailureOr<LayoutAttr> parseOptionalLayout(AsmParser &parser);
void print(AsmPrinter &printer, LayoutAttr layout);

/// `sq = 4096 zigzag`.
FailureOr<AxisAttr> parseAxis(AsmParser &parser);
void print(AsmPrinter &printer, AxisAttr axis);

/// `h/4` or `128`.
FailureOr<DimAttr> parseDim(AsmParser &parser);
void print(AsmPrinter &printer, DimAttr dim);

/// `sq -> (node, gpu) zigzag`.
FailureOr<CutAttr> parseCut(AsmParser &parser);
void print(AsmPrinter &printer, CutAttr cut);

/// `[sq -> gpu, h -> node]`.
FailureOr<PlacementAttr> parsePlacement(AsmParser &parser);
void print(AsmPrinter &printer, PlacementAttr placement);

/// `at [...] shard [...] replicate [...] inside [...]`, each optional.
FailureOr<BindingAttr> parseBinding(AsmParser &parser, StringRef name);
void printBindingBody(AsmPrinter &printer, BindingAttr binding);

/// `by sq on gpu, direction -1`.
FailureOr<ShiftAttr> parseShift(AsmParser &parser);
void print(AsmPrinter &printer, ShiftAttr shift);

/// `sk_outer in sk of 4 parallel(gpu) shift(...)`.
FailureOr<LoopAttr> parseLoop(AsmParser &parser);
void print(AsmPrinter &printer, LoopAttr loop);

/// `causal documents[0, 5, 14]`.
FailureOr<MaskAttr> parseMask(AsmParser &parser);
void print(AsmPrinter &printer, MaskAttr mask);

/// The attributes of a list, between commas.
template <typename AttrTy> void printList(AsmPrinter &printer, ArrayAttr list) {
  llvm::interleaveComma(list.getAsRange<AttrTy>(), printer.getStream(),
                        [&](AttrTy attr) { print(printer, attr); });
}

} // namespace mlir::commir::syntax

#endif // DIALECT_COMMIR_SYNTAX_H
