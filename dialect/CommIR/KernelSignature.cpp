//===- KernelSignature.cpp - Shapes that a kernel takes and gives ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/CommIR/KernelSignature.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::commir;

StringRef KernelSignature::known(StringRef kernel) {
  return llvm::StringSwitch<StringRef>(kernel)
      .Case("matmul", "m k, k n -> m n")
      .Case("attention_fwd",
            "b sq h d, b sk h/g d, b sk h/g e -> b sq h e, b h sq")
      .Case("attention_bwd",
            "b sq h d, b sk h/g d, b sk h/g e, b sq h e, b sq h e, b h sq -> "
            "b sq h d, b sk h/g d, b sk h/g e")
      .Case("softmax_sink", "h -> b sq h e, b h sq")
      .Case("softmax_sink_bwd", "b sq h e, b sq h e, b h sq, h -> h")
      .Default("");
}

StringRef KernelSignature::knownNames() {
  return "'matmul', 'attention_fwd', 'attention_bwd', 'softmax_sink', "
         "'softmax_sink_bwd'";
}

bool KernelSignature::makesSoftmax(StringRef kernel) {
  return kernel == "attention_fwd" || kernel == "softmax_sink";
}

bool KernelSignature::canRound(StringRef kernel, unsigned result,
                               bool isGenerated) {
  if (makesSoftmax(kernel) && result == 1)
    return false;
  return !isGenerated || kernel == "matmul" || kernel == "attention_fwd";
}

bool KernelSignature::addsBeforeRounding(StringRef kernel) {
  return kernel == "matmul";
}

double KernelSignature::getIdentity(StringRef kernel, unsigned result) {
  bool isPair = makesSoftmax(kernel) || kernel.starts_with("softmax_merge");
  return isPair && result == 1 ? -std::numeric_limits<double>::infinity() : 0.0;
}

bool KernelSignature::isAttention(StringRef kernel) {
  return kernel == "attention_fwd" || kernel == "attention_bwd";
}

/// The blocks that lib/Kernels/README.md states; what no memory can hold is the
/// largest number there is.
int64_t KernelSignature::getScratch(StringRef kernel,
                                    function_ref<int64_t(StringRef)> sizeOf) {
  if (!isAttention(kernel))
    return 0;
  uint64_t d = sizeOf("d"), e = sizeOf("e");
  if (std::max(d, e) > uint64_t(1) << 50)
    return std::numeric_limits<int64_t>::max();
  uint64_t dPadded = llvm::alignTo(d, 64), ePadded = llvm::alignTo(e, 64);
  return kernel == "attention_fwd"
             ? 64 * (2 * d + 2 * ePadded)
             : 64 * (d + e + 2 * dPadded + ePadded + 2 * 64);
}

SmallVector<KernelSignature::Dim> KernelSignature::positions(StringRef kernel) {
  if (isAttention(kernel))
    return {{"sq"}, {"sk"}, {"h"}, {"h", /*divided=*/true}};
  return {};
}

static bool isName(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char character) {
    return llvm::isAlnum(character) || character == '_';
  });
}

static std::optional<SmallVector<KernelSignature::Shape>>
parseShapes(StringRef text) {
  SmallVector<KernelSignature::Shape> shapes;
  SmallVector<StringRef> pieces;
  text.split(pieces, ',');
  for (StringRef piece : pieces) {
    KernelSignature::Shape &shape = shapes.emplace_back();
    SmallVector<StringRef> words;
    piece.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    if (words.empty())
      return std::nullopt;
    for (StringRef word : words) {
      auto [letter, divisor] = word.split('/');
      if (!isName(letter) || (word.contains('/') && !isName(divisor)))
        return std::nullopt;
      shape.push_back({letter, !divisor.empty()});
    }
  }
  return shapes;
}

std::optional<KernelSignature> KernelSignature::parse(StringRef text) {
  auto [operands, results] = text.split("->");
  auto parsedOperands = parseShapes(operands);
  auto parsedResults = parseShapes(results);
  if (!parsedOperands || !parsedResults)
    return std::nullopt;
  return KernelSignature{*parsedOperands, *parsedResults};
}

static StringRef getSignatureText(KernelOp kernel) {
  if (std::optional<StringRef> given = kernel.getSignature())
    return *given;
  return KernelSignature::known(kernel.getKernel());
}

DimAttr mlir::commir::getBoundDim(KernelOp kernel, KernelSignature::Dim dim) {
  std::optional<KernelSignature> signature =
      KernelSignature::parse(getSignatureText(kernel));
  if (!signature)
    return {};
  for (auto [shape, input] : llvm::zip(signature->operands, kernel.getInputs()))
    for (auto [found, bound] :
         llvm::zip(shape, cast<TileType>(input.getType()).getDims()))
      if (found == dim)
        return bound;
  return {};
}

int64_t mlir::commir::getFinestDivisor(KernelOp kernel, StringRef axis) {
  int64_t finest = 0;
  if (kernel)
    for (Value input : kernel.getInputs())
      for (DimAttr dim : cast<TileType>(input.getType()).getDims())
        if (!dim.isConstant() && dim.getAxis() == axis)
          finest = finest == 0 ? dim.getDivisor()
                               : std::min(finest, dim.getDivisor());
  return finest;
}

namespace {
/// Binds the letters of a signature to tile dimensions, one value at a time.
class ShapeUnifier {
public:
  explicit ShapeUnifier(KernelOp kernel) : kernel(kernel) {}

  LogicalResult unify(const KernelSignature::Shape &shape, Value value,
                      const Twine &where) {
    ArrayRef<DimAttr> dims = cast<TileType>(value.getType()).getDims();
    if (dims.size() != shape.size())
      return kernel.emitOpError()
             << where << " of kernel '" << kernel.getKernel()
             << "' must have as many dimensions as its signature, "
             << shape.size() << ", got " << dims.size();
    for (auto [dim, bound] : llvm::zip(shape, dims))
      if (failed(unify(dim, bound, where)))
        return failure();
    return success();
  }

  /// An axis that is both kept and contracted would be cut along both at once.
  LogicalResult checkAxes() {
    for (auto &one : letters)
      for (auto &other : letters) {
        DimAttr dim = one.second;
        StringRef letter = StringRef(one.first()).trim('/');
        StringRef second = StringRef(other.first()).trim('/');
        if (!dim.isConstant() && letter < second &&
            dim.getAxis() == other.second.getAxis())
          return kernel.emitOpError()
                 << "dimensions '" << letter << "' and '" << second
                 << "' of a kernel must not run over one axis, '"
                 << dim.getAxis() << "'; declare an axis for each";
      }
    return success();
  }

private:
  LogicalResult unify(KernelSignature::Dim dim, DimAttr bound,
                      const Twine &where) {
    std::string key = dim.letter.str() + (dim.divided ? "/" : "");
    auto [it, fresh] = letters.try_emplace(key, bound);
    bool agrees = it->second == bound;
    // `h/g` is a fraction of the axis that `h` is bound to.
    auto other = letters.find(dim.letter.str() + (dim.divided ? "" : "/"));
    if (fresh && other != letters.end())
      agrees = dim.divided ? isFraction(bound, other->second)
                           : isFraction(other->second, bound);
    if (agrees)
      return success();
    DimAttr expected = fresh ? other->second : it->second;
    return kernel.emitOpError()
           << "dimension '" << dim.letter << (dim.divided ? "/g" : "")
           << "' must agree across the kernel, expected " << describe(expected)
           << " but " << where << " has " << describe(bound);
  }

  static bool isFraction(DimAttr part, DimAttr whole) {
    if (part.isConstant() || whole.isConstant())
      return part == whole;
    return part.getAxis() == whole.getAxis() &&
           part.getDivisor() % whole.getDivisor() == 0;
  }

  static std::string describe(DimAttr dim) {
    if (dim.isConstant())
      return std::to_string(dim.getValue());
    std::string text = "'" + dim.getAxis().str();
    if (dim.getDivisor() != 1)
      text += "/" + std::to_string(dim.getDivisor());
    return text + "'";
  }

  KernelOp kernel;
  llvm::StringMap<DimAttr> letters;
};
} // namespace

static LogicalResult verifyMask(KernelOp kernel) {
  std::optional<MaskAttr> mask = kernel.getMask();
  if (!mask || mask->isFull())
    return success();
  DimAttr query = getBoundDim(kernel, {"sq"});
  DimAttr key = getBoundDim(kernel, {"sk"});
  if (!query || !key || query.isConstant() || key.isConstant())
    return kernel.emitOpError()
           << "mask must be given to a kernel over sq and sk, '"
           << kernel.getKernel() << "' is not";
  for (DimAttr dim : {query, key})
    if (dim.getDivisor() != 1)
      return kernel.emitOpError()
             << "mask must speak of whole axes, got '" << dim.getAxis() << "/"
             << dim.getDivisor() << "'";
  auto program = kernel->getParentOfType<ProgramOp>();
  if (mask->getDocuments().empty() || !program)
    return success();
  int64_t end = mask->getDocuments().back();
  for (DimAttr dim : {query, key}) {
    AxisAttr axis = program.getAxis(dim.getAxis());
    if (axis && axis.getExtent() != end)
      return kernel.emitOpError()
             << "document bounds must end at the extent of both axes, got "
             << end << " for axis '" << axis.getName() << "' of extent "
             << axis.getExtent();
  }
  return success();
}

LogicalResult mlir::commir::verifySignature(KernelOp kernel) {
  StringRef text = getSignatureText(kernel);
  if (text.empty())
    return kernel.emitOpError()
           << "kernel '" << kernel.getKernel()
           << "' must be known or give a signature, as in signature(\"m k, k n "
              "-> m n\"); known are "
           << KernelSignature::knownNames();
  std::optional<KernelSignature> signature = KernelSignature::parse(text);
  if (!signature)
    return kernel.emitOpError() << "signature \"" << text
                                << "\" must list operands and results, as in "
                                   "\"m k, k n -> m n\"";
  if (kernel.getInputs().size() != signature->operands.size())
    return kernel.emitOpError() << "kernel '" << kernel.getKernel()
                                << "' must have the operands of its signature, "
                                << signature->operands.size() << ", got "
                                << kernel.getInputs().size();
  if (kernel.getOutputs().size() != signature->results.size())
    return kernel.emitOpError() << "kernel '" << kernel.getKernel()
                                << "' must have the results of its signature, "
                                << signature->results.size() << ", got "
                                << kernel.getOutputs().size();
  ShapeUnifier unifier(kernel);
  for (auto [i, shape] : llvm::enumerate(signature->operands))
    if (failed(
            unifier.unify(shape, kernel.getInputs()[i], "operand " + Twine(i))))
      return failure();
  for (auto [i, shape] : llvm::enumerate(signature->results))
    if (failed(
            unifier.unify(shape, kernel.getOutputs()[i], "result " + Twine(i))))
      return failure();
  if (failed(unifier.checkAxes()))
    return failure();
  return verifyMask(kernel);
}
