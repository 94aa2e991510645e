"""SAMPLE and FIX: every partition within reach, honest masks, proposals kept, seeds obeyed."""

import numpy as np
import pytest
from reference.cuts import cut_log_probs
from reference.layered import layered_ring
from reference.random_rings import feasible
from reference.small_rings import broken, ring_problem

from go_rl.core import Problem, SolverError
from go_rl.core.bitset import membership
from go_rl.solvers import Means, RingSolver, SolverOptions


def random_log_probs(seed: int, problem: Problem, sharpness: float = 1.0) -> np.ndarray:
    shape = (problem.graph.num_nodes, problem.hardware.num_devices)
    scores = sharpness * np.random.default_rng(seed).standard_normal(shape)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


@pytest.mark.usefixtures("unchecked_types")
def test_uniform_samples_reach_every_legal_partition():
    for problem, expected in feasible(10, most_nodes=5, most_chips=3):
        samples = RingSolver(problem).sample(batch=60 * len(expected), seed=3)
        assert samples.ok.all()
        assert {tuple(d) for d in samples.device.tolist()} == set(expected)


@pytest.mark.usefixtures("unchecked_types")
def test_masks_hold_the_drawn_chip_and_log_prob_is_theirs():
    """Of cuts: less the log-mass of all legal cuts of the same order, counted one by one."""
    seen: set[Means] = set()
    for problem, _ in feasible(60, first=500):
        log_probs = random_log_probs(7, problem)
        solver = RingSolver(problem)
        samples = solver.sample(log_probs, batch=6, seed=5)
        masks = membership(samples.mask, problem.hardware.num_devices)
        leader = solver.instance.leader
        for row, device in enumerate(samples.device):
            means = Means(samples.means[row])
            expected = sum(
                renormalised(log_probs[n], masks[row, n], device[n])
                for n in (leader.tolist() if means is not Means.CUTS else ())
            )
            if means is Means.CUTS:
                chosen = log_probs[leader, device[leader]].sum()
                every = cut_log_probs(
                    solver.instance.net, samples.order[row], log_probs[leader],
                    samples.mask[row, leader],
                )  # fmt: skip
                expected = chosen - np.log(np.exp(every).sum())
            assert all(masks[row, n, device[n]] for n in leader)
            assert samples.log_prob[row] == pytest.approx(expected, abs=1e-9)
            seen.add(means)
    assert {Means.INDEPENDENT, Means.CUTS} <= seen


def renormalised(log_probs: np.ndarray, mask: np.ndarray, chip: int) -> float:
    weights = np.exp(log_probs) * mask
    return float(np.log(weights[chip] / weights.sum()))


def test_frequencies_follow_the_probabilities():
    """Two free nodes on two chips: chip 1 for the second only where the first is on chip 0."""
    problem = ring_problem(2, [(0, 1)], 2)
    log_probs = np.log(np.array([[0.5, 0.5], [0.2, 0.8]]))
    samples = RingSolver(problem).sample(log_probs, batch=4000, seed=1)
    assert (samples.device[:, 0] == 0).all()
    assert samples.device[:, 1].mean() == pytest.approx(0.8, abs=0.03)


def test_chips_of_probability_zero_are_drawn_only_when_forced():
    """Node 1 never wants chip 1 but is pinned there; node 2 never wants chip 2 and is free."""
    problem = ring_problem(3, [(0, 1)], 3, fixed={1: 1})
    log_probs = np.zeros((3, 3))
    log_probs[1, 1] = log_probs[2, 2] = -np.inf
    samples = RingSolver(problem).sample(log_probs, batch=300, seed=2)
    assert samples.ok.all()
    assert (samples.device[:, 1] == 1).all()
    assert set(samples.device[:, 2].tolist()) == {0, 1}


by_cuts_and_by_nodes = pytest.mark.parametrize("nodewise", [False, True])


@pytest.mark.usefixtures("unchecked_types")
@by_cuts_and_by_nodes
def test_fix_returns_legal_partitions_unchanged(nodewise):
    for problem, expected in feasible(60, first=900):
        some, solver = np.array(expected[:40], np.int16), RingSolver(problem)
        samples = solver.fix(some, random_log_probs(1, problem), seed=4, nodewise=nodewise)
        assert samples.ok.all()
        assert (samples.device == some).all()


@pytest.mark.usefixtures("unchecked_types")
@by_cuts_and_by_nodes
def test_fix_makes_any_proposal_legal(nodewise):
    for problem, _ in feasible(60, first=2000):
        solver, rng = RingSolver(problem), np.random.default_rng(6)
        shape = (8, problem.graph.num_nodes)
        proposals = rng.integers(-1, problem.hardware.num_devices, shape)
        samples = solver.fix(proposals, seed=4, nodewise=nodewise)
        assert samples.ok.all()
        for device in samples.device:
            assert broken(problem, device) == ()


def test_samples_depend_on_the_seed_and_not_on_threads():
    problem = layered_ring(3, 60, 8, "strict")
    one, two = (RingSolver(problem, SolverOptions(threads=t)) for t in (1, 2))
    log_probs = random_log_probs(0, problem)
    first, again, threaded, other = (
        one.sample(log_probs, 12, seed=9),
        one.sample(log_probs, 12, seed=9),
        two.sample(log_probs, 12, seed=9),
        one.sample(log_probs, 12, seed=10),
    )
    assert (first.device == again.device).all()
    assert (first.device == threaded.device).all()
    assert (first.mask == threaded.mask).all()
    assert (first.device != other.device).any()
    assert (first.device != first.device[0]).any()


def check_many(graphs: int, samples: int) -> None:
    """Half uniform, half sharply peaked; every third by FIX of a random proposal."""
    drawn = legal_ones = 0
    for seed in range(graphs):
        rules = ("strict", "default", "relay", "replicate")[seed % 4]
        nodes, chips = (30, 60, 120, 200)[seed // 4 % 4], (4, 8, 16, 36)[seed // 16 % 4]
        solver = RingSolver(layered_ring(seed, nodes, chips, rules))
        for part, sharpness in enumerate((0.0, 30.0)):
            log_probs = random_log_probs(seed, solver.problem, sharpness)
            if seed % 3:
                found = solver.sample(log_probs, samples // 2, seed=seed)
            else:
                rng = np.random.default_rng([seed, part])
                shape = (samples // 2, solver.problem.graph.num_nodes)
                found = solver.fix(rng.integers(0, chips, shape), log_probs, seed=seed)
            drawn += len(found.device)
            legal_ones += int(found.ok.sum())
            for device in found.device[found.ok]:
                assert broken(solver.problem, device) == (), seed
    assert legal_ones >= 0.99 * drawn


@pytest.mark.usefixtures("unchecked_types")
def test_samples_succeed_and_the_checker_finds_no_violation():
    check_many(graphs=52, samples=10)


@pytest.mark.slow
def test_ten_thousand_samples_and_no_violation():
    check_many(graphs=64, samples=160)


NAN, INF = np.full((3, 2), np.nan), np.full((3, 2), np.inf)
BAD = [
    ("log_probs of another graph", lambda s: s.sample(np.zeros((4, 2))), r"\[3, 2\].*not \[4, 2\]"),
    ("log_probs of other hardware", lambda s: s.sample(np.zeros((3, 3))), r"not \[3, 3\]"),
    ("log_probs of four axes", lambda s: s.sample(np.zeros((1, 1, 3, 2))), "must be"),
    ("NaN", lambda s: s.sample(NAN), "NaN"),
    ("infinity", lambda s: s.sample(INF), "inf"),
    ("no samples", lambda s: s.sample(batch=0), "batch must be >= 1, not 0"),
    ("assignment of another graph", lambda s: s.fix(np.zeros(4, int)), "4 nodes, the graph 3"),
    ("chip too high", lambda s: s.fix(np.array([0, 0, 2])), r"0\.\.1"),
    ("chip too low", lambda s: s.fix(np.array([0, -2, 0])), r"0\.\.1"),
    ("batches", lambda s: s.fix(np.zeros((2, 3), int), np.zeros((3, 3, 2))), "2 .* and .* 3"),
    ("a batch of none", lambda s: s.sample(np.zeros((0, 3, 2))), "a batch of none"),
    ("words", lambda s: s.sample(np.full((3, 2), "x")), "log_probs must be an array of numbers"),
    ("no assignment", lambda s: s.fix(np.zeros((0, 3), int)), "B >= 1"),
    ("half a chip", lambda s: s.fix(np.full(3, 0.5)), "whole numbers"),
    ("truth values", lambda s: s.fix(np.ones(3, bool)), "numbers, not of bool"),
    ("NaN in fix", lambda s: s.fix(np.zeros(3, int), NAN), "NaN"),
]  # fmt: skip


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("call", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_arguments_are_refused(call, message):
    solver = RingSolver(ring_problem(3, [(0, 1), (1, 2)], 2))
    with pytest.raises(SolverError, match=message):
        call(solver)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_a_second_threads_first_sample_is_the_first_threads():
    """A state that is made while another is out begins at the same root."""
    told_apart = 0
    for problem, _ in feasible(60, first=4000):
        log_probs = np.stack([random_log_probs(i, problem, sharpness=4.0) for i in range(20)])
        solver = RingSolver(problem)
        told_apart += bool((solver.instance.net.start != solver._borrow().domain).any())
        for i in range(20):
            expected = RingSolver(problem).sample(log_probs[i : i + 1], seed=i)
            solver._idle.clear()
            found = solver.sample(log_probs[i : i + 1], seed=i)
            assert found.device.tolist() == expected.device.tolist()
            assert found.means.tolist() == expected.means.tolist()
    assert told_apart > 1
