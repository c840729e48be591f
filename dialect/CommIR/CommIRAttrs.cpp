//===- CommIRAttrs.cpp - Attributes of the commir dialect -----------------===//
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

#include "dialect/CommIR/CommIREnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/CommIR/CommIRAttrs.cpp.inc"

void CommIRDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/CommIR/CommIRAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// The `#commir.x<...>` shell around each attribute's text
//===----------------------------------------------------------------------===//

template <typename AttrTy>
static Attribute parseShell(AsmParser &parser,
                            FailureOr<AttrTy> (*parse)(AsmParser &)) {
  if (parser.parseLess())
    return {};
  FailureOr<AttrTy> attr = parse(parser);
  if (failed(attr) || parser.parseGreater())
    return {};
  return *attr;
}

template <typename AttrTy>
static void printShell(AsmPrinter &printer, AttrTy attr) {
  printer << "<";
  syntax::print(printer, attr);
  printer << ">";
}

static FailureOr<LayoutAttr> parseLayout(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  FailureOr<LayoutAttr> layout = syntax::parseOptionalLayout(parser);
  if (succeeded(layout) && !*layout)
    return parser.emitError(
        loc, "expected 'block', 'zigzag', 'striped(c)' or 'bounds[...]'");
  return layout;
}

Attribute LevelAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseLevel);
}
void LevelAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute LayoutAttr::parse(AsmParser &p, Type) {
  return parseShell(p, parseLayout);
}
void LayoutAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute AxisAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseAxis);
}
void AxisAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute DimAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseDim);
}
void DimAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute CutAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseCut);
}
void CutAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute PlacementAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parsePlacement);
}
void PlacementAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute ShiftAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseShift);
}
void ShiftAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute LoopAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseLoop);
}
void LoopAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute MaskAttr::parse(AsmParser &p, Type) {
  return parseShell(p, syntax::parseMask);
}
void MaskAttr::print(AsmPrinter &p) const { printShell(p, *this); }

Attribute BindingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<StringAttr> name = syntax::parseName(parser);
  if (failed(name))
    return {};
  FailureOr<BindingAttr> binding =
      syntax::parseBinding(parser, name->getValue());
  if (failed(binding) || parser.parseGreater())
    return {};
  return *binding;
}
void BindingAttr::print(AsmPrinter &printer) const {
  printer << "<";
  syntax::printName(printer, getName());
  syntax::printBindingBody(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

Layout LayoutAttr::getLayout() const {
  Layout layout;
  layout.kind = getKind();
  layout.chunk = getChunk();
  layout.bounds.assign(getBounds().begin(), getBounds().end());
  return layout;
}

bool CutAttr::hasLevel(StringRef level) const {
  return llvm::any_of(getFactors(), [&](Attribute factor) {
    auto name = dyn_cast<StringAttr>(factor);
    return name && name.getValue() == level;
  });
}

CutAttr PlacementAttr::getCut(StringRef axis) const {
  for (CutAttr cut : getCuts())
    if (cut.getAxis() == axis)
      return cut;
  return {};
}

bool PlacementAttr::hasLevel(StringRef level) const {
  return llvm::any_of(getCuts(),
                      [&](CutAttr cut) { return cut.hasLevel(level); });
}

bool LoopAttr::isParallelOn(StringRef level) const {
  return llvm::any_of(getLevels(),
                      [&](StringAttr name) { return name == level; });
}

bool LoopAttr::isOver(StringRef axis) const {
  return llvm::any_of(getAxes(), [&](StringAttr name) { return name == axis; });
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

using EmitError = function_ref<InFlightDiagnostic()>;

LogicalResult LevelAttr::verify(EmitError emitError, StringRef name,
                                int64_t size) {
  if (size < 1)
    return emitError() << "the size of level '" << name
                       << "' must be at least 1, got " << size;
  return success();
}

LogicalResult LayoutAttr::verify(EmitError emitError, Layout::Kind kind,
                                 int64_t chunk, ArrayRef<int64_t> bounds) {
  if (kind == Layout::Kind::Striped && chunk < 1)
    return emitError()
           << "the chunk of a striped layout must be at least 1, got " << chunk;
  if (kind == Layout::Kind::Striped && chunk > kMaxExtent)
    return emitError()
           << "the chunk of a striped layout must be at most 2^40, got "
           << chunk;
  if (kind == Layout::Kind::Bounds &&
      (bounds.size() < 2 || bounds.front() != 0 || !llvm::is_sorted(bounds)))
    return emitError() << "explicit bounds must rise from 0, got [" << bounds
                       << "]";
  return success();
}

LogicalResult AxisAttr::verify(EmitError emitError, StringRef name,
                               int64_t extent, LayoutAttr layout) {
  if (extent < 0)
    return emitError() << "the extent of axis '" << name
                       << "' must not be negative, got " << extent;
  if (extent > kMaxExtent)
    return emitError() << "the extent of axis '" << name
                       << "' must be at most 2^40, got " << extent;
  if (layout.getKind() == Layout::Kind::Bounds &&
      layout.getBounds().back() != extent)
    return emitError() << "the bounds of axis '" << name
                       << "' must end at its extent " << extent << ", got "
                       << layout.getBounds().back();
  return success();
}

LogicalResult DimAttr::verify(EmitError emitError, StringRef axis,
                              int64_t value) {
  if (axis.empty() && value < 0)
    return emitError() << "a constant dimension must not be negative, got "
                       << value;
  if (axis.empty() && value > kMaxExtent)
    return emitError() << "a constant dimension must be at most 2^40, got "
                       << value;
  if (!axis.empty() && value < 1)
    return emitError() << "the divisor of dimension '" << axis
                       << "' must be at least 1, got " << value;
  return success();
}

LogicalResult CutAttr::verify(EmitError emitError, StringRef axis,
                              ArrayRef<Attribute> factors, LayoutAttr) {
  if (factors.empty())
    return emitError() << "the cut of axis '" << axis
                       << "' must name at least one level or number";
  llvm::StringSet<> seen;
  for (Attribute factor : factors) {
    if (auto number = dyn_cast<IntegerAttr>(factor)) {
      if (number.getInt() < 1)
        return emitError() << "a number in the cut of axis '" << axis
                           << "' must be at least 1, got " << number.getInt();
      continue;
    }
    StringRef level = cast<StringAttr>(factor).getValue();
    if (!seen.insert(level).second)
      return emitError() << "the cut of axis '" << axis
                         << "' must not name a level twice, got '" << level
                         << "' again";
  }
  return success();
}

LogicalResult PlacementAttr::verify(EmitError emitError,
                                    ArrayRef<CutAttr> cuts) {
  llvm::StringSet<> axes, levels;
  for (CutAttr cut : cuts) {
    if (!axes.insert(cut.getAxis()).second)
      return emitError() << "a placement must not cut an axis twice, got '"
                         << cut.getAxis() << "' again";
    for (Attribute factor : cut.getFactors()) {
      auto level = dyn_cast<StringAttr>(factor);
      if (level && !levels.insert(level.getValue()).second)
        return emitError()
               << "a placement must not use a level for two cuts, got '"
               << level.getValue() << "' for '" << cut.getAxis() << "' as well";
    }
  }
  return success();
}

LogicalResult ShiftAttr::verify(EmitError emitError, ArrayRef<StringAttr> loops,
                                ArrayRef<StringAttr> levels, int64_t direction,
                                int64_t offset, ReadVia, ResultVia,
                                DictionaryAttr via, int64_t chunks, Type link) {
  if (loops.empty() || loops.size() != levels.size())
    return emitError()
           << "a shift must name at least one loop and level, as in "
              "'by sq on gpu'";
  llvm::StringSet<> seen;
  for (StringAttr level : levels)
    if (!seen.insert(level.getValue()).second)
      return emitError() << "a shift must not use a level twice, got '"
                         << level.getValue() << "' again";
  if (direction != 1 && direction != -1)
    return emitError() << "the direction of a shift must be 1 or -1, got "
                       << direction;
  if (offset < -kMaxShards || offset > kMaxShards)
    return emitError()
           << "the offset of a shift must be from -2^20 to 2^20, got "
           << offset;
  if (chunks < 1)
    return emitError() << "the chunks of a shift must be at least 1, got "
                       << chunks;
  if (chunks > kMaxShards)
    return emitError() << "the chunks of a shift must be at most 2^20, got "
                       << chunks;
  if (link && !isa<FloatType>(link))
    return emitError()
           << "the link type of a shift must be a floating-point type, got "
           << link;
  if (!via)
    return success();
  for (NamedAttribute entry : via) {
    auto mode = dyn_cast<StringAttr>(entry.getValue());
    if (!mode || (!symbolizeReadVia(mode) && !symbolizeResultVia(mode)))
      return emitError() << "buffer '" << entry.getName().getValue()
                         << "' in via must move by rotate, pull, travel, "
                            "deliver or fetch, got "
                         << entry.getValue();
  }
  return success();
}

LogicalResult LoopAttr::verify(EmitError emitError, StringRef name,
                               ArrayRef<StringAttr> axes, int64_t parts,
                               ArrayRef<StringAttr>, ShiftAttr) {
  if (axes.empty())
    return emitError() << "loop '" << name
                       << "' must run over at least one axis";
  llvm::StringSet<> seen;
  for (StringAttr axis : axes)
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "loop '" << name
                         << "' must not run over an axis twice, got '"
                         << axis.getValue() << "' again";
  if (parts < 1)
    return emitError() << "the parts of loop '" << name
                       << "' must be at least 1, got " << parts;
  return success();
}

LogicalResult MaskAttr::verify(EmitError emitError, int64_t left, int64_t right,
                               ArrayRef<int64_t> documents) {
  for (int64_t side : {left, right})
    if (side < -kUnbounded || side > kUnbounded)
      return emitError()
             << "the sides of a mask must be from -2^40 to 2^40, got " << side;
  if (left + right < 0)
    return emitError() << "a window must not be empty: left " << left
                       << " and right " << right << " leave no key";
  if (!documents.empty() && (documents.size() < 2 || documents.front() != 0 ||
                             !llvm::is_sorted(documents)))
    return emitError() << "document bounds must rise from 0, got [" << documents
                       << "]";
  return success();
}
