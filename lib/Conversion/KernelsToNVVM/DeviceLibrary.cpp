//===- DeviceLibrary.cpp - Generated kernels of a device ------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/KernelsToNVVM/DeviceLibrary.h"
#include "lib/Conversion/KernelsToNVVM/LaunchBuilder.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Inliner.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::commir;

static constexpr KernelText kDeviceKernels[] = {
#include "lib/Conversion/DeviceKernelText.inc"
};

/// Where the functions of a text begin; before it stand its types.
static constexpr StringLiteral kOpening = "gpu.module @device {\n";

static StringRef findText(StringRef name) {
  const KernelText *found = llvm::find_if(
      kDeviceKernels, [&](const KernelText &k) { return k.name == name; });
  return found == std::end(kDeviceKernels) ? StringRef() : found->text;
}

static int64_t getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

/// So many elements that the narrowest of them fill 16 bytes.
static int64_t getLanes(KernelTypes types) {
  return 16 / std::min(getBytes(types.input), getBytes(types.output));
}

/// Whether the accumulators are numbers that products are summed in, not only
/// copied or added.
static bool computes(KernelTypes types) {
  return types.accumulator.isF32() || types.accumulator.isF64();
}

/// `@from_lane(%x, %mask)`: the number of the thread of this warp whose lane
/// differs in the bits of the mask.
static void printFromLane(raw_ostream &stream, Type acc) {
  stream << "func.func private @from_lane(%x: !acc, %mask: i32) -> !acc {\n"
            "  %width = arith.constant 32 : i32\n";
  if (acc.isF32()) {
    stream << "  %y, %valid = gpu.shuffle xor %x, %mask, %width : f32\n"
              "  return %y : !acc\n}\n";
    return;
  }
  stream
      << "  %pair = vector.broadcast %x : f64 to vector<1xf64>\n"
         "  %halves = vector.bitcast %pair : vector<1xf64> to vector<2xi32>\n"
         "  %low = vector.extract %halves[0] : i32 from vector<2xi32>\n"
         "  %high = vector.extract %halves[1] : i32 from vector<2xi32>\n"
         "  %l, %v0 = gpu.shuffle xor %low, %mask, %width : i32\n"
         "  %h, %v1 = gpu.shuffle xor %high, %mask, %width : i32\n"
         "  %both = vector.from_elements %l, %h : vector<2xi32>\n"
         "  %whole = vector.bitcast %both : vector<2xi32> to vector<1xf64>\n"
         "  %y = vector.extract %whole[0] : f64 from vector<1xf64>\n"
         "  return %y : !acc\n}\n";
}

/// The template with what lib/Kernels/README.md promises it.
static std::string getInstanceText(StringRef text, KernelTypes types) {
  std::string lanes = "vector<" + std::to_string(getLanes(types)) + "x";
  std::string result;
  llvm::raw_string_ostream stream(result);
  stream << "!in = " << types.input << "\n!acc = " << types.accumulator
         << "\n!out = " << types.output << "\n!ins = " << lanes
         << "!in>\n!accs = " << lanes << "!acc>\n!outs = " << lanes
         << "!out>\n";
  auto [aliases, body] = text.split(kOpening);
  auto [noTypes, walks] = findText("walks").split(kOpening);
  auto [productTypes, products] = findText("products").split(kOpening);
  if (computes(types))
    stream << productTypes;
  stream << aliases << kOpening;
  for (StringRef functions : {walks, products})
    if (computes(types) || functions == walks)
      stream << functions.rtrim().drop_back(); // its closing brace
  auto printNumber = [&](StringRef name, int64_t number) {
    stream << "func.func private @" << name
           << "() -> index {\n  %c = arith.constant " << number
           << " : index\n  return %c : index\n}\n";
  };
  printNumber("lanes", getLanes(types));
  printNumber("in_bytes", getBytes(types.input));
  printNumber("acc_bytes", getBytes(types.accumulator));
  printNumber("out_bytes", getBytes(types.output));
  Type in = types.input, acc = types.accumulator, out = types.output;
  printConversion(stream, "widen", in, acc);
  printConversion(stream, "narrow", acc, out);
  printConversion(stream, "widen_out", out, acc);
  auto vectorOf = [&](Type type) {
    return VectorType::get({getLanes(types)}, type);
  };
  printConversion(stream, "widen_lanes", vectorOf(in), vectorOf(acc));
  printConversion(stream, "narrow_lanes", vectorOf(acc), vectorOf(out));
  printConversion(stream, "widen_out_lanes", vectorOf(out), vectorOf(acc));
  printOverwrites(stream, types.overwrites);
  if (computes(types))
    printFromLane(stream, acc);
  stream << body;
  return result;
}

namespace {
/// Of our own templates all may be inlined; upstream says no to any gpu.func.
struct KernelInliner : public InlinerInterface {
  using InlinerInterface::InlinerInterface;
  bool isLegalToInline(Operation *, Operation *, bool) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

/// Puts the body of every function in the place of its calls.
static LogicalResult inlineCalls(gpu::GPUModuleOp device) {
  KernelInliner interface(device.getContext());
  InlinerConfig config;
  while (true) {
    SmallVector<func::CallOp> calls;
    device.walk([&](func::CallOp call) {
      // From the bottom up: what it calls holds no call any more.
      auto callee = device.lookupSymbol<func::FuncOp>(call.getCallee());
      bool isLeaf =
          callee &&
          !callee.walk([](func::CallOp) { return WalkResult::interrupt(); })
               .wasInterrupted();
      if (isLeaf)
        calls.push_back(call);
    });
    if (calls.empty())
      return success();
    for (func::CallOp call : calls) {
      auto callee = device.lookupSymbol<func::FuncOp>(call.getCallee());
      if (failed(inlineCall(interface, config.getCloneCallback(), call, callee,
                            &callee.getBody())))
        return call.emitError() << "cannot be inlined into a kernel";
      call.erase();
    }
  }
}

/// The device module of the program, with the constants for its compiled form,
/// which commir-embed-device-image makes.
static gpu::GPUModuleOp getOrCreateDevice(ModuleOp module) {
  if (auto made = module.lookupSymbol<gpu::GPUModuleOp>(kDeviceModule))
    return made;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  Location loc = module.getLoc();
  auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, loc, bytes, /*isConstant=*/true,
                         LLVM::Linkage::External, kDeviceImage, Attribute());
  LLVM::GlobalOp::create(builder, loc, builder.getI64Type(),
                         /*isConstant=*/true, LLVM::Linkage::External,
                         kDeviceImageBytes, Attribute());
  builder.setInsertionPointToEnd(module.getBody());
  return gpu::GPUModuleOp::create(builder, loc, kDeviceModule);
}

FailureOr<func::FuncOp> mlir::commir::getOrCreateLauncher(ModuleOp module,
                                                          StringRef kernel,
                                                          KernelTypes types,
                                                          Location loc) {
  std::string name = getInstanceName(kernel, types);
  std::string launcher = "mercury_launch_" + name;
  if (auto made = module.lookupSymbol<func::FuncOp>(launcher))
    return made;
  StringRef text = findText(kernel);
  if (text.empty())
    return emitError(loc) << "there is no generated kernel '" << kernel
                          << "' for cuda";
  if (failed(checkKernelTypes(kernel, types, loc)))
    return failure();
  static constexpr StringLiteral kOfAnyType[] = {"accumulate", "copy", "fill"};
  if (!computes(types) && !llvm::is_contained(kOfAnyType, kernel))
    return emitError(loc) << "kernel '" << kernel
                          << "' accumulates in f32 or f64 on a device, got "
                          << types.accumulator
                          << "; give its results one of these types";
  OwningOpRef<ModuleOp> instance = parseSourceString<ModuleOp>(
      getInstanceText(text, types), module.getContext());
  if (!instance)
    return emitError(loc) << "kernel '" << kernel << "' does not parse";
  auto device = *instance->getOps<gpu::GPUModuleOp>().begin();
  if (failed(inlineCalls(device)))
    return failure();

  auto body = device.lookupSymbol<gpu::GPUFuncOp>(kernel);
  auto blocks = device.lookupSymbol<func::FuncOp>("blocks");
  body.setName(name);
  blocks.setName("mercury_blocks_" + name);
  blocks.setPrivate();
  body->moveBefore(getOrCreateDevice(module).getBody(),
                   getOrCreateDevice(module).getBody()->end());
  blocks->moveBefore(module.getBody(), module.getBody()->end());
  return createLauncher(module, launcher, body, blocks, getLanes(types), loc);
}
