"""Processes, candidates and floors of benchmarks that only say how long they take."""

import dataclasses
import math
import random
from types import SimpleNamespace

from mercury.bench.candidate import Candidate, Prepared
from mercury.bench.errors import AbsentError
from mercury.bench.measure import Settings
from mercury.bench.sweep import Entry, Limits, Sweep


class Tensor:
    """What a candidate wrote; NaN until it writes again."""

    def __init__(self, error=1e-3):
        self.error, self.now = error, error

    def fill_(self, value):
        self.now = value


class Clock:
    """Processes of one rank, whose works say how long they take."""

    torch, rank, size, device, name = None, 0, 2, "cpu", "a clock"

    def __init__(self, seed=0, memory=0):
        self.at, self.log, self.random = 0.0, [], random.Random(seed)
        self.memory = memory

    def work(self, name, ms, spread=0.0, tensor=None):
        def run():
            self.log.append(name)
            self.at += ms * (1 + spread * self.random.random())
            if tensor is not None:
                tensor.now = tensor.error
            return {"C": tensor}

        return run

    def maximum(self, value):
        return math.inf if math.isnan(value) else value

    def agree(self, message):
        return message

    def seconds(self):
        return self.at / 1000

    def milliseconds(self, work, times):
        before = self.at
        for _ in range(times):
            work()
        return (self.at - before) / times

    def capture(self, work):
        return work, work()

    def free_memory(self):
        return self.memory

    def synchronize(self):
        pass


class Problem:
    """Knows how wrong a tensor is."""

    def error(self, results, held):
        assert held == {"C": ()}
        return results["C"].now


def floors(on, ms=1.0, error=1e-3):
    tensor = Tensor(error)
    run = on.work("floor", ms, tensor=tensor)
    return SimpleNamespace(
        prepare=lambda *_: Prepared(run=run, held={"C": ()}),
        one_device=lambda _, floor, __: (floor.run(), floor.held),
    )


def candidate(on, name, ms, *, error=1e-3, spread=0.0, **more):
    tensor = Tensor(error)

    def prepare(problem, processes):
        run = on.work(name, ms, spread, tensor)
        return Prepared(run=run, held={"C": ()}, **more)

    return Candidate(name=name, prepare=prepare)


def failing(name, error):
    def prepare(problem, processes):
        raise error

    return Candidate(name=name, prepare=prepare)


def sweep(on, plans, peers=(), *, floor=1.0, limits=None, **more):
    told = []
    entries = [Entry(candidate=plan, plan=f"recipe of {plan.name}") for plan in plans]
    settings = Settings(rounds=5, least_rounds=5, burst_ms=1, **more)
    runner = Sweep(on, settings, limits or Limits(), told.append, floors(on, floor))
    common = {"ranks": 2, "device": "a clock", "versions": {"torch": "0"}}
    made = runner.run("gemm-rs-8x8x8", Problem(), entries, peers, common)
    return {record.name: record for record in made}, told


def records():
    on = Clock()
    plans = [candidate(on, "pull", 1.05), candidate(on, "ring", 1.5)]
    peers = [candidate(on, "NCCL", 1.4), failing("USP", AbsentError("yunchang is not there"))]
    made, _ = sweep(on, plans, peers)
    return [
        dataclasses.replace(record, workload="gemm-rs-16384x8192x8192")
        for record in made.values()
    ]
