// Copies by blocks of one warp, so small that one fits beside what leaves 1024
// registers. See beside.py.
#include <cstdint>

// By loads and stores: 32 registers a thread.
extern "C" __global__ void __maxnreg__(32)
    by_registers(const uint4 *from, uint4 *to, unsigned bytes) {
  const unsigned count = bytes / 16, step = gridDim.x * 128;
  for (unsigned i = blockIdx.x * 128 + threadIdx.x; i < count; i += step) {
    uint4 kept[4];
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u * 32 < count)
        kept[u] = __ldcs(from + i + u * 32);
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u * 32 < count)
        __stcs(to + i + u * 32, kept[u]);
  }
}

// By the copy unit of the multiprocessor, through 4 KiB of shared memory.
constexpr unsigned SIZE = 2048;
extern "C" __global__ void __maxnreg__(32)
    by_bulk(const char *from, char *to, unsigned bytes) {
  __shared__ __align__(128) char kept[2 * SIZE];
  __shared__ __align__(8) uint64_t barriers[2];
  if (threadIdx.x)
    return;
  const unsigned memory = __cvta_generic_to_shared(kept),
                 barrier = __cvta_generic_to_shared(barriers);
  for (int k = 0; k < 2; ++k)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier + 8 * k));
  asm volatile(
      "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;");
  auto load = [&](unsigned chunk, unsigned k) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(
                     barrier + 8 * k),
                 "n"(SIZE));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(memory + SIZE * k),
                 "l"(from + (size_t)chunk * SIZE), "n"(SIZE),
                 "r"(barrier + 8 * k)
                 : "memory");
  };
  const unsigned chunks = bytes / SIZE;
  unsigned k = 0, phases = 0;
  if (blockIdx.x < chunks)
    load(blockIdx.x, 0);
  for (unsigned chunk = blockIdx.x; chunk < chunks;
       chunk += gridDim.x, k ^= 1) {
    if (chunk + gridDim.x < chunks) {
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      load(chunk + gridDim.x, k ^ 1);
    }
    for (unsigned done = 0; !done;)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, "
                   "[%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(done)
                   : "r"(barrier + 8 * k), "r"(phases >> k & 1)
                   : "memory");
    phases ^= 1u << k;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; "
                 "cp.async.bulk.commit_group;" ::"l"(to + (size_t)chunk * SIZE),
                 "r"(memory + SIZE * k), "n"(SIZE)
                 : "memory");
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
