"""Domains of chips: what propagation removes and keeps, undone and reset."""

from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from reference.random_rings import random_ring as richer_ring
from reference.ring_rules import copied_by, partitions
from reference.small_rings import broken, legal_plans, random_ring, ring_problem

from go_rl.core import SolverError
from go_rl.core.bitset import ONE, membership
from go_rl.solvers import DomainStore, ring_instance
from go_rl.solvers.domains import DONE, NO_SKIP, OK, RELATIONS, SIZE, TRAIL, shrink
from go_rl.solvers.network import State, new_state
from go_rl.solvers.propagation import propagate, reset, undo
from go_rl.solvers.ring_instance import RingInstance


@cache
def plans_of(seed: int) -> np.ndarray:
    """[P, N] all legal plans of `random_ring`, which takes longer than what is tested."""
    return legal_plans(random_ring(seed))


def test_root_domains_of_a_chain_by_hand():
    """Three nodes in a row on two chips: all chips stay open, chip 0 must be somebody's."""
    store = DomainStore(ring_problem(3, [(0, 1), (1, 2)], 2))
    assert store.domains().tolist() == [[True, False], [True, True], [True, True]]
    assert store.set(2, 0)
    assert store.complete
    assert store.assignment().tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_no_value_of_any_solution_is_removed(seed):
    """After random decisions the domains hold every plan that agrees with them."""
    problem = random_ring(seed)
    plans, store = plans_of(seed), DomainStore(problem)
    if not store.feasible:
        assert len(plans) == 0
        assert store.clash
        return
    rng = np.random.default_rng(seed)
    for _ in range(12):
        node = int(rng.integers(problem.graph.num_nodes))
        chip = int(rng.integers(problem.hardware.num_devices))
        setting = rng.random() < 0.6
        agreeing = plans[(plans[:, node] == chip) == setting]
        if (store.set if setting else store.remove)(node, chip):
            plans = agreeing
        else:
            assert len(agreeing) == 0
            assert store.clash
        allowed = store.domains()[np.arange(problem.graph.num_nodes), plans]
        assert allowed.all()
    if store.complete:
        assert len(plans) == 1
        assert (store.assignment() == plans[0]).all()


@pytest.mark.parametrize("seed", range(10))
def test_possible_keeps_every_solution_and_lies_in_the_domain(seed):
    problem = random_ring(seed)
    plans, store = plans_of(seed), DomainStore(problem)
    for node in range(problem.graph.num_nodes):
        possible = store.possible(node)
        assert not (possible & ~store.domains()[node]).any()
        assert possible[plans[:, node]].all()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("rules", ["strict", "default"])
def test_undo_and_reset_restore_exactly(seed, rules):
    problem = random_ring(seed, rules)
    store = DomainStore(problem)
    rng = np.random.default_rng(seed)
    seen = [_snapshot(store)]
    for _ in range(20):
        node = int(rng.integers(problem.graph.num_nodes))
        chip = int(rng.integers(problem.hardware.num_devices))
        if (store.set if rng.random() < 0.5 else store.remove)(node, chip):
            seen.append(_snapshot(store))
        _assert_same(_snapshot(store), seen[-1])
        if rng.random() < 0.3 and store.depth:
            store.undo()
            seen.pop()
            _assert_same(_snapshot(store), seen[-1])
    store.reset()
    _assert_same(_snapshot(store), seen[0])


def _snapshot(store: DomainStore) -> dict[str, np.ndarray]:
    counted = ("domain", "count", "placed", "span", "lows", "low_weight", "high_weight", "free")
    state = store._state
    names = (*counted, "holds", "done", "relation", "queued")
    return {n: getattr(state, n).copy() for n in names} | {"domains": store.domains()}


def _assert_same(now: dict[str, np.ndarray], before: dict[str, np.ndarray]) -> None:
    for name in before:
        assert (now[name] == before[name]).all(), name


def test_copied_nodes_follow_their_consumers():
    """Node 0 costs next to nothing and feeds both ends of a chain of three."""
    edges = [(0, 1), (0, 3), (1, 2), (2, 3)]
    problem = ring_problem(4, edges, 3, "replicate", seconds=[1e-6, 1.0, 1.0, 1.0])
    store = DomainStore(problem)
    assert store.instance.replicated.tolist() == [True, False, False, False]
    assert store.set(3, 2)
    assert store.set(2, 1)
    assert store.chips(0) == (0, 2)
    device = store.assignment()
    assert device.tolist() == [0, 0, 1, 2]
    assert broken(problem, device) == ()


def test_an_infeasible_problem_says_why():
    problem = ring_problem(2, [(0, 1)], 2, weights=[60.0, 60.0], fixed={0: 1})
    store = DomainStore(problem)
    assert not store.feasible
    assert "rule" in store.clash
    assert not store.domains().any()
    assert not store.set(0, 0)
    with pytest.raises(SolverError, match=r"no plan exists: .*rule"):
        store.assignment()


def test_a_refusal_names_node_and_chip():
    store = DomainStore(ring_problem(3, [(0, 1), (1, 2)], 2))
    assert not store.set(0, 1)
    assert store.clash == "node 0 cannot be put on chip 1; it has [0] left"


@pytest.mark.parametrize("chips", [3, 63, 64])  # 63 and 64 reach the sign of a word
def test_domains_of_many_chips(chips):
    store = DomainStore(ring_problem(3, [(0, 1), (1, 2)], chips))
    assert store.domains().sum(axis=1).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda s: s.set(3, 0), "node 3 is not one of 0..2"),
        (lambda s: s.set(-1, 0), "node -1 is not one of 0..2"),
        (lambda s: s.remove(0, 2), "chip 2 is not one of 0..1"),
        (lambda s: s.undo(), "no decision is left"),
        (lambda s: s.assignment(), r"node 1 still has chips \[0, 1\]"),
    ],
)
def test_misuse(misuse, sentence):
    store = DomainStore(ring_problem(3, [(0, 1), (1, 2)], 2))
    with pytest.raises(SolverError, match=sentence):
        misuse(store)


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
        instance, rng = ring_instance(richer_ring(seed)), np.random.default_rng(seed)
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


@pytest.mark.parametrize(
    ("rules", "edges", "last"),
    [
        # A chain: the middle node on chip 1 splits the others.
        ("strict", [(0, 1), (1, 2)], [False, True, True]),
        # Three chips in a row would leave chip edge 0 -> 2 beside a path.
        ("strict", [(0, 1), (1, 2), (0, 2)], [False, True, False]),
        ("relay", [(0, 1), (1, 2), (0, 2)], [False, True, True]),
    ],
)
def test_three_nodes_on_three_chips_by_hand(rules, edges, last):
    net = ring_instance(ring_problem(3, edges, 3, rules)).net
    state = new_state(net)
    assert reset(net, state) == OK
    assert shrink(net, state, 1, ONE << np.int64(1), NO_SKIP) == OK
    assert propagate(net, state) == OK
    assert membership(state.domain, 3).tolist() == [
        [True, False, False], [False, True, False], last,
    ]  # fmt: skip
