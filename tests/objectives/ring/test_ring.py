"""Prices of ring plans, by hand and against the reference; memory."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring import lifetimes, price, tensors
from reference.small_rings import ring_problem
from tied_weights import tied

from go_rl.core import Device, Hardware, Links, Problem, Status, Topology
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.ring.simulate.memory import confirm_memory
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.solvers.replication import replicas_of
from go_rl.verify.rules import legal
from go_rl.verify.value import plan_value

LINK = 4.0
"""Bytes a second of the links in `problem_with`."""


def problem_with(nodes: int, edges: list[tuple[int, int, float]], chips: int, **options) -> Problem:
    """Every node takes one second; edges carry the bytes given."""
    outputs = options.pop("edge_output", [0] * len(edges))
    groups = options.pop("groups", [-1] * nodes)
    final = options.pop("is_output", [False] * nodes)
    latency = options.pop("latency", 0.0)
    made = options.pop("output_bytes", [0.0] * nodes)
    base = ring_problem(nodes, [(u, v) for u, v, _ in edges], chips, **options)
    order = sorted(range(len(edges)), key=lambda e: edges[e][:2])
    changed = replace(
        base,
        hardware=replace(base.hardware, links=Links(Topology.RING, LINK, latency)),
        graph=replace(
            base.graph,
            edge_output=np.array([outputs[e] for e in order], np.int32),
            is_output=np.array(final),
        ),
        edge_bytes=np.array([edges[e][2] for e in order], np.float64),
        output_bytes=np.array(made, np.float64),
    )
    return tied(changed, groups)


def evaluate(problem: Problem, *device: int):
    return RingPricer(problem).evaluate(np.array(device, np.int16))


def test_a_copy_makes_traffic_vanish_and_costs_its_work_and_weights_on_each_chip():
    edges = [(0, 1, 40.0), (0, 2, 40.0), (1, 2, 4.0)]
    options = {"seconds": [0.0, 3.0, 5.0], "weights": [2.0, 10.0, 20.0]}
    strict = evaluate(problem_with(3, edges, 2, **options), 0, 0, 1)
    assert strict.link_bytes[0] == 44.0
    assert strict.seconds == 11.0
    copied = problem_with(3, edges, 2, rules="replicate", **options)
    pricer = RingPricer(copied)
    assert pricer.replicated.tolist() == [True, False, False]
    device = np.array([1, 0, 1], np.int16)
    found = pricer.evaluate(device)
    assert found.link_bytes[0] == 4.0
    assert found.weight_bytes.tolist() == [12.0, 22.0]
    assert found.seconds == 5.0
    assert pricer.replicas(device) == {0: (1,)}
    assert pricer.place(device)[0].tolist() == [0, 0, 1]


def test_out_of_memory_is_a_status_that_names_the_chip():
    problem = problem_with(2, [(0, 1, 8.0)], 2, weights=[0.0, 93.0])
    found = evaluate(problem, 0, 1)
    assert found.status is Status.OUT_OF_MEMORY
    assert found.seconds == np.inf
    assert found.peak_bytes.tolist() == [8.0, 101.0]
    assert "chip 1" in found.detail
    assert evaluate(replace(problem, memory=False), 0, 1).status is Status.OK


def test_backward_flow_is_illegal_and_says_so():
    found = evaluate(problem_with(2, [(0, 1, 8.0)], 2), 1, 0)
    assert found.status is Status.ILLEGAL
    assert "lower chip" in found.detail


def test_a_node_that_a_chip_cannot_run_is_unsupported():
    problem = problem_with(2, [(0, 1, 8.0)], 2)
    other = replace(problem.hardware.devices[0], kind="other")
    mixed = replace(problem.hardware, devices=(problem.hardware.devices[0], other))
    seconds = np.array([[1.0, 1.0], [np.inf, 3.0]])
    mixed_problem = replace(problem, hardware=mixed, seconds=seconds)
    found = evaluate(mixed_problem, 1, 1)
    assert found.status is Status.UNSUPPORTED
    assert "chip 1" in found.detail
    assert evaluate(mixed_problem, 0, 1).device_seconds.tolist() == [1.0, 3.0]


def richer(seed: int) -> Problem:
    """A random ring with outputs, results of the model and memory from tight to loose."""
    problem = random_ring(seed, 12, 6)
    rng = np.random.default_rng(seed)
    nodes = problem.graph.num_nodes
    room = float(rng.integers(10, 400))
    chips = tuple(
        Device("tile", 1.0, float(rng.integers(10, 400)), 1.0) if rng.random() < 0.2
        else Device("tile", 1.0, room, 1.0)
        for _ in problem.hardware.devices
    )  # fmt: skip
    return replace(
        problem,
        hardware=Hardware("tight", chips, problem.hardware.links),
        graph=replace(problem.graph, is_output=rng.random(nodes) < 0.2),
        output_bytes=rng.integers(0, 20, nodes).astype(np.float64),
        streamed_bytes=np.where(rng.random(nodes) < 0.1, 50.0, 0.0),
    )


def random_devices(seed: int, problem: Problem, plans: int) -> np.ndarray:
    """Mostly monotone assignments, which are seldom illegal."""
    rng = np.random.default_rng(seed)
    devices = rng.integers(0, problem.hardware.num_devices, (plans, problem.graph.num_nodes))
    devices[1:] = np.sort(devices[1:], axis=1)
    return devices.astype(np.int16)


def sets_of(present: np.ndarray) -> list[frozenset[int]]:
    return [frozenset(c for c in range(64) if (int(word) >> c) & 1) for word in present]


def agrees(problem: Problem, home: np.ndarray, present: np.ndarray, evaluation) -> Status:
    twin = price(problem, home.tolist(), sets_of(present))
    assert evaluation.status is twin.status
    assert evaluation.seconds == pytest.approx(twin.seconds, rel=1e-12)
    for mine, theirs in (
        (evaluation.device_seconds, twin.device_seconds),
        (evaluation.link_bytes, twin.link_bytes),
        (evaluation.weight_bytes, twin.weights),
    ):
        assert mine.tolist() == pytest.approx(theirs, rel=1e-12)
    if twin.status is not Status.ILLEGAL:  # nothing is received against the flow
        assert evaluation.peak_bytes.tolist() == pytest.approx(twin.peak_bytes, rel=1e-12)
    return twin.status


def test_the_kernel_agrees_with_its_twin_and_with_the_checker():
    """120 problems: several results a node, tied weights, copies, all rule sets and memories."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        problem = richer(seed)
        pricer = RingPricer(problem)
        devices = random_devices(seed, problem, 3)
        values, codes = pricer.price(devices)
        for device, value, code in zip(devices, values, codes, strict=True):
            home, present = pricer.place(device)
            found = pricer.evaluate(device)
            status = agrees(problem, home, present, found)
            assert STATUS_CODES[code] is status
            assert value == found.seconds
            seen[status] += 1
            copies = replicas_of(home, present)
            seen["copies"] += bool(copies)
            if status.ok and not legal(problem, home, copies):
                seen["legal"] += 1
                assert plan_value(problem, home, copies) == pytest.approx(value, rel=1e-12)
    assert min(seen[Status.OK], seen[Status.ILLEGAL], seen[Status.OUT_OF_MEMORY]) > 20
    assert min(seen["copies"], seen["legal"]) > 15


def test_a_batch_is_priced_as_its_plans_one_by_one():
    problem = richer(3)
    devices = random_devices(3, problem, 33)
    pricer = RingPricer(problem)
    values, codes = pricer.price(devices)
    one = [pricer.price(device[None]) for device in devices]
    assert values.tolist() == [float(v[0]) for v, _ in one]
    assert codes.tolist() == [int(c[0]) for _, c in one]


def confirmed(problem: Problem, *device: int):
    home, present = RingPricer(problem).place(np.array(device, np.int16))
    return confirm_memory(problem, home, present)


def test_too_little_is_proved():
    chain = [(0, 1, 10.0), (1, 2, 6.0)]
    for room, status in ((16.0, Status.OK), (15.0, Status.OUT_OF_MEMORY)):
        assert confirmed(problem_with(3, chain, 1, memory_bytes=room), 0, 0, 0)[0] is status


def test_weights_alone_may_be_too_much():
    status, used = confirmed(problem_with(2, [], 2, weights=[101.0, 3.0]), 0, 1)
    assert status is Status.OUT_OF_MEMORY
    assert used.tolist() == [101.0, 3.0]


def test_heights_cover_the_peak_and_stay_within_the_chip():
    seen: Counter[Status] = Counter()
    for seed in range(100):
        problem = replace(richer(seed), memory=True)
        pricer = RingPricer(problem)
        device = random_devices(seed, problem, 2)[1]
        home, present = pricer.place(device)
        evaluation = pricer.evaluate(device)
        if evaluation.status is Status.ILLEGAL:
            continue
        status, used = confirm_memory(problem, home, present)
        seen[status] += 1
        if evaluation.status is Status.OUT_OF_MEMORY:
            assert status is Status.OUT_OF_MEMORY
        if status.ok:
            room = [chip.memory_bytes for chip in problem.hardware.devices]
            assert (used >= evaluation.peak_bytes).all()
            assert (used <= room).all()
            assert (used <= most_bytes(problem, home, present)).all()
    assert min(seen[Status.OK], seen[Status.OUT_OF_MEMORY]) > 10


def most_bytes(problem: Problem, home: np.ndarray, present: np.ndarray) -> list[float]:
    """Everything side by side: no allocation needs more."""
    sets, found = sets_of(present), tensors(problem)
    twin = price(problem, home.tolist(), sets)
    return [
        held + sum(size for _, _, size in lifetimes(problem, found, home.tolist(), sets, chip))
        for chip, held in enumerate(twin.weights)
    ]
