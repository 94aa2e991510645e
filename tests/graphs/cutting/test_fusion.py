"""Fusion by priority: what is merged, what is refused and why; that kernels are always legal."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.fusion import acyclic, fuse
from reference.step_problems import graph_of, random_edges, random_kinds, step_problem

from go_rl.core import OpGraph, OpKind
from go_rl.core.graph.fusion import MAX_BOUNDARY, MAX_FUSED
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.verify.kernel_rules import legal_kernels

KIND = {
    "e": OpKind.ELEMENTWISE, "v": OpKind.MOVEMENT, "g": OpKind.GATHER, "m": OpKind.MATMUL,
    "c": OpKind.CONVOLUTION, "r": OpKind.REDUCTION, "o": OpKind.OTHER, "l": OpKind.CONTROL,
    "i": OpKind.INPUT, "k": OpKind.CONSTANT,
}  # fmt: skip
LIGHT, HEAVY = "evg", "mc"


def graph(kinds: str, edges) -> OpGraph:
    """One letter a node; every edge carries a byte."""
    sized = [(u, v, 1.0, *rest) for u, v, *rest in edges]
    return graph_of(len(kinds), sized, {"kinds": [KIND[k] for k in kinds]})


def leaders(kinds: str, edges, priority=None, device=None, within=None) -> list[int]:
    made = graph(kinds, edges)
    wish = np.ones(len(kinds), np.int64) if priority is None else np.array(priority)
    place = np.zeros(len(kinds), np.int64) if device is None else np.array(device)
    fuser = Fuser(made, None if within is None else np.array(within))
    return fuser.leaders(wish[None], place[None])[0].tolist()


CHAIN3 = [(0, 1), (1, 2)]


@pytest.mark.parametrize("producer", KIND)
@pytest.mark.parametrize("consumer", KIND)
def test_which_kinds_share_a_kernel(producer, consumer):
    """Light operators go before light ones and reductions; a matrix product or convolution takes
    elementwise and layout operators at its end; all else stays alone."""
    joins = (producer in LIGHT and consumer in LIGHT + "r") or (
        producer in HEAVY and consumer in "ev"
    )
    assert leaders(producer + consumer, [(0, 1)]) == ([0, 0] if joins else [0, 1])
    assert bool(Fuser(graph(producer + consumer, [(0, 1)])).may_fuse[0]) is joins


def test_a_path_through_an_outside_kernel_forbids_the_merge():
    assert leaders("eoe", [(0, 1), (1, 2), (0, 2)]) == [0, 1, 2]
    assert leaders("eooe", [(0, 1), (1, 2), (2, 3), (0, 3)]) == [0, 1, 2, 3]
    assert leaders("eoe", [(0, 1), (0, 2)]) == [0, 1, 0]
    assert leaders("eeee", [(0, 2), (1, 3), (0, 3), (1, 2)]) == [0, 0, 0, 0]


def test_two_kernels_may_not_come_to_wait_for_each_other():
    """With {0, 3} made first, {1, 2} would need 0 and be needed by 3; so 1 joins 3 instead."""
    edges = [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert leaders("megv", edges, [2, 1, 0, 0]) == [0, 0, 2, 0]
    assert leaders("megv", edges, [1, 2, 0, 0]) == [0, 1, 1, 1]


def test_within_keeps_classes_apart_whatever_the_devices():
    assert leaders("eeee", [*CHAIN3, (2, 3)], within=[0, 0, 1, 1]) == [0, 0, 2, 2]
    assert leaders("eeee", [*CHAIN3, (2, 3)], device=[0, 1, 1, 1], within=[0, 0, 0, 9]) == [
        0, 1, 1, 3,
    ]  # fmt: skip
    assert leaders("ee", [(0, 1)], device=[1, 0], within=[0, 1]) == [0, 1]


def test_priority_decides_who_gets_a_shared_consumer_and_ties_go_to_the_later_node():
    edges = [(0, 2), (1, 2), (2, 3)]
    assert leaders("mmee", edges, [1, 2, 3, 0]) == [0, 1, 1, 1]
    assert leaders("mmee", edges, [2, 1, 3, 0]) == [0, 1, 0, 0]
    assert leaders("mmee", edges, [1, 1, 1, 0]) == [0, 1, 1, 1]


def test_places_between_two_kernels_do_not_run_out():
    """Every producer's other reader moves to a place right behind the common kernel; after 45 of
    them, a reader that needs one of these is still told from one that does not."""
    p, kernel, needs, free = 45, 90, 91, 92
    edges = [edge for n in range(p) for edge in ((n, p + n), (n, kernel))]
    edges += [(kernel, needs), (p, needs), (kernel, free)]
    found = leaders("e" * p + "o" * p + "eee", edges, [2] * 2 * p + [1] * 3)
    assert found == [0] * p + list(range(p, 2 * p)) + [0, needs, 0]


def test_a_kernel_has_at_most_64_nodes():
    row = [(n, n + 1) for n in range(69)]
    assert MAX_FUSED == 64
    assert leaders("e" * 70, row) == [0] * 6 + [6] * 64
    assert leaders("e" * 64, row[:63]) == [0] * 64


def test_a_kernel_reads_and_writes_at_most_96_tensors():
    """A joiner reads ``others`` inputs and the producer's tensor, and writes one. The Fuser counts
    the tensors of both, the one between once, though it stays inside: others + 2 (the checker's own
    count is one less)."""
    assert MAX_BOUNDARY == 96

    def joined(others: int) -> bool:
        producer, joiner, reader = others, others + 1, others + 2
        edges = [*((n, joiner) for n in range(producer + 1)), (joiner, reader)]
        return leaders("i" * others + "evo", edges)[joiner] == producer

    assert joined(94)
    assert not joined(95)


def random_graph(seed: int, nodes: int) -> OpGraph:
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, nodes)
    return graph_of(nodes, edges, {"kinds": random_kinds(rng, nodes, edges)})


def test_the_compiled_fuser_merges_what_its_twin_merges():
    """So every merge that it left out breaks a rule, and none that it made does."""
    sizes: Counter[int] = Counter()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        made = random_graph(seed, int(rng.integers(1, 15)))
        count = made.num_nodes
        wish = rng.integers(-1, 4, count)
        place = rng.integers(0, 2, count) * (rng.random() < 0.5)
        found = Fuser(made).leaders(wish[None], place[None])[0].tolist()
        assert found == fuse(made, wish.tolist(), place.tolist())
        sizes.update(Counter(found).values())
    assert sizes[2] > 25
    assert max(sizes) > 5


@given(st.integers(0, 50_000), st.integers(2, 60), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_checker_accepts_every_kernel_that_the_fuser_makes(seed, nodes, devices, layered):
    rng = np.random.default_rng(seed)
    edges = [e for e in random_edges(rng, nodes) if rng.random() < 6 / nodes]
    kinds = random_kinds(rng, nodes, edges)
    problem = step_problem([1.0] * nodes, edges, devices, kinds=kinds)
    within = rng.integers(0, 2, nodes) if layered else None
    wish, device = rng.integers(-1, 5, (1, nodes)), rng.integers(0, devices, (1, nodes))
    leader = Fuser(problem.graph, within).leaders(wish, device)[0]
    assert legal_kernels(problem, device[0], None, leader) == ()
    assert acyclic(problem.graph, leader.tolist())
    if within is not None:
        assert (within == within[leader]).all()
