//===- PlanTrace.cpp - C API of the trace of a plan -----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace.h"
#include "dialect/CommIR/KernelSignature.h"
#include "mercury-c/PlanTrace.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <string>
#include <unordered_map>
#include <vector>

using namespace mlir;
using namespace mlir::commir;

namespace {
/// Where each event's op is among the loops of its function.
class Sections {
public:
  explicit Sections(func::FuncOp function) {
    // The last loop that has ended in each body, by the loop of the body.
    llvm::DenseMap<Operation *, int64_t> last;
    int64_t loops = 0;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      SmallVector<int64_t> &found = sections[op];
      auto parent = op->getParentOfType<scf::ForOp>();
      if (parent)
        found.assign(ArrayRef<int64_t>(sections[parent]).drop_back());
      if (parent)
        found.push_back(2 * numbers[parent]);
      auto [at, isFirst] = last.try_emplace(parent.getOperation(), -1);
      found.push_back(at->second);
      if (isa<scf::ForOp>(op)) {
        numbers[op] = loops;
        at->second = 2 * loops++ + 1;
      }
    });
  }

  MercuryIntegers of(Operation *op) const {
    const SmallVector<int64_t> &found = sections.find(op)->second;
    return {static_cast<intptr_t>(found.size()), found.data()};
  }

private:
  llvm::DenseMap<Operation *, int64_t> numbers;
  std::unordered_map<Operation *, SmallVector<int64_t>> sections;
};

/// Events as plain data, which lives until the next one is translated.
class EventWriter {
public:
  EventWriter(const PlanTrace &trace, int64_t rank)
      : trace(trace), rank(rank), sections(trace.getFunction()) {}

  const MercuryPlanEvent *write(const PlanEvent &event);

private:
  void writeBoxes(ArrayRef<MemoryBox> boxes,
                  std::vector<MercuryMemoryBox> &out);
  void writeLaunch(LaunchOp launch, ArrayRef<int64_t> positions);
  void writeGroup(int64_t group);

  const PlanTrace &trace;
  int64_t rank;
  Sections sections;
  /// The group of each lease, by its number.
  llvm::DenseMap<int64_t, int64_t> leases;

  MercuryPlanEvent out;
  std::vector<MercuryMemoryBox> inputs, outputs;
  std::vector<MercuryPosition> positions;
  std::vector<std::string> names;
  std::vector<MlirStringRef> levels;
  SmallVector<int64_t> members, overwrites;
};
} // namespace

static MercuryIntegers toIntegers(ArrayRef<int64_t> values) {
  return {static_cast<intptr_t>(values.size()), values.data()};
}

static StringRef getName(MemorySpace::Kind kind) {
  switch (kind) {
  case MemorySpace::Kind::Local:
    return "local arena";
  case MemorySpace::Kind::Symmetric:
    return "symmetric arena";
  case MemorySpace::Kind::Argument:
    return "argument";
  case MemorySpace::Kind::Leased:
    return "leased";
  case MemorySpace::Kind::Table:
    break;
  }
  llvm_unreachable("no event touches a table");
}

/// The name of an element type, which lives as long as the program.
static StringRef getName(Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (type.isF32())
    return "f32";
  return type.isF64() ? "f64" : "i8";
}

void EventWriter::writeBoxes(ArrayRef<MemoryBox> boxes,
                             std::vector<MercuryMemoryBox> &out) {
  out.clear();
  for (const MemoryBox &box : boxes) {
    bool leased = box.space.kind == MemorySpace::Kind::Leased;
    int64_t owner = leased
                        ? trace.getMember(rank, leases.lookup(box.space.number),
                                          box.space.peer)
                        : rank;
    // The whole of a memory has no size of its own.
    bool whole = box.sizes.size() == 1 &&
                 box.sizes[0] == std::numeric_limits<int64_t>::max();
    out.push_back(
        {wrap(getName(box.space.kind)), box.space.number, owner, box.offset,
         wrap(getName(box.elementType)), whole ? 0 : box.getBytes(),
         whole ? MercuryIntegers{0, nullptr} : toIntegers(box.sizes),
         whole ? MercuryIntegers{0, nullptr} : toIntegers(box.strides)});
  }
}

void EventWriter::writeLaunch(LaunchOp launch, ArrayRef<int64_t> begins) {
  StringRef kernel = launch.getKernel();
  out.kernel = wrap(kernel);
  out.implementation = wrap(launch.getImpl().value_or(""));
  out.signature = wrap(KernelSignature::known(kernel));
  for (KernelSignature::Dim dim : KernelSignature::positions(kernel))
    names.push_back(dim.letter.str() + (dim.divided ? "/g" : ""));
  for (auto [name, begin] : llvm::zip(names, begins))
    positions.push_back({wrap(StringRef(name)), begin});
  for (unsigned i = 0; i < launch.getOutputs().size(); ++i)
    overwrites.push_back(launch.overwrites(i));
}

void EventWriter::writeGroup(int64_t group) {
  for (int64_t level : trace.getGroupLevels(group))
    levels.push_back(wrap(trace.getLevelName(level)));
  for (int64_t member = 0; member < trace.getGroupSize(group); ++member)
    members.push_back(trace.getMember(rank, group, member));
}

const MercuryPlanEvent *EventWriter::write(const PlanEvent &event) {
  using Kind = PlanEvent::Kind;
  positions.clear();
  names.clear();
  levels.clear();
  members.clear();
  overwrites.clear();
  out = {};
  MlirStringRef none = wrap(StringRef(""));
  out.kernel = out.implementation = out.signature = none;
  out.kind = wrap(getName(event.kind));
  out.operation = wrap(event.op);
  out.steps = toIntegers(event.steps);
  out.sections = sections.of(event.op);
  out.to = out.from = -1;
  out.happens = event.happens;
  out.lengths = toIntegers(event.lengths);
  out.token = event.token;
  out.lease = event.lease;

  if (event.kind == Kind::LeaseOpen)
    leases[event.lease] = event.group;
  bool onLease = event.kind == Kind::Pull || event.kind == Kind::LeaseClose;
  int64_t group = onLease ? leases.lookup(event.lease) : event.group;
  if (onLease || event.isStart() || event.kind == Kind::LeaseOpen)
    writeGroup(group);
  if (event.kind == Kind::Exchange)
    out.to = trace.getMember(rank, group, event.to);
  if (event.kind == Kind::Exchange || event.kind == Kind::Pull ||
      event.kind == Kind::Broadcast)
    out.from = trace.getMember(rank, group, event.from);
  if (auto launch = dyn_cast<LaunchOp>(event.op))
    writeLaunch(launch, event.positions);
  writeBoxes(event.inputs, inputs);
  writeBoxes(event.outputs, outputs);

  out.numInputs = inputs.size();
  out.inputs = inputs.data();
  out.numOutputs = outputs.size();
  out.outputs = outputs.data();
  out.overwrites = toIntegers(overwrites);
  out.numPositions = positions.size();
  out.positions = positions.data();
  out.numLevels = levels.size();
  out.levels = levels.data();
  out.members = toIntegers(members);
  return &out;
}

int64_t mercuryPlanGetNumRanks(MlirOperation plan) {
  FailureOr<PlanTrace> trace =
      PlanTrace::create(cast<func::FuncOp>(unwrap(plan)));
  return failed(trace) ? -1 : trace->getNumRanks();
}

bool mercuryTracePlan(MlirOperation plan, int64_t rank,
                      void (*callback)(const MercuryPlanEvent *event,
                                       void *userData),
                      void *userData) {
  FailureOr<PlanTrace> trace =
      PlanTrace::create(cast<func::FuncOp>(unwrap(plan)));
  if (failed(trace))
    return false;
  if (rank < 0 || rank >= trace->getNumRanks()) {
    unwrap(plan)->emitOpError()
        << "has ranks 0 to " << trace->getNumRanks() - 1 << ", got " << rank;
    return false;
  }
  EventWriter writer(*trace, rank);
  PlanCursor cursor(*trace, rank);
  while (const PlanEvent *event = cursor.next())
    if (!event->isOfLanes())
      callback(writer.write(*event), userData);
  return !cursor.hasFailed();
}
