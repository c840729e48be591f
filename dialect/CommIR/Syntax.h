//===- Syntax.h - Text of commir attributes -----------------------*- C++ -*-===//
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

/// A name: an identifier, or a string when it is not one.
FailureOr<StringAttr> parseName(AsmParser &parser);
void printName(AsmPrinter &printer, StringRef name);

/// `[a, b]`.
ParseResult parseNames(AsmParser &parser, AsmParser::Delimiter delimiter,
                       SmallVectorImpl<StringAttr> &names);
void printNames(AsmPrinter &printer, ArrayRef<StringAttr> names);

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

} // namespace mlir::commir::syntax

#endif // DIALECT_COMMIR_SYNTAX_H
