"""Latency pricing: hand-computed schedules, the twin, and the authors' own figure."""

from collections import Counter

import numpy as np
import pytest
from reference.boxed_problems import random_devices, random_problem
from reference.latency import latency

from go_rl.core import (
    Device,
    Hardware,
    Links,
    Objective,
    OpKind,
    Problem,
    Status,
    Topology,
    rule_set,
)
from go_rl.core.evaluation import STATUS_CODES
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.objectives.host.simulate.latency import evaluate_latency, latency_batch

TILE = Device("tile", 1.0, 10.0, 1.0)
CPU = Device("cpu", 1.0, 1.0, 1.0, is_cpu=True)


def fork() -> Problem:
    """a feeds b and c, b feeds d; a's output costs 2 to move, the others' 1."""
    builder = GraphBuilder("fork")
    for name in "abcd":
        builder.add_node(Node(name, "Op", OpKind.OTHER))
    for u, v in ((0, 1), (0, 2), (1, 3)):
        builder.add_edge(u, v, 1.0)
    return Problem(
        graph=builder.build(),
        hardware=Hardware("two and a host", (TILE, TILE, CPU), Links(Topology.FULL, 1.0)),
        objective=Objective.LATENCY,
        rules=rule_set("default"),
        seconds=np.array([[4.0, 5.0, 6.0, 7.0], [40.0, 50.0, 60.0, 70.0]]),
        cost_model="profiled",
        output_bytes=np.zeros(4),
        weight_bytes=np.array([4.0, 4.0, 4.0, 2.0]),
        tied_bytes=np.zeros(0),
        streamed_bytes=np.zeros(4),
        edge_bytes=np.zeros(3),
        transfer_seconds=np.array([2.0, 1.0, 1.0, 1.0]),
        memory=False,
    )


@pytest.mark.parametrize(
    ("plan", "makespan"),
    [
        # One subgraph: no transfers at all.
        ((0, 0, 0, 0), 22),
        # Device 0 runs a and c and sends a: 4 + 6 + 2; device 1 reads a, runs b and d: 2 + 5 + 7.
        ((0, 1, 0, 1), 12 + 14),
        # CPU nodes need no transfer of their own and run side by side: a, then b + d beside c.
        ((2, 2, 2, 2), 40 + 50 + 70),
        # a leaves device 0 at 4 + 2; c on the CPU from 6 to 66 beside device 1: 6 + 2 + 5 + 7.
        ((0, 1, 2, 1), 66),
    ],
)
def test_schedules_by_hand(plan, makespan):
    evaluation = evaluate_latency(fork(), np.array(plan, np.int16))
    assert evaluation.status is Status.OK
    assert evaluation.seconds == makespan


@pytest.mark.parametrize("plan", [(0, 1, 0, 0), (0, 2, 0, 0)])
def test_a_subgraph_left_and_entered_again_is_illegal(plan):
    evaluation = evaluate_latency(fork(), np.array(plan, np.int16))
    assert evaluation.status is Status.ILLEGAL
    assert "contiguous" in evaluation.detail


def test_two_subgraphs_that_wait_for_each_other_are_illegal():
    builder = GraphBuilder("crossed")
    for name in "abcd":
        builder.add_node(Node(name, "Op", OpKind.OTHER))
    builder.add_edge(0, 1, 1.0)
    builder.add_edge(2, 3, 1.0)
    from dataclasses import replace

    problem = replace(fork(), graph=builder.build(), edge_bytes=np.zeros(2))
    assert evaluate_latency(problem, np.array([0, 1, 1, 0], np.int16)).status is Status.ILLEGAL


def test_the_kernel_agrees_with_the_twin():
    seen = Counter()
    for seed in range(36):
        problem = random_problem(seed, Objective.LATENCY, 1 + seed % 9, 1 + seed % 4)
        plans = random_devices(seed, problem, 12)
        values, codes = latency_batch(problem, plans)
        for plan, value, code in zip(plans, values, codes, strict=True):
            expected, status = latency(problem, plan)
            assert STATUS_CODES[code] is status
            assert value == pytest.approx(expected, rel=1e-12)
            assert evaluate_latency(problem, plan).seconds == value
            seen[status] += 1
    wanted = (Status.OK, Status.ILLEGAL, Status.UNSUPPORTED, Status.OUT_OF_MEMORY)
    assert min(seen[s] for s in wanted) >= 8
