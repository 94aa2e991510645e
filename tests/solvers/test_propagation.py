"""No propagator removes a chip that some solution uses, and undo restores every counter."""

from dataclasses import fields

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_rules import copied_by, partitions
from reference.small_rings import ring_problem

from go_rl.core.bitset import ONE, membership
from go_rl.solvers import ring_instance
from go_rl.solvers.domains import DONE, NO_SKIP, OK, RELATIONS, SIZE, TRAIL, shrink
from go_rl.solvers.network import State, new_state
from go_rl.solvers.propagation import propagate, reset, undo
from go_rl.solvers.ring_instance import RingInstance

DECISIONS = 5


def block_solutions(instance: RingInstance) -> np.ndarray:
    """[S, M] every legal partition of the blocks."""
    found = set(partitions(instance.problem, copied_by(instance.replicated)))
    nodes = instance.problem.graph.num_nodes
    return np.array(sorted(found), np.int64).reshape(len(found), nodes)[:, instance.leader]


def snapshot(state: State) -> list[np.ndarray]:
    """Everything a search must find again after undo: all but scratch, trails and queue."""
    skipped = ("relation_trail", "trail_block", "trail_domain", "queue", "done_list", "cursor",
               "ready", "levels")  # fmt: skip
    names = [field.name for field in fields(State) if field.name not in skipped]
    kept = [np.copy(getattr(state, name)) for name in names]
    return [*kept, state.cursor[[TRAIL, DONE, RELATIONS, SIZE]].copy()]


def holds(state: State, solutions: np.ndarray, chips: int) -> bool:
    """Every chip of every solution is still in its block's domain."""
    domains = membership(state.domain, chips)
    return bool(domains[np.arange(solutions.shape[1]), solutions].all())


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))]
)
def test_every_solution_survives_propagation(chunk):
    """200 problems each: at the root, and after each of some random decisions."""
    pruned = 0
    for seed in range(200 * chunk, 200 * chunk + 200):
        instance, rng = ring_instance(random_ring(seed)), np.random.default_rng(seed)
        net, solutions = instance.net, block_solutions(instance)
        if instance.conflict:
            assert len(solutions) == 0, seed
            continue
        state = new_state(net)
        if reset(net, state) != OK:
            assert len(solutions) == 0, seed
            continue
        assert holds(state, solutions, net.chips), seed
        marks, before = [], []
        for _ in range(DECISIONS):
            marks.append(tuple(int(state.cursor[i]) for i in (TRAIL, DONE, RELATIONS)))
            before.append(snapshot(state))
            block = int(rng.integers(instance.num_blocks))
            allowed = np.int64(rng.integers(1, 2**net.chips))
            solutions = solutions[allowed >> solutions[:, block] & 1 == 1]
            rule = shrink(net, state, block, allowed, NO_SKIP)
            if rule != OK or propagate(net, state) != OK:
                assert len(solutions) == 0, seed
                break
            assert holds(state, solutions, net.chips), seed
            pruned += int((state.domain & (state.domain - ONE) == 0).all())
        for mark, expected in zip(reversed(marks), reversed(before), strict=True):
            undo(net, state, *mark)
            for mine, theirs in zip(snapshot(state), expected, strict=True):
                assert (mine == theirs).all(), seed
    assert pruned > 30


def test_order_by_hand():
    """A chain of three nodes on three chips: the middle one on chip 1 splits the others."""
    net = ring_instance(ring_problem(3, [(0, 1), (1, 2)], 3)).net
    state = new_state(net)
    assert reset(net, state) == OK
    assert shrink(net, state, 1, ONE << np.int64(1), NO_SKIP) == OK
    assert propagate(net, state) == OK
    assert membership(state.domain, 3).tolist() == [
        [True, False, False],
        [False, True, False],
        [False, True, True],
    ]


def test_triangle_by_hand():
    """0 -> 1 -> 2 and 0 -> 2: three chips in a row would leave chip edge 0 -> 2 beside a path."""
    edges = [(0, 1), (1, 2), (0, 2)]
    for rules, last in (("strict", [False, True, False]), ("relay", [False, True, True])):
        net = ring_instance(ring_problem(3, edges, 3, rules)).net
        state = new_state(net)
        assert reset(net, state) == OK
        assert shrink(net, state, 1, ONE << np.int64(1), NO_SKIP) == OK
        assert propagate(net, state) == OK
        assert membership(state.domain, 3)[2].tolist() == last
