"""The host's time of steps: of which plans, and what a step is. ranks.py measures some."""

import re
from collections import Counter

import mercury as mc
from mercury.bench import host


def test_the_plans_call_nobody_back(monkeypatch):
    monkeypatch.setattr(host, "names", lambda: ["ulysses", "tree", "summa"])
    plans = dict(host.named_plans(mc.Mesh(gpu=2)))
    names = ["ulysses", "tree", "summa", "ring by pull, 1", "ring by pull, 8"]
    assert list(plans) == names
    for plan in plans.values():
        assert set(re.findall(r'impl\("([^"]*)', plan.spmd)) == {"generated"}


def test_a_step_is_what_computes_or_moves():
    mesh = mc.Mesh(gpu=2)
    program = mc.programs.attention(h=2, sq=8, sk=8, dtype="f32")
    plan = (
        mc.Schedule(program, mesh).parallelize("sq", "gpu").shift("sk", by="sq", reads="pull")
    )
    plan = plan.patch("*", "generated").compile(target="cuda")
    counts = [Counter(e.kind for e in plan.events(rank) if e.happens) for rank in range(2)]
    # Each reads the keys and values of the other, and computes twice.
    assert [(each["pull"], each["launch"]) for each in counts] == [(2, 2), (2, 2)]
    assert all(each["wait"] and each["lease_open"] for each in counts)
    assert host.steps_of(plan) == 4 + counts[1]["copy"] + counts[1]["fill"]
