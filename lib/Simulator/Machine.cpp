//===- Machine.cpp - What a machine can do, as curves ---------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Simulator/Machine.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace llvm;
using namespace mlir::commir::simulator;

StringRef mlir::commir::simulator::getName(Transport transport) {
  switch (transport) {
  case Transport::P2P:
    return "p2p";
  case Transport::Collective:
    return "collective";
  case Transport::Pull:
    return "pull";
  case Transport::RMA:
    return "rma";
  }
  llvm_unreachable("a transport");
}

//===----------------------------------------------------------------------===//
// Curves
//===----------------------------------------------------------------------===//

using Points = std::vector<std::pair<double, double>>;

/// The first point that is not left of `x`; there is one.
static size_t findUpper(const Points &points, double x) {
  auto upper = std::lower_bound(
      points.begin(), points.end(), x,
      [](const auto &point, double value) { return point.first < value; });
  return upper - points.begin();
}

double LinkCurve::getSeconds(double bytes) const {
  auto [largest, fastest] = points.back();
  if (bytes >= largest)
    return std::max(bytes / fastest, latency);
  size_t upper = findUpper(points, bytes);
  auto [rightBytes, rightRate] = points[upper];
  double leftBytes = 0, leftTime = latency, rightTime = rightBytes / rightRate;
  if (upper > 0) {
    leftBytes = points[upper - 1].first;
    leftTime = leftBytes / points[upper - 1].second;
  }
  double share = (bytes - leftBytes) / (rightBytes - leftBytes);
  return std::max(leftTime + share * (rightTime - leftTime), latency);
}

bool KernelWork::operator==(const KernelWork &other) const {
  auto fields = [](const KernelWork &work) {
    return std::tie(work.flops, work.rows, work.columns, work.batch, work.edge,
                    work.hidden, work.bytes, work.widened);
  };
  return fields(*this) == fields(other);
}

double KernelCurve::getRate(double flops, double total) const {
  if (total > flops)
    return std::min(getRate(flops), getRate(total));
  if (flops <= points.front().first)
    return points.front().second;
  if (flops >= points.back().first)
    return points.back().second;
  size_t upper = findUpper(points, flops);
  auto [left, slow] = points[upper - 1];
  auto [right, fast] = points[upper];
  return slow + (fast - slow) * std::log(flops / left) / std::log(right / left);
}

double KernelCurve::getBlocks(const KernelWork &work) const {
  double across = blockColumns ? std::ceil(work.columns / blockColumns) : 1;
  return work.batch * std::ceil(work.rows / blockRows) * across;
}

double KernelCurve::getEfficiency(const KernelWork &work) const {
  double blocks = getBlocks(work);
  return blocks <= 0 ? 1 : blocks / (units * std::ceil(blocks / units));
}

double KernelCurve::getSeconds(const KernelWork &work, double total) const {
  double rate = getRate(work.flops, total) * getEfficiency(work);
  return overhead +
         (work.flops + std::min(edge * work.edge, work.hidden)) / rate;
}

const KernelCurve &Machine::getKernel(StringRef name) const {
  auto found = kernels.find(name);
  return found == kernels.end() ? kernels.find("*")->second : found->second;
}

double Machine::getMoveSeconds(StringRef kind, double bytes) const {
  auto found = moves.find(kind);
  double rate = found == moves.end() ? copyRate : found->second.getRate(bytes);
  return getKernel("*").overhead + bytes / rate;
}

double Machine::getSeconds(StringRef kernel, const KernelWork &work,
                           double total) const {
  if (work.flops <= 0)
    return getMoveSeconds(kernel, work.bytes);
  double seconds = getKernel(kernel).getSeconds(work, total);
  // A merge is a kernel of its own, and so is a copy.
  if (work.bytes > 0)
    seconds += launch + getMoveSeconds(("merge_" + kernel).str(), work.bytes);
  if (work.widened > 0)
    seconds += launch + getMoveSeconds("copy", work.widened);
  return seconds;
}

void Occupancy::regroup() {
  constexpr double kRounding = 1e-6;
  if (wave == 0)
    return;
  double waves = full / wave + (last > 0 ? share : 0);
  double whole = std::floor(waves + kRounding);
  full = whole * wave;
  share = waves - whole;
  last = share > kRounding ? wave : 0;
}

Occupancy Machine::getOccupancy(StringRef kernel, const KernelWork &work,
                                double seconds) const {
  bool onlyMoves = work.flops <= 0;
  const KernelCurve &curve = getKernel(onlyMoves ? "*" : kernel);
  Occupancy result;
  result.full = std::max(0.0, seconds - curve.overhead);
  double blocks = curve.getBlocks(work);
  // What follows in the same launch, a merge or a copy, takes all.
  if (onlyMoves || work.bytes > 0 || work.widened > 0 || blocks <= 0)
    return result;
  double waves = std::ceil(blocks / curve.units);
  result.wave = result.full / waves;
  result.full = blocks / curve.units * result.wave;
  result.regroup();
  return result;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Points are `[[x, y], ...]`, one at least.
static bool setPoints(const std::vector<std::vector<double>> &rows,
                      Points &points, json::Path at) {
  for (const std::vector<double> &row : rows)
    if (row.size() == 2)
      points.emplace_back(row[0], row[1]);
  if (!rows.empty() && points.size() == rows.size())
    return true;
  at.report("expected pairs of numbers");
  return false;
}

static bool mapPoints(json::ObjectMapper &object, Points &points,
                      json::Path at) {
  std::vector<std::vector<double>> rows;
  return object.map("points", rows) &&
         setPoints(rows, points, at.field("points"));
}

namespace mlir::commir::simulator {
static bool fromJSON(const json::Value &value, KernelCurve &curve,
                     json::Path at) {
  json::ObjectMapper object(value, at);
  std::vector<int64_t> block;
  if (!object || !object.map("units", curve.units) ||
      !object.map("overhead", curve.overhead) ||
      !object.map("edge", curve.edge) || !object.map("block", block))
    return false;
  if (block.size() != 2) {
    at.report("expected a block of rows and columns");
    return false;
  }
  curve.blockRows = block[0];
  curve.blockColumns = block[1];
  return mapPoints(object, curve.points, at);
}

static bool fromJSON(const json::Value &value, LinkCurve &curve,
                     json::Path at) {
  json::ObjectMapper object(value, at);
  return object && object.map("latency", curve.latency) &&
         object.map("slowdown", curve.slowdown) &&
         mapPoints(object, curve.points, at);
}

static bool fromJSON(const json::Value &value, Link &link, json::Path at) {
  json::ObjectMapper object(value, at);
  std::string domain;
  std::map<std::string, LinkCurve> curves;
  if (!object || !object.map("name", link.name) ||
      !object.map("domain", domain) || !object.map("duplex", link.duplex) ||
      !object.map("unit", link.unit) || !object.map("reach", link.reach) ||
      !object.map("signal", link.signal) || !object.map("transports", curves))
    return false;
  link.domain = StringSwitch<Link::Domain>(domain)
                    .Case("uplink", Link::Domain::Uplink)
                    .Case("bus", Link::Domain::Bus)
                    .Default(Link::Domain::Port);
  for (Transport transport :
       {Transport::P2P, Transport::Collective, Transport::Pull, Transport::RMA})
    if (auto found = curves.find(getName(transport).str());
        found != curves.end())
      link.curves[static_cast<int>(transport)] = found->second;
  return true;
}

static bool fromJSON(const json::Value &value, Machine &machine,
                     json::Path at) {
  json::ObjectMapper object(value, at);
  std::map<std::string, KernelCurve> kernels;
  std::map<std::string, std::vector<std::vector<double>>> moves;
  if (!object || !object.map("copy_rate", machine.copyRate) ||
      !object.map("launch", machine.launch) ||
      !object.map("join", machine.join) ||
      !object.map("lane_for_each_group", machine.laneForEachGroup) ||
      !object.map("kernels", kernels) || !object.map("moves", moves) ||
      !object.map("links", machine.links) ||
      !object.map("levels", machine.levels))
    return false;
  for (auto &[name, curve] : kernels)
    machine.kernels[name] = curve;
  for (auto &[name, rows] : moves)
    if (!setPoints(rows, machine.moves[name].points, at.field("moves")))
      return false;
  if (!kernels.count("*")) {
    at.field("kernels").report("expected a curve '*' of other kernels");
    return false;
  }
  for (int64_t link : machine.levels)
    if (link < 0 || link >= static_cast<int64_t>(machine.links.size())) {
      at.field("levels").report("expected the number of a link");
      return false;
    }
  return true;
}
} // namespace mlir::commir::simulator

Expected<Machine> Machine::parse(StringRef json) {
  return json::parse<Machine>(json, "machine");
}
