//===- Runtime.cpp - The exported C functions -----------------------------===//
//
// Part of Mercury, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function of runtime.h hands over to the backend that made the context.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Context.h"

// A failure is reported to the thread that met it, like errno.
static thread_local std::string lastError;

void mercury::rt::setLastError(const std::string &message) {
  lastError = message;
}

int32_t mercury_rt_abi_version(void) { return MERCURY_RT_ABI_VERSION; }

int64_t mercury_rt_group_rank(mercury_rt_context *context, int64_t group) {
  return context->groupRank(group);
}

int64_t mercury_rt_group_size(mercury_rt_context *context, int64_t group) {
  return context->groupSize(group);
}

void *mercury_rt_local_arena(mercury_rt_context *context) {
  return context->localArena();
}

void *mercury_rt_symmetric_arena(mercury_rt_context *context) {
  return context->symmetricArena();
}

int32_t mercury_rt_exchange_start(mercury_rt_context *context, int64_t group,
                                  int64_t send_to, const void *src,
                                  int64_t send_bytes, int64_t recv_from,
                                  void *dst, int64_t recv_bytes,
                                  int64_t *token) {
  return context->exchangeStart(group, send_to, src, send_bytes, recv_from, dst,
                                recv_bytes, token);
}

int32_t mercury_rt_put_start(mercury_rt_context *context, int64_t group,
                             int64_t send_to, const void *src,
                             int64_t send_bytes, int64_t recv_from, void *dst,
                             int64_t recv_bytes, int64_t *token) {
  return context->putStart(group, send_to, src, send_bytes, recv_from, dst,
                           recv_bytes, token);
}

int32_t mercury_rt_all_gather_start(mercury_rt_context *context, int64_t group,
                                    const void *src, int64_t send_bytes,
                                    void *dst, int64_t slot_bytes,
                                    const int64_t *bytes_of_member,
                                    int64_t *token) {
  return context->allGatherStart(group, src, send_bytes, dst, slot_bytes,
                                 bytes_of_member, token);
}

int32_t mercury_rt_reduce_scatter_start(mercury_rt_context *context,
                                        int64_t group, void *src,
                                        int64_t slot_bytes, void *dst,
                                        const int64_t *bytes_of_member,
                                        int32_t element_type, int32_t reduction,
                                        int64_t *token) {
  return context->reduceScatterStart(group, src, slot_bytes, dst,
                                     bytes_of_member, element_type, reduction,
                                     token);
}

int32_t mercury_rt_all_reduce_start(mercury_rt_context *context, int64_t group,
                                    const void *src, void *dst, int64_t bytes,
                                    int32_t element_type, int32_t reduction,
                                    int64_t *token) {
  return context->allReduceStart(group, src, dst, bytes, element_type,
                                 reduction, token);
}

int32_t mercury_rt_all_to_all_start(mercury_rt_context *context, int64_t group,
                                    const void *src, int64_t send_slot_bytes,
                                    const int64_t *send_bytes, void *dst,
                                    int64_t recv_slot_bytes,
                                    const int64_t *recv_bytes, int64_t *token) {
  return context->allToAllStart(group, src, send_slot_bytes, send_bytes, dst,
                                recv_slot_bytes, recv_bytes, token);
}

int32_t mercury_rt_broadcast_start(mercury_rt_context *context, int64_t group,
                                   int64_t root, const void *src, void *dst,
                                   int64_t bytes, int64_t *token) {
  return context->broadcastStart(group, root, src, dst, bytes, token);
}

int32_t mercury_rt_wait(mercury_rt_context *context, int64_t token) {
  return context->wait(token);
}

int32_t mercury_rt_lease_open(mercury_rt_context *context, int64_t group,
                              const void *base, int64_t bytes, int64_t *lease) {
  return context->leaseOpen(group, base, bytes, lease);
}

int32_t mercury_rt_lease_address(mercury_rt_context *context, int64_t lease,
                                 int64_t peer, const void **base) {
  return context->leaseAddress(lease, peer, base);
}

int32_t mercury_rt_pull_start(mercury_rt_context *context, int64_t lease,
                              int64_t peer, const void *src, int64_t src_pitch,
                              void *dst, int64_t dst_pitch, int64_t row_bytes,
                              int64_t rows, int64_t *token) {
  return context->pullStart(lease, peer, src, src_pitch, dst, dst_pitch,
                            row_bytes, rows, token);
}

int32_t mercury_rt_lease_close(mercury_rt_context *context, int64_t lease) {
  return context->leaseClose(lease);
}

int32_t mercury_rt_launch(mercury_rt_context *context, const char *name,
                          const mercury_rt_launch_arguments *arguments) {
  return context->launch(name, arguments);
}

int32_t mercury_rt_fail(mercury_rt_context *context, int32_t code,
                        const char *message) {
  return context->fail(code, message);
}

const char *mercury_rt_last_error(void) { return lastError.c_str(); }
