// RUN: not mercury-opt %s --commir-select-transport=transports=rma 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not mercury-opt %s --commir-select-transport=transports=collective 2>&1 | FileCheck %s --check-prefix=MESSAGE
// RUN: not mercury-opt %s --commir-select-transport=transports=p2p 2>&1 | FileCheck %s --check-prefix=READ
// RUN: not mercury-opt %s "--commir-select-transport=transports=p2p,symm local-levels=gpu" 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not mercury-opt %s --commir-select-transport=transports=p2p,symm 2>&1 | FileCheck %s --check-prefix=GROUP

// NAME: error: commir-select-transport: a transport must be p2p, collective, symm or sim, got 'rma'
// MESSAGE: error: 'commir.exchange.start' op sends messages, which needs the transport p2p; the target has collective
// READ: error: 'commir.lease.open' op reads the memory of peers, which needs the transport symm; the target has p2p; let reads rotate and results be delivered
// LOCAL: error: 'commir.lease.open' op reads the memory of peers on 'node', whose ranks are not local (gpu is); let reads rotate and results be delivered there
// GROUP: error: 'commir.broadcast.start' op is done by a whole group, which needs the transport collective; the target has p2p, symm
commir.mesh @mesh(node = 2, gpu = 2)
commir.program @transfers on @mesh axes(i = 8)
    inputs(%A: !commir.buffer<[i], f32> inside [i -> node]) outputs() {
  %r = commir.group_rank "node"
  %on = arith.constant true
  %own = commir.part %A [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %s = commir.alloc slots 1 placement [i -> node] parts {} : !commir.buffer<[i], f32>
  %slot = commir.part %s [] : !commir.buffer<[i], f32> -> !commir.tile<[i], f32>
  %t = commir.exchange.start %own to %r, %slot from %r on "node" when %on
      : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  commir.wait %t
  %l = commir.lease.open %A on "node" : !commir.buffer<[i], f32>
  commir.lease.close %l
  %u = commir.broadcast.start %own into %slot of %r on "node" when %on
      : !commir.tile<[i], f32>, !commir.tile<[i], f32>
  commir.wait %u
}
