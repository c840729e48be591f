//===- EmbedDeviceImage.cpp - Compiled kernels as a constant --------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/KernelsToNVVM/DeviceLibrary.h"
#include "lib/Conversion/Passes.h"

namespace mlir::commir {
#define GEN_PASS_DEF_EMBEDDEVICEIMAGE
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::commir

using namespace mlir;
using namespace mlir::commir;

namespace {
struct EmbedDeviceImage
    : public commir::impl::EmbedDeviceImageBase<EmbedDeviceImage> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.lookupSymbol<gpu::GPUModuleOp>(kDeviceModule)) {
      module.emitError() << "the kernels of '" << kDeviceModule
                         << "' must be compiled before they are embedded; run "
                            "gpu-module-to-binary first";
      return signalPassFailure();
    }
    auto binary = module.lookupSymbol<gpu::BinaryOp>(kDeviceModule);
    if (!binary)
      return; // a plan that launches no kernel of its own
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    // A driver reads PTX as text that ends in 0.
    std::string image = object.getObject().getValue().str();
    if (image.empty() || image.back() != '\0')
      image.push_back('\0');

    Builder builder(&getContext());
    auto bytes = module.lookupSymbol<LLVM::GlobalOp>(kDeviceImageBytes);
    bytes.setValueAttr(builder.getI64IntegerAttr(image.size()));
    auto constant = module.lookupSymbol<LLVM::GlobalOp>(kDeviceImage);
    constant.setGlobalType(
        LLVM::LLVMArrayType::get(builder.getI8Type(), image.size()));
    constant.setValueAttr(builder.getStringAttr(image));
    binary.erase();
  }
};
} // namespace
