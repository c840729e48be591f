// RUN: not mercury-opt %s --commir-select-transport=transports=mail 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not mercury-opt %s --commir-select-transport=transports=p2p,rma 2>&1 | FileCheck %s --check-prefix=LEVELS
// RUN: not mercury-opt %s "--commir-select-transport=transports=p2p rma-levels=node" 2>&1 | FileCheck %s --check-prefix=LEVELS
// RUN: not mercury-opt %s "--commir-select-transport=transports=sim,rma rma-levels=gpu" 2>&1 | FileCheck %s --check-prefix=PUT
// RUN: not mercury-opt %s "--commir-select-transport=transports=sim,rma rma-levels=node" 2>&1 | FileCheck %s --check-prefix=LENT
// RUN: not mercury-opt %s --commir-select-transport=transports=collective 2>&1 | FileCheck %s --check-prefix=MESSAGE
// RUN: not mercury-opt %s --commir-select-transport=transports=p2p 2>&1 | FileCheck %s --check-prefix=READ
// RUN: not mercury-opt %s "--commir-select-transport=transports=p2p,symm local-levels=gpu" 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not mercury-opt %s --commir-select-transport=transports=p2p,symm 2>&1 | FileCheck %s --check-prefix=GROUP

// NAME: error: commir-select-transport: a transport must be p2p, collective, symm, rma or sim, got 'mail'
// LEVELS: error: commir-select-transport: the transport rma and rma-levels go together: name the levels of the one group whose ranks put into each other's memory
// PUT: error: commir-select-transport: no message of the group of 'gpu' can be a put: its receiver must take it into a whole slot of the plan's own memory, the same slot on every rank, and the plan must lend none of that memory; do without the transport rma
// LENT: error: commir-select-transport: no message of the group of 'node' can be a put
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
  %m = commir.lease.open %s on "node" : !commir.buffer<[i], f32>
  commir.lease.close %m
}
