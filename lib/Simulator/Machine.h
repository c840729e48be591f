//===- Machine.h - What a machine can do, as curves -------------*- C++ -*-===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The figures of a topology, as `python/mercury/topology` reads them from a
// file. Times are seconds, sizes bytes, rates a second.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SIMULATOR_MACHINE_H
#define LIB_SIMULATOR_MACHINE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::commir::simulator {

/// How bytes go over a link.
enum class Transport { P2P, Collective, Pull, RMA };
constexpr int kTransports = 4;
llvm::StringRef getName(Transport transport);

/// Time by message size. Between two points the time is linear in the size.
struct LinkCurve {
  double latency = 0;
  /// Bytes, and bytes a second.
  std::vector<std::pair<double, double>> points;
  /// Of each kernel that runs beside such a transfer on one of its ranks, the
  /// part of the speed that it loses.
  double slowdown = 0;

  bool exists() const { return !points.empty(); }
  double getSeconds(double bytes) const;
};

/// What connects the groups of one level.
struct Link {
  enum class Domain {
    Port,   // each rank has a link of its own
    Uplink, // the ranks of one unit share one
    Bus     // all ranks that the link reaches share one
  };
  std::string name;
  Domain domain = Domain::Port;
  bool duplex = true;
  /// The ranks of a unit, which are reached without this link, and those that
  /// are reached with it.
  int64_t unit = 1, reach = 1;
  /// From a signal of one rank until another one sees it.
  double signal = 0;
  LinkCurve curves[kTransports];

  const LinkCurve &getCurve(Transport transport) const {
    return curves[static_cast<int>(transport)];
  }
};

/// What a kernel is asked to do in one launch.
struct KernelWork {
  /// Arithmetic that is really done; none for what only moves bytes.
  double flops = 0;
  /// Of the result, which blocks cover; `batch` such results.
  double rows = 1, columns = 1, batch = 1;
  /// Of one key more in each row that the border of a mask cuts, and of all
  /// pairs that the mask hides.
  double edge = 0, hidden = 0;
  /// Bytes through memory: of kernels without arithmetic all that they read and
  /// write, of others what merging into their results adds.
  double bytes = 0;
  /// Likewise, of copying what a library wrote into results of a wider type.
  double widened = 0;

  bool operator==(const KernelWork &other) const;
};

/// What a launch takes of the device: all of it, and in the last wave a share.
/// What it costs beside its waves is before them.
struct Occupancy {
  double full = 0, last = 0, share = 1;
  /// The time of a whole wave; 0 for what does not come in waves.
  double wave = 0;

  /// Of what is left with so much of `full` done elsewhere in the gaps of other
  /// launches, the waves anew.
  void regroup();
};

/// Speed of a kernel, by the amount and the shape of its work.
struct KernelCurve {
  /// Flops of a launch, and flops a second with full waves of blocks.
  std::vector<std::pair<double, double>> points;
  int64_t blockRows = 1, blockColumns = 0, units = 1;
  double overhead = 0;
  /// For how many keys a row works, beside those that a mask leaves it: blocks
  /// do whole tiles of keys, and hide some of them.
  double edge = 0;

  /// A launch of so many flops, of `total` in the whole plan. Clocks fall under
  /// load: many launches keep no more speed than one of all their work.
  double getRate(double flops, double total = 0) const;
  double getBlocks(const KernelWork &work) const;
  double getEfficiency(const KernelWork &work) const;
  double getSeconds(const KernelWork &work, double total) const;
};

struct Machine {
  /// Of a copy in a rank's own memory, read and write counted.
  double copyRate = 1;
  /// From a kernel to the next one of its stream; from the end of a transfer to
  /// the kernel that waits for it.
  double launch = 0, join = 0;
  /// Whether each group has a lane of messages of its own.
  bool laneForEachGroup = false;
  llvm::StringMap<KernelCurve> kernels;
  /// By what moves them: bytes read and written, and their rate.
  llvm::StringMap<KernelCurve> moves;
  std::vector<Link> links;
  /// The link of each level of the mesh.
  std::vector<int64_t> levels;

  const KernelCurve &getKernel(llvm::StringRef name) const;
  /// The time of a launch on a device that does nothing else; `total` flops of
  /// the kernel are in the plan of a rank.
  double getSeconds(llvm::StringRef kernel, const KernelWork &work,
                    double total) const;
  /// How such a launch fills the device in its time.
  Occupancy getOccupancy(llvm::StringRef kernel, const KernelWork &work,
                         double seconds) const;
  /// The time to fill, copy, pack, round or merge so many bytes, read and write
  /// counted; "merge_attention_fwd" merges what that kernel's library made.
  double getMoveSeconds(llvm::StringRef kind, double bytes) const;

  /// Reads the JSON that `mercury.simulator` writes.
  static llvm::Expected<Machine> parse(llvm::StringRef json);
};

} // namespace mlir::commir::simulator

#endif // LIB_SIMULATOR_MACHINE_H
