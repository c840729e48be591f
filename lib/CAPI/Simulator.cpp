//===- Simulator.cpp - C API of the simulator -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Simulator.h"
#include "mercury-c/Simulator.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::simulator;

static Workload &unwrap(MercuryWorkload workload) {
  return *static_cast<Workload *>(workload.ptr);
}

static Simulation &unwrap(MercurySimulation simulation) {
  return *static_cast<Simulation *>(simulation.ptr);
}

MercuryWorkload mercuryWorkloadCreate(MlirOperation plan) {
  FailureOr<Workload> workload =
      Workload::create(cast<func::FuncOp>(unwrap(plan)));
  if (failed(workload))
    return {nullptr};
  return {new Workload(std::move(*workload))};
}

void mercuryWorkloadDestroy(MercuryWorkload workload) {
  delete &unwrap(workload);
}

int64_t mercuryWorkloadGetNumRanks(MercuryWorkload workload) {
  return unwrap(workload).getNumRanks();
}

int64_t mercuryWorkloadGetArenaBytes(MercuryWorkload workload) {
  return unwrap(workload).arenaBytes;
}

intptr_t mercuryWorkloadGetNumLevels(MercuryWorkload workload) {
  return unwrap(workload).levelNames.size();
}

MlirStringRef mercuryWorkloadGetLevelName(MercuryWorkload workload,
                                          intptr_t level) {
  return wrap(StringRef(unwrap(workload).levelNames[level]));
}

int64_t mercuryWorkloadGetLevelBytes(MercuryWorkload workload, intptr_t level) {
  return unwrap(workload).bytes[level];
}

MercurySimulation mercurySimulate(MercuryWorkload workload,
                                  MlirStringRef machine, bool recordSpans,
                                  MlirStringCallback error, void *userData) {
  auto fail = [&](llvm::Error found) -> MercurySimulation {
    std::string text = llvm::toString(std::move(found));
    error(wrap(StringRef(text)), userData);
    return {nullptr};
  };
  llvm::Expected<Machine> parsed = Machine::parse(unwrap(machine));
  if (!parsed)
    return fail(parsed.takeError());
  llvm::Expected<Simulation> simulation =
      simulate(unwrap(workload), *parsed, recordSpans);
  if (!simulation)
    return fail(simulation.takeError());
  return {new Simulation(std::move(*simulation))};
}

void mercurySimulationDestroy(MercurySimulation simulation) {
  delete &unwrap(simulation);
}

double mercurySimulationGetSeconds(MercurySimulation simulation) {
  return unwrap(simulation).seconds;
}

double mercurySimulationGetExposed(MercurySimulation simulation) {
  return unwrap(simulation).getExposed();
}

double mercurySimulationGetBusy(MercurySimulation simulation, int64_t rank) {
  return unwrap(simulation).busy[rank];
}

intptr_t mercurySimulationGetNumLinks(MercurySimulation simulation) {
  return unwrap(simulation).linkSeconds.size();
}

double mercurySimulationGetLinkSeconds(MercurySimulation simulation,
                                       intptr_t link) {
  return unwrap(simulation).linkSeconds[link];
}

intptr_t mercurySimulationGetNumSpans(MercurySimulation simulation) {
  return unwrap(simulation).spans.size();
}

static StringRef getName(Span::Kind kind) {
  switch (kind) {
  case Span::Kind::Kernel:
    return "kernel";
  case Span::Kind::Copy:
    return "copy";
  case Span::Kind::Transfer:
    return "transfer";
  case Span::Kind::Wait:
    return "wait";
  }
  llvm_unreachable("a kind of span");
}

static StringRef getName(Span::Lane lane) {
  switch (lane) {
  case Span::Lane::Compute:
    return "compute";
  case Span::Lane::Messages:
    return "messages";
  case Span::Lane::Pulls:
    return "pulls";
  }
  llvm_unreachable("a lane");
}

MercurySpan mercurySimulationGetSpan(MercuryWorkload workload,
                                     MercurySimulation simulation,
                                     intptr_t number) {
  const Span &span = unwrap(simulation).spans[number];
  const Site &site = unwrap(workload).sites[span.site];
  static constexpr StringLiteral kNumbers[commir::kMaxLanes] = {
      "", "1", "2", "3", "4", "5", "6", "7"};
  StringRef group;
  if (span.lane == Span::Lane::Messages && span.laneNumber >= 0)
    group = unwrap(workload).groupNames[span.laneNumber];
  else if (span.lane == Span::Lane::Compute)
    group = kNumbers[span.laneNumber];
  return {span.rank,
          wrap(getName(span.kind)),
          wrap(getName(span.lane)),
          wrap(group),
          span.lane == Span::Lane::Pulls ? span.laneNumber : -1,
          wrap(StringRef(site.name)),
          site.buffer,
          span.start,
          span.end,
          span.bytes,
          span.step};
}
