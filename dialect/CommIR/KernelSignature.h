//===- KernelSignature.h - Shapes that a kernel takes and gives -*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_COMMIR_KERNELSIGNATURE_H
#define DIALECT_COMMIR_KERNELSIGNATURE_H

#include "dialect/CommIR/CommIR.h"

namespace mlir::commir {

/// The lane of a launch that runs beside others, until commir-assign-lanes.
inline constexpr StringLiteral kLane = "commir.lane";

/// The dimensions of a kernel's operands and results by letter, written
/// `"m k, k n -> m n"`. `h/g` is the dimension `h` divided by some whole
/// number.
struct KernelSignature {
  struct Dim {
    StringRef letter;
    bool divided = false;
    bool operator==(const Dim &other) const {
      return letter == other.letter && divided == other.divided;
    }
  };
  using Shape = SmallVector<Dim>;

  SmallVector<Shape> operands;
  SmallVector<Shape> results;

  /// The signature of a kernel that Mercury knows, empty for any other name.
  static StringRef known(StringRef kernel);

  /// The names of the kernels that Mercury knows, for messages.
  static StringRef knownNames();

  /// The dimensions whose global start a kernel asks for at launch.
  static SmallVector<Dim> positions(StringRef kernel);

  /// Whether a kernel is attention in some form: it takes a mask, a scale and
  /// grouped heads.
  static bool isAttention(StringRef kernel);

  /// Whether a kernel can write a result, in one launch, in a type narrower
  /// than it sums in. Kernels of others can, but for statistics.
  static bool canRound(StringRef kernel, unsigned result, bool isGenerated);

  /// Whether a kernel adds what its result holds before it rounds the sum, so
  /// that a narrow result is merged into at the cost of one rounding.
  static bool addsBeforeRounding(StringRef kernel);

  /// Whether the results of a kernel are a pair (o, lse), merged by softmax.
  static bool makesSoftmax(StringRef kernel);

  /// What a merge of a result of a kernel starts from.
  static double getIdentity(StringRef kernel, unsigned result);

  /// The elements, of its accumulators' type, that a generated kernel works in
  /// beside its operands; `sizeOf` gives the size of a letter of its signature
  /// in the largest tile.
  static int64_t getScratch(StringRef kernel,
                            function_ref<int64_t(StringRef)> sizeOf);

  /// Parses a signature; nullopt when it is not of the form above.
  static std::optional<KernelSignature> parse(StringRef text);
};

/// Checks a kernel's operands, results and mask against its signature.
LogicalResult verifySignature(KernelOp kernel);

/// The tile dimension that `dim` of the kernel's signature is bound to, or
/// null.
DimAttr getBoundDim(KernelOp kernel, KernelSignature::Dim dim);

/// The smallest divisor with which a kernel, if there is one, takes `axis`; 0
/// where it does not.
int64_t getFinestDivisor(KernelOp kernel, StringRef axis);

} // namespace mlir::commir

#endif // DIALECT_COMMIR_KERNELSIGNATURE_H
