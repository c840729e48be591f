//===- KernelLibrary.cpp - Generated kernels by name and type -------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/KernelsToLLVM/KernelLibrary.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::commir;

static constexpr KernelText kKernels[] = {
#include "lib/Conversion/KernelText.inc"
};

void mlir::commir::printConversion(raw_ostream &stream, StringRef name,
                                   Type from, Type to) {
  stream << "func.func private @" << name << "(%x: " << from << ") -> " << to
         << " {\n";
  if (from == to)
    stream << "  return %x : " << to << "\n}\n";
  else
    stream << "  %y = arith."
           << (getElementTypeOrSelf(from).getIntOrFloatBitWidth() <
                       getElementTypeOrSelf(to).getIntOrFloatBitWidth()
                   ? "extf"
                   : "truncf")
           << " %x : " << from << " to " << to << "\n  return %y : " << to
           << "\n}\n";
}

void mlir::commir::printOverwrites(raw_ostream &stream, bool overwrites) {
  stream << "func.func private @overwrites() -> i1 {\n  %x = arith.constant "
         << (overwrites ? "true" : "false") << "\n  return %x : i1\n}\n";
}

bool mlir::commir::canOverwrite(StringRef kernel) {
  static constexpr StringLiteral kKernelsThatCan[] = {
      "attention_fwd", "matmul", "softmax_merge_all", "sum_all"};
  return llvm::is_contained(kKernelsThatCan, kernel);
}

std::string mlir::commir::getInstanceName(StringRef kernel, KernelTypes types) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  stream << kernel << "_" << types.input << "_" << types.accumulator << "_"
         << types.output << (types.overwrites ? "_overwrite" : "");
  return name;
}

LogicalResult mlir::commir::checkKernelTypes(StringRef kernel,
                                             KernelTypes types, Location loc) {
  if (types.input.getIntOrFloatBitWidth() >
      types.accumulator.getIntOrFloatBitWidth())
    return emitError(loc) << "kernel '" << kernel << "' takes " << types.input
                          << " but would accumulate in " << types.accumulator
                          << "; give its results a type as wide";

  // The C library of compiled code has no such conversion, and rounding twice
  // is not rounding.
  if (types.accumulator.isF64() && types.output.isBF16())
    return emitError(loc) << "kernel '" << kernel << "' cannot round f64 to "
                          << "bf16 yet; give its result another type";
  return success();
}

FailureOr<func::FuncOp> mlir::commir::getOrCreateKernel(ModuleOp module,
                                                        StringRef kernel,
                                                        KernelTypes types,
                                                        Location loc) {
  std::string symbol = "mercury_kernel_" + getInstanceName(kernel, types);
  if (auto made = module.lookupSymbol<func::FuncOp>(symbol))
    return made;
  const KernelText *found = llvm::find_if(
      kKernels, [&](const KernelText &k) { return k.name == kernel; });
  if (found == std::end(kKernels))
    return emitError(loc) << "there is no generated kernel '" << kernel << "'";
  if (failed(checkKernelTypes(kernel, types, loc)))
    return failure();

  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "!in = " << types.input << "\n!acc = " << types.accumulator
         << "\n!out = " << types.output << "\n"
         << found->text;
  printConversion(stream, "widen", types.input, types.accumulator);
  printConversion(stream, "narrow", types.accumulator, types.output);
  printConversion(stream, "widen_out", types.output, types.accumulator);
  printOverwrites(stream, types.overwrites);
  OwningOpRef<ModuleOp> instance =
      parseSourceString<ModuleOp>(text, module.getContext());
  if (!instance)
    return emitError(loc) << "kernel '" << kernel << "' does not parse";

  // Names are unique a kernel instance, and the plan's own functions stay
  // apart. A kernel has large stack arrays, so it is never inlined into a loop.
  func::FuncOp result;
  for (auto function :
       llvm::make_early_inc_range(instance->getOps<func::FuncOp>())) {
    bool main = function.getSymName() == kernel;
    std::string name =
        main ? symbol : symbol + "_" + function.getSymName().str();
    StringAttr renamed = StringAttr::get(module.getContext(), name);
    if (failed(SymbolTable::replaceAllSymbolUses(function, renamed, *instance)))
      return failure();
    function.setSymNameAttr(renamed);
    function.setPrivate();
    if (main) {
      function.setNoInline(true);
      result = function;
    }
  }
  for (auto function :
       llvm::make_early_inc_range(instance->getOps<func::FuncOp>()))
    function->moveBefore(module.getBody(), module.getBody()->end());
  return result;
}
