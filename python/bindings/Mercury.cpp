//===- Mercury.cpp - What the Python package asks of the compiler ---------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mercury-c/CommIR.h"
#include "mercury-c/ExecutionEngine.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/Pass.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/tuple.h"
#include "nanobind/stl/vector.h"
#include "python/bindings/Diagnostics.h"
#include "python/bindings/PlanTrace.h"
#include "python/bindings/Simulator.h"
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace mercury;

namespace {
/// Compiled code, for as long as somebody holds it.
class Jit {
public:
  Jit(MlirModule module, int level, const std::vector<std::string> &libraries) {
    std::vector<MlirStringRef> paths;
    for (const std::string &path : libraries)
      paths.push_back(mlirStringRefCreate(path.data(), path.size()));
    ErrorCollector errors(mlirModuleGetContext(module));
    engine =
        mercuryExecutionEngineCreate(module, level, paths.size(), paths.data());
    if (mlirExecutionEngineIsNull(engine)) {
      std::string text = "the module cannot be compiled to machine code";
      for (const Message &message : errors.take())
        text += ": " + message.front().second;
      throw std::runtime_error(text);
    }
  }
  ~Jit() { mlirExecutionEngineDestroy(engine); }
  Jit(const Jit &) = delete;

  uintptr_t lookup(const std::string &name) const {
    void *found = mlirExecutionEngineLookup(
        engine, mlirStringRefCreate(name.data(), name.size()));
    if (!found)
      throw nb::key_error(name.c_str());
    return reinterpret_cast<uintptr_t>(found);
  }

private:
  MlirExecutionEngine engine;
};
} // namespace

NB_MODULE(_mercury, m) {
  m.doc() = "what the Python package asks of the compiler";

  m.def(
      "apply_schedule",
      [](MlirModule payload,
         MlirModule script) -> std::pair<nb::object, std::vector<Message>> {
        ErrorCollector errors(mlirModuleGetContext(payload));
        MlirModule result = mercuryApplySchedule(payload, script);
        if (mlirModuleIsNull(result))
          return {nb::none(), errors.take()};
        return {nb::cast(result), {}};
      },
      nb::arg("payload"), nb::arg("script"),
      "Applies a script's __transform_main to a clone of the payload: (clone, "
      "[]), or (None, diagnostics) with the payload unchanged.");

  m.def(
      "clone",
      [](MlirModule module) {
        return mlirModuleFromOperation(
            mlirOperationClone(mlirModuleGetOperation(module)));
      },
      nb::arg("module"), "Gives a module of its own with the same contents.");

  m.def(
      "run_pipeline",
      [](MlirModule module, const std::string &pipeline, bool verify) {
        MlirContext context = mlirModuleGetContext(module);
        ErrorCollector errors(context);
        MlirPassManager passes = mlirPassManagerCreate(context);
        mlirPassManagerEnableVerifier(passes, verify);
        std::string problem;
        auto append = [](MlirStringRef piece, void *data) {
          static_cast<std::string *>(data)->append(piece.data, piece.length);
        };
        MlirLogicalResult parsed = mlirParsePassPipeline(
            mlirPassManagerGetAsOpPassManager(passes),
            mlirStringRefCreate(pipeline.data(), pipeline.size()), append,
            &problem);
        MlirLogicalResult ran = mlirLogicalResultFailure();
        if (mlirLogicalResultIsSuccess(parsed)) {
          nb::gil_scoped_release release;
          ran = mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module));
        }
        mlirPassManagerDestroy(passes);
        std::vector<Message> messages = errors.take();
        if (!problem.empty())
          messages.push_back({{"", problem}});
        return std::make_tuple(mlirLogicalResultIsSuccess(ran), messages,
                               errors.takeRemarks());
      },
      nb::arg("module"), nb::arg("pipeline"), nb::arg("verify") = true,
      "Runs a pass pipeline on the module in place, and verifies the module "
      "after each pass: (succeeded, errors, remarks).");

  m.def(
      "check_plans",
      [](MlirModule module) {
        using Proof =
            std::tuple<std::string, int64_t, int64_t, int64_t, int64_t>;
        ErrorCollector errors(mlirModuleGetContext(module));
        std::vector<Proof> proofs;
        for (MlirOperation op =
                 mlirBlockGetFirstOperation(mlirModuleGetBody(module));
             !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
          MercuryPlanProof proof;
          if (!mercuryOperationIsAPlan(op) || !mercuryCheckPlan(op, &proof))
            continue;
          MlirStringRef name =
              mlirStringAttrGetValue(mlirOperationGetAttributeByName(
                  op, mlirStringRefCreateFromCString("sym_name")));
          proofs.emplace_back(std::string(name.data, name.length), proof.ranks,
                              proof.launches, proof.messages, proof.bytes);
        }
        return std::make_pair(proofs, errors.take());
      },
      nb::arg("module"),
      "Proves that each plan of a module means the program it was lowered "
      "from: "
      "([(name, ranks, launches, messages, bytes)], counterexamples).");

  defineTracePlan(m);
  defineSimulator(m);

  m.def(
      "layout_shard",
      [](MlirAttribute layout, int64_t extent, int64_t shards, int64_t index) {
        if (!mercuryAttributeIsALayout(layout))
          throw nb::type_error("expected a #commir.layout");
        intptr_t count =
            mercuryLayoutShard(layout, extent, shards, index, nullptr, 0);
        if (count < 0)
          throw nb::value_error("the layout cannot cut the axis so");
        std::vector<int64_t> bounds(2 * count);
        mercuryLayoutShard(layout, extent, shards, index, bounds.data(), count);
        std::vector<std::pair<int64_t, int64_t>> intervals;
        for (intptr_t i = 0; i < count; ++i)
          intervals.emplace_back(bounds[2 * i], bounds[2 * i + 1]);
        return intervals;
      },
      nb::arg("layout"), nb::arg("extent"), nb::arg("shards"), nb::arg("index"),
      "The half-open intervals of positions that a shard owns.");

  m.def(
      "layout_owner",
      [](MlirAttribute layout, int64_t extent, int64_t shards,
         int64_t position) {
        if (!mercuryAttributeIsALayout(layout))
          throw nb::type_error("expected a #commir.layout");
        int64_t owner = mercuryLayoutOwner(layout, extent, shards, position);
        if (owner < 0)
          throw nb::value_error("the layout cannot cut the axis so");
        return owner;
      },
      nb::arg("layout"), nb::arg("extent"), nb::arg("shards"),
      nb::arg("position"), "The shard that owns a position.");

  m.def(
      "level",
      [](MlirAttribute level) {
        if (!mercuryAttributeIsALevel(level))
          throw nb::type_error("expected a #commir.level");
        MlirStringRef name = mercuryLevelGetName(level);
        return std::make_pair(std::string(name.data, name.length),
                              mercuryLevelGetSize(level));
      },
      nb::arg("level"), "The name and the size of a mesh level.");

  m.def(
      "boundary",
      [](MlirAttribute binding) {
        if (!mercuryAttributeIsABinding(binding))
          throw nb::type_error("expected a #commir.binding");
        nb::list cuts;
        intptr_t count = mercuryBindingGetNumBoundaryCuts(binding);
        for (intptr_t i = 0; i < count; ++i) {
          MlirAttribute cut = mercuryBindingGetBoundaryCut(binding, i);
          MlirStringRef axis = mercuryCutGetAxis(cut);
          std::vector<MlirAttribute> factors;
          for (intptr_t f = 0; f < mercuryCutGetNumFactors(cut); ++f)
            factors.push_back(mercuryCutGetFactor(cut, f));
          MlirAttribute layout = mercuryCutGetLayout(cut);
          cuts.append(nb::make_tuple(
              std::string(axis.data, axis.length), nb::cast(factors),
              mlirAttributeIsNull(layout) ? nb::none() : nb::cast(layout)));
        }
        return cuts;
      },
      nb::sig("def boundary(binding: mercury._mlir.ir.Attribute) -> "
              "list[tuple[str, list[mercury._mlir.ir.Attribute], "
              "mercury._mlir.ir.Attribute | None]]"),
      nb::arg("binding"),
      "The cuts of a buffer's boundary placement: (axis, factors, layout), the "
      "layout None when it is the axis'.");

  nb::class_<Jit>(m, "Jit",
                  "Machine code of a module in the LLVM dialect. Functions of "
                  "the given shared libraries can be called by it.")
      .def(nb::init<MlirModule, int, const std::vector<std::string> &>(),
           nb::arg("module"), nb::arg("level"), nb::arg("libraries"))
      .def("lookup", &Jit::lookup, nb::arg("name"),
           "The address of a function; KeyError when there is none.");
}
