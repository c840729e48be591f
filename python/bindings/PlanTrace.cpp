//===- PlanTrace.cpp - Events of a plan, for Python -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python/bindings/PlanTrace.h"
#include "mercury-c/CommIR.h"
#include "mercury-c/PlanTrace.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "python/bindings/Diagnostics.h"

namespace nb = nanobind;
using namespace mercury;

static nb::str toText(MlirStringRef text) {
  return nb::str(text.data, text.length);
}

static nb::tuple toTuple(MercuryIntegers integers) {
  nb::list values;
  for (intptr_t i = 0; i < integers.count; ++i)
    values.append(integers.values[i]);
  return nb::tuple(values);
}

static nb::list toBoxes(intptr_t count, const MercuryMemoryBox *boxes) {
  nb::list made;
  for (intptr_t i = 0; i < count; ++i) {
    const MercuryMemoryBox &box = boxes[i];
    nb::dict fields;
    fields["memory"] = toText(box.memory);
    fields["number"] = box.number;
    fields["owner"] = box.owner;
    fields["offset"] = box.offset;
    fields["dtype"] = toText(box.elementType);
    fields["bytes"] = box.bytes;
    fields["sizes"] = toTuple(box.sizes);
    fields["strides"] = toTuple(box.strides);
    made.append(fields);
  }
  return made;
}

static std::string toText(MlirLocation location) {
  std::string text;
  mlirLocationPrint(
      location,
      [](MlirStringRef piece, void *data) {
        static_cast<std::string *>(data)->append(piece.data, piece.length);
      },
      &text);
  return text;
}

static nb::dict toDict(const MercuryPlanEvent &event) {
  nb::dict fields;
  fields["kind"] = toText(event.kind);
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(event.operation));
  fields["op"] = toText(name);
  fields["location"] = toText(mlirOperationGetLocation(event.operation));
  fields["steps"] = toTuple(event.steps);
  fields["sections"] = toTuple(event.sections);
  fields["kernel"] = toText(event.kernel);
  fields["implementation"] = toText(event.implementation);
  fields["signature"] = toText(event.signature);
  nb::dict positions;
  for (intptr_t i = 0; i < event.numPositions; ++i)
    positions[toText(event.positions[i].dimension)] = event.positions[i].begin;
  fields["positions"] = positions;
  fields["inputs"] = toBoxes(event.numInputs, event.inputs);
  fields["outputs"] = toBoxes(event.numOutputs, event.outputs);
  nb::list levels;
  for (intptr_t i = 0; i < event.numLevels; ++i)
    levels.append(toText(event.levels[i]));
  fields["levels"] = nb::tuple(levels);
  fields["overwrites"] = toTuple(event.overwrites);
  fields["members"] = toTuple(event.members);
  fields["to"] = event.to;
  fields["from"] = event.from;
  fields["happens"] = event.happens;
  fields["lengths"] = toTuple(event.lengths);
  fields["token"] = event.token;
  fields["lease"] = event.lease;
  return fields;
}

void mercury::defineTracePlan(nb::module_ &module) {
  module.def(
      "trace_plan",
      [](MlirModule plans, const std::string &name,
         int64_t rank) -> std::pair<nb::object, std::vector<Message>> {
        ErrorCollector errors(mlirModuleGetContext(plans));
        MlirOperation plan =
            mlirBlockGetFirstOperation(mlirModuleGetBody(plans));
        for (; !mlirOperationIsNull(plan);
             plan = mlirOperationGetNextInBlock(plan)) {
          if (!mercuryOperationIsAPlan(plan))
            continue;
          MlirStringRef symbol =
              mlirStringAttrGetValue(mlirOperationGetAttributeByName(
                  plan, mlirStringRefCreateFromCString("sym_name")));
          if (std::string(symbol.data, symbol.length) == name)
            break;
        }
        if (mlirOperationIsNull(plan))
          throw nb::key_error(name.c_str());
        nb::list events;
        auto append = [](const MercuryPlanEvent *event, void *data) {
          static_cast<nb::list *>(data)->append(toDict(*event));
        };
        if (!mercuryTracePlan(plan, rank, append, &events))
          return {nb::none(), errors.take()};
        return {events, {}};
      },
      nb::sig("def trace_plan(module: mercury._mlir.ir.Module, name: str, "
              "rank: int) -> tuple[list[dict[str, object]] | None, "
              "list[list[tuple[str, str]]]]"),
      nb::arg("module"), nb::arg("name"), nb::arg("rank"),
      "What a rank does in the plan of that name, event by event: (events, "
      "[]), "
      "or (None, diagnostics). The fields are those of MercuryPlanEvent in "
      "mercury-c/PlanTrace.h.");
}
