//===- Simulator.cpp - The simulator, for Python --------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python/bindings/Simulator.h"
#include "mercury-c/CommIR.h"
#include "mercury-c/Simulator.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "python/bindings/Diagnostics.h"
#include <stdexcept>

namespace nb = nanobind;
using namespace mercury;

namespace {
class Workload {
public:
  explicit Workload(MercuryWorkload handle) : handle(handle) {}
  ~Workload() { mercuryWorkloadDestroy(handle); }
  Workload(const Workload &) = delete;

  nb::dict getBytes() const {
    nb::dict bytes;
    for (intptr_t i = 0; i < mercuryWorkloadGetNumLevels(handle); ++i) {
      MlirStringRef name = mercuryWorkloadGetLevelName(handle, i);
      bytes[nb::str(name.data, name.length)] =
          mercuryWorkloadGetLevelBytes(handle, i);
    }
    return bytes;
  }

  nb::dict simulate(const std::string &machine, bool spans) const;

  MercuryWorkload handle;
};
} // namespace

static nb::str toText(MlirStringRef text) {
  return nb::str(text.data, text.length);
}

static nb::list toSpans(MercuryWorkload workload, MercurySimulation found) {
  nb::list spans;
  for (intptr_t i = 0; i < mercurySimulationGetNumSpans(found); ++i) {
    MercurySpan span = mercurySimulationGetSpan(workload, found, i);
    spans.append(nb::make_tuple(span.rank, toText(span.kind), toText(span.lane),
                                toText(span.group), span.peer,
                                toText(span.name), span.buffer, span.start,
                                span.end, span.bytes, span.step));
  }
  return spans;
}

nb::dict Workload::simulate(const std::string &machine, bool spans) const {
  std::string error;
  auto append = [](MlirStringRef piece, void *data) {
    static_cast<std::string *>(data)->append(piece.data, piece.length);
  };
  MercurySimulation found;
  {
    nb::gil_scoped_release release;
    found = mercurySimulate(handle,
                            mlirStringRefCreate(machine.data(), machine.size()),
                            spans, append, &error);
  }
  if (!found.ptr)
    throw std::runtime_error(error);
  nb::dict result;
  result["seconds"] = mercurySimulationGetSeconds(found);
  result["exposed"] = mercurySimulationGetExposed(found);
  nb::list busy, links;
  for (int64_t rank = 0; rank < mercuryWorkloadGetNumRanks(handle); ++rank)
    busy.append(mercurySimulationGetBusy(found, rank));
  for (intptr_t i = 0; i < mercurySimulationGetNumLinks(found); ++i)
    links.append(mercurySimulationGetLinkSeconds(found, i));
  result["busy"] = busy;
  result["link_seconds"] = links;
  result["spans"] = toSpans(handle, found);
  mercurySimulationDestroy(found);
  return result;
}

void mercury::defineSimulator(nb::module_ &module) {
  nb::class_<Workload>(module, "Workload",
                       "What all ranks of a plan ask of a machine.")
      .def_prop_ro(
          "ranks",
          [](const Workload &self) {
            return mercuryWorkloadGetNumRanks(self.handle);
          },
          "How many there are.")
      .def_prop_ro(
          "arena_bytes",
          [](const Workload &self) {
            return mercuryWorkloadGetArenaBytes(self.handle);
          },
          "Of both arenas of each rank.")
      .def_prop_ro("bytes_by_level", &Workload::getBytes,
                   nb::sig("def bytes_by_level(self) -> dict[str, int]"),
                   "What all ranks send over each level.")
      .def("simulate", &Workload::simulate,
           nb::sig("def simulate(self, machine: str, spans: bool) -> "
                   "dict[str, object]"),
           nb::arg("machine"), nb::arg("spans"),
           "Runs it on a machine, given as JSON: a dict of 'seconds', "
           "'exposed', 'busy' (by rank), 'link_seconds' (by link) and 'spans' "
           "(tuples of the fields of MercurySpan). RuntimeError when the "
           "machine lacks what it needs.");
  module.def(
      "workload",
      [](MlirModule plans) -> std::pair<nb::object, std::vector<Message>> {
        ErrorCollector errors(mlirModuleGetContext(plans));
        MlirOperation plan =
            mlirBlockGetFirstOperation(mlirModuleGetBody(plans));
        while (!mlirOperationIsNull(plan) && !mercuryOperationIsAPlan(plan))
          plan = mlirOperationGetNextInBlock(plan);
        if (mlirOperationIsNull(plan))
          throw nb::value_error("the module has no plan; run commir-to-spmd");
        MercuryWorkload handle = mercuryWorkloadCreate(plan);
        if (!handle.ptr)
          return {nb::none(), errors.take()};
        return {nb::cast(new Workload(handle), nb::rv_policy::take_ownership),
                {}};
      },
      nb::sig("def workload(module: mercury._mlir.ir.Module) -> "
              "tuple[Workload | None, list[list[tuple[str, str]]]]"),
      nb::arg("module"),
      "Follows all ranks through the plan of a module: (workload, []), or "
      "(None, diagnostics).");
}
