//===- Cursor.cpp - What a rank does, event by event ----------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/PlanTrace.h"
#include "lib/Analysis/PlanTrace/Code.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::commir;
using namespace mlir::commir::trace;

PlanCursor::PlanCursor(const PlanTrace &trace, int64_t rank)
    : trace(trace), code(*trace.code), rank(rank), numbers(code.numbers),
      tiles(code.numTiles), tables(code.tables) {}

bool PlanCursor::fail(Operation *op, const Twine &why) {
  failed = true;
  op->emitOpError() << why << " on " << trace.describeRank(rank);
  return false;
}

/// Integers wrap, as the machine's do.
bool PlanCursor::compute(size_t at) {
  const Instruction &i = code.instructions[at];
  uint64_t a = numbers[i.a], b = numbers[i.b];
  int64_t signedA = a, signedB = b, &result = numbers[i.result];
  switch (i.opcode) {
  case Opcode::Add:
    result = a + b;
    return true;
  case Opcode::Sub:
    result = a - b;
    return true;
  case Opcode::Mul:
    result = a * b;
    return true;
  case Opcode::And:
    result = a & b;
    return true;
  case Opcode::Or:
    result = a | b;
    return true;
  case Opcode::Xor:
    result = a ^ b;
    return true;
  case Opcode::MinSigned:
    result = std::min(signedA, signedB);
    return true;
  case Opcode::MaxSigned:
    result = std::max(signedA, signedB);
    return true;
  case Opcode::MinUnsigned:
    result = std::min(a, b);
    return true;
  case Opcode::MaxUnsigned:
    result = std::max(a, b);
    return true;
  case Opcode::Equal:
    result = a == b;
    return true;
  case Opcode::NotEqual:
    result = a != b;
    return true;
  case Opcode::LessSigned:
    result = signedA < signedB;
    return true;
  case Opcode::LessEqualSigned:
    result = signedA <= signedB;
    return true;
  case Opcode::LessUnsigned:
    result = a < b;
    return true;
  case Opcode::LessEqualUnsigned:
    result = a <= b;
    return true;
  default:
    break;
  }
  if (b == 0 || (signedB == -1 && signedA == INT64_MIN))
    return fail(i.op, "divides " + Twine(signedA) + " by " + Twine(signedB));
  switch (i.opcode) {
  case Opcode::DivUnsigned:
    result = a / b;
    return true;
  case Opcode::DivSigned:
    result = signedA / signedB;
    return true;
  case Opcode::CeilDivUnsigned:
    result = a / b + (a % b != 0);
    return true;
  case Opcode::CeilDivSigned:
    result = llvm::divideCeilSigned(signedA, signedB);
    return true;
  case Opcode::FloorDivSigned:
    result = llvm::divideFloorSigned(signedA, signedB);
    return true;
  case Opcode::RemUnsigned:
    result = a % b;
    return true;
  case Opcode::RemSigned:
    result = signedA % signedB;
    return true;
  default:
    llvm_unreachable("not an operation on integers");
  }
}

/// Instructions that give a tile, or read or write a table.
bool PlanCursor::makeTile(size_t at) {
  const Instruction &i = code.instructions[at];
  /// The entry of a table that the indices of `i` name, or null.
  auto entry = [&]() -> int64_t * {
    const MemoryBox &tile = tiles[i.b];
    if (tile.space.kind != MemorySpace::Kind::Table)
      return nullptr;
    int64_t at = tile.offset;
    for (auto [index, stride] : llvm::zip_equal(i.list, tile.strides))
      at += numbers[index] * stride;
    std::vector<int64_t> &table = tables[tile.space.number];
    at /= tile.elementBytes;
    return at >= 0 && at < static_cast<int64_t>(table.size()) ? &table[at]
                                                              : nullptr;
  };
  auto setRowMajor = [&](MemoryBox &tile, ArrayRef<int32_t> sizes) {
    tile.sizes.resize(sizes.size());
    tile.strides.resize(sizes.size());
    int64_t stride = tile.elementBytes;
    for (size_t dim = sizes.size(); dim-- > 0;) {
      tile.sizes[dim] = numbers[sizes[dim]];
      tile.strides[dim] = stride;
      stride *= tile.sizes[dim];
      if (tile.sizes[dim] < 0)
        return false;
    }
    return true;
  };
  auto setElement = [&](MemoryBox &tile) {
    tile.elementType = i.elementType;
    tile.elementBytes = i.elementBytes;
  };
  switch (i.opcode) {
  case Opcode::Argument:
  case Opcode::Arena: {
    MemoryBox &tile = tiles[i.result];
    if (i.opcode == Opcode::Argument)
      tile.space = {MemorySpace::Kind::Argument, i.immediate};
    else if (static_cast<Arena>(i.immediate) == Arena::Symmetric)
      tile.space = {MemorySpace::Kind::Symmetric};
    else
      tile.space = {MemorySpace::Kind::Local};
    setElement(tile);
    tile.sizes = {std::numeric_limits<int64_t>::max()};
    tile.strides = {1};
    return true;
  }
  case Opcode::LeasedMemory: {
    MemoryBox &tile = tiles[i.result];
    tile.space = {MemorySpace::Kind::Leased, numbers[i.a], numbers[i.b]};
    setElement(tile);
    tile.sizes = {std::numeric_limits<int64_t>::max()};
    tile.strides = {1};
    return true;
  }
  case Opcode::View: {
    MemoryBox &tile = tiles[i.result];
    const MemoryBox &source = tiles[i.a];
    tile.space = source.space;
    tile.offset = source.offset + numbers[i.b];
    setElement(tile);
    return setRowMajor(tile, i.list) || fail(i.op, "has a negative size");
  }
  case Opcode::Reinterpret: {
    MemoryBox source = tiles[i.a];
    size_t rank = i.list.size() / 2;
    MemoryBox &tile = tiles[i.result];
    tile.space = source.space;
    tile.elementType = source.elementType;
    tile.elementBytes = source.elementBytes;
    tile.offset = source.offset + numbers[i.list[0]] * source.elementBytes;
    tile.sizes.resize(rank);
    tile.strides.resize(rank);
    for (size_t dim = 0; dim < rank; ++dim) {
      tile.sizes[dim] = numbers[i.list[1 + dim]];
      tile.strides[dim] = numbers[i.list[1 + rank + dim]] * source.elementBytes;
      if (tile.sizes[dim] < 0)
        return fail(i.op, "has a negative size");
    }
    return true;
  }
  case Opcode::SubView: {
    // A copy: a subview may be of what it replaces in a loop.
    MemoryBox source = tiles[i.a];
    size_t rank = source.sizes.size();
    MemoryBox &tile = tiles[i.result];
    tile.space = source.space;
    tile.elementType = source.elementType;
    tile.elementBytes = source.elementBytes;
    tile.offset = source.offset;
    tile.sizes.clear();
    tile.strides.clear();
    for (size_t dim = 0; dim < rank; ++dim) {
      tile.offset += numbers[i.list[dim]] * source.strides[dim];
      if (!i.list[3 * rank + dim])
        continue;
      tile.sizes.push_back(numbers[i.list[rank + dim]]);
      tile.strides.push_back(numbers[i.list[2 * rank + dim]] *
                             source.strides[dim]);
      if (tile.sizes.back() < 0)
        return fail(i.op, "has a negative size");
    }
    return true;
  }
  case Opcode::Dim: {
    int64_t dim = numbers[i.b];
    const MemoryBox &tile = tiles[i.a];
    if (dim < 0 || dim >= static_cast<int64_t>(tile.sizes.size()))
      return fail(i.op, "asks for dimension " + Twine(dim));
    numbers[i.result] = tile.sizes[dim];
    return true;
  }
  case Opcode::Table:
  case Opcode::KnownTable: {
    MemoryBox &tile = tiles[i.result];
    tile.space = {MemorySpace::Kind::Table, i.immediate};
    setElement(tile);
    if (!setRowMajor(tile, i.list) || tile.getElements() > kMaxShards)
      return fail(i.op, "is not the size of a table");
    if (i.opcode == Opcode::Table)
      tables[i.immediate].assign(tile.getElements(), 0);
    return true;
  }
  case Opcode::StoreTable:
  case Opcode::LoadTable: {
    int64_t *found = entry();
    if (!found)
      return fail(i.op, "is outside of its table");
    if (i.opcode == Opcode::StoreTable)
      *found = numbers[i.a];
    else
      numbers[i.result] = *found;
    return true;
  }
  default:
    llvm_unreachable("not an operation on tiles");
  }
}

const PlanEvent *PlanCursor::stop(size_t number) {
  const EventSite &site = code.sites[number];
  auto read = [&](int32_t slot) { return slot < 0 ? 0 : numbers[slot]; };
  event.kind = site.kind;
  event.op = site.op;
  event.steps = steps;
  event.inputs.resize(site.inputs.size());
  for (auto [region, slot] : llvm::zip_equal(event.inputs, site.inputs))
    region = tiles[slot];
  event.outputs.resize(site.outputs.size());
  for (auto [region, slot] : llvm::zip_equal(event.outputs, site.outputs))
    region = tiles[slot];
  event.scratch.resize(site.scratch.size());
  for (auto [region, slot] : llvm::zip_equal(event.scratch, site.scratch))
    region = tiles[slot];
  event.positions.resize(site.positions.size());
  for (auto [position, slot] : llvm::zip_equal(event.positions, site.positions))
    position = numbers[slot];
  event.group = site.group;
  event.to = read(site.to);
  event.from = read(site.from);
  event.happens = site.when < 0 || numbers[site.when];
  event.value = site.value;
  auto readTable = [&](int32_t slot, SmallVectorImpl<int64_t> &lengths) {
    lengths.clear();
    if (slot < 0)
      return true;
    const MemoryBox &table = tiles[slot];
    if (table.space.kind != MemorySpace::Kind::Table ||
        table.getElements() != trace.getGroupSize(site.group))
      return fail(site.op, "has no table of a length for each member");
    const std::vector<int64_t> &entries = tables[table.space.number];
    lengths.append(entries.begin(), entries.end());
    return true;
  };
  if (!readTable(site.lengths, event.lengths) ||
      !readTable(site.arrivals, event.arrivals))
    return nullptr;
  if (event.isStart())
    numbers[site.token] = ++tokens;
  if (event.kind == PlanEvent::Kind::LeaseOpen)
    numbers[site.lease] = ++leases;
  event.token = read(site.token);
  event.lease = read(site.lease);
  return &event;
}

const PlanEvent *PlanCursor::next() {
  while (!failed) {
    const Instruction &i = code.instructions[at];
    switch (i.opcode) {
    case Opcode::Move:
      numbers[i.result] = numbers[i.a];
      break;
    case Opcode::MoveTile:
      tiles[i.result] = tiles[i.a];
      break;
    case Opcode::Select:
      numbers[i.result] = numbers[numbers[i.a] ? i.b : i.c];
      break;
    case Opcode::SelectTile:
      tiles[i.result] = tiles[numbers[i.a] ? i.b : i.c];
      break;
    case Opcode::GroupRank:
      numbers[i.result] = trace.getCoordinate(rank, i.immediate);
      break;
    case Opcode::Argument:
    case Opcode::Arena:
    case Opcode::LeasedMemory:
    case Opcode::View:
    case Opcode::Reinterpret:
    case Opcode::SubView:
    case Opcode::Dim:
    case Opcode::Table:
    case Opcode::KnownTable:
    case Opcode::StoreTable:
    case Opcode::LoadTable:
      if (!makeTile(at))
        return nullptr;
      break;
    case Opcode::JumpUnless:
      if (numbers[i.a])
        break;
      at = i.immediate;
      continue;
    case Opcode::Jump:
      at = i.immediate;
      continue;
    case Opcode::EnterLoop:
      if (numbers[i.b] <= 0)
        return fail(i.op, "has a step of " + Twine(numbers[i.b])), nullptr;
      numbers[i.result] = numbers[i.a];
      steps.push_back(0);
      break;
    case Opcode::SetStep:
      steps.back() = numbers[i.a];
      break;
    case Opcode::NextLoop:
      numbers[i.result] += numbers[i.a];
      at = i.immediate;
      continue;
    case Opcode::LeaveLoop:
      steps.pop_back();
      break;
    case Opcode::Event:
      ++at;
      return stop(i.immediate);
    case Opcode::Return:
      return nullptr;
    default:
      if (!compute(at))
        return nullptr;
    }
    ++at;
  }
  return nullptr;
}
