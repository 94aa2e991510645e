"""SAMPLE and FIX at the edge of what a problem, a distribution or a proposal may be."""

from dataclasses import replace

import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.core import Means, Problem
from go_rl.solvers import RingSolver, Samples
from go_rl.solvers.replication import place_copies, replicas_of
from go_rl.verify.rules import legal

CHAIN = [(0, 1), (1, 2), (2, 3)]
INF = np.inf


def all_chips(problem: Problem) -> Problem:
    return replace(problem, all_chips=True)


PROBLEMS = {
    "one node, one chip": ring_problem(1, [], 1),
    "one node, 36 chips": ring_problem(1, [], 36),
    "no edges": ring_problem(5, [], 3),
    "no edges, every chip": all_chips(ring_problem(6, [], 3)),
    "one chip": ring_problem(4, CHAIN, 1),
    "more chips than nodes": ring_problem(4, CHAIN, 36),
    "as many chips as nodes, every chip": all_chips(ring_problem(4, CHAIN, 4)),
    "all pinned": ring_problem(4, CHAIN, 3, fixed={0: 0, 1: 1, 2: 1, 3: 2}),
    "pinned to the last chip": ring_problem(4, CHAIN, 4, fixed={3: 3}),
    "pinned apart": ring_problem(4, [(0, 1), (0, 2), (0, 3)], 3, fixed={3: 2}),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def check(solver: RingSolver, samples: Samples) -> None:
    """All are legal, and their log-probabilities are numbers."""
    assert samples.ok.all()
    assert (samples.log_prob <= 1e-9).all()
    assert np.isfinite(samples.log_prob).all()
    for device in samples.device:
        home, present = place_copies(solver.problem, solver.instance.replicated, device)
        assert legal(solver.problem, home, replicas_of(home, present)) == ()


@every_problem
def test_any_distribution_gives_legal_samples(problem):
    solver, rng = RingSolver(problem), np.random.default_rng(0)
    shape = (problem.graph.num_nodes, problem.hardware.num_devices)
    odd = rng.standard_normal(shape)
    odd[-1] = -INF
    last = np.full(shape, -INF)
    last[:, -1] = 0.0
    first = np.where(np.arange(shape[1]) == 0, 0.0, np.full(shape, -INF))
    for log_probs in (
        None, np.zeros(shape), odd, last, first, np.full(shape, -INF), np.full(shape, -1e300),
        np.where(last < 0, -1e300, 1e300), odd.astype(np.float32), odd[:, ::-1],
    ):  # fmt: skip
        samples = solver.sample(log_probs, batch=4, seed=1)
        check(solver, samples)
        given = None if log_probs is None else np.asarray(log_probs, np.float64)
        for row in range(4):
            found = solver.fidelity(samples, row, log_probs=given)
            assert found.legalized_by is not Means.NONE
            assert (found.displacement is None) == (log_probs is None)


@every_problem
def test_any_proposal_is_repaired(problem):
    solver, nodes = RingSolver(problem), problem.graph.num_nodes
    chips = problem.hardware.num_devices
    for proposal in (
        np.full(nodes, -1), np.zeros(nodes, int), np.full(nodes, chips - 1),
        np.arange(nodes)[::-1] % chips,
    ):  # fmt: skip
        for log_probs in (None, np.full((nodes, chips), -INF)):
            samples = solver.fix(proposal, log_probs, seed=2)
            check(solver, samples)
            assert (solver.fidelity(samples, 0, proposal).displacement is None) == (
                (proposal == -1).all()
            )


def test_fix_keeps_near_where_every_chip_has_probability_zero():
    """Node 1 must not be after node 2: the nearest plans move one node by one chip."""
    solver = RingSolver(ring_problem(4, CHAIN, 2))
    proposal = np.array([0, 1, 0, 1])
    found = solver.fix(proposal, np.full((4, 2), -INF))
    assert solver.fidelity(found, 0, proposal).displacement == 0.25
