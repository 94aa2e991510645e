"""The ring's decoder, and log-probabilities under cuts."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.cuts import cut_log_probs as every_log_prob
from reference.cuts import legal_cuts
from reference.random_rings import random_ring
from reference.small_rings import ring_problem

from go_rl.core import EnvironmentUseError, Means, Problem
from go_rl.core.bitset import membership
from go_rl.envs.rewards import LOG_SPEED_UP
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.ring.cut_log_probs import CutWindows, cut_log_probs
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.solvers import ring_instance
from go_rl.solvers.draws.cut_distribution import CutDistribution
from go_rl.solvers.network import Network
from go_rl.verify.rules import legal


def lattice(chips: int = 3, rules: str = "relay", **options) -> Problem:
    edges = [(i, j) for j in range(10) for i in range(j) if (i * j) % 5 == 1 or j == i + 4]
    seconds = [float(1 + (3 * i) % 4) for i in range(10)]
    return ring_problem(10, edges, chips, rules, seconds=seconds, **options)


def make(problem: Problem) -> RingPlans:
    return RingPlans(problem, RingWorkspace(problem))


def uniform(rollouts: RingPlans, batch: int = 6) -> np.ndarray:
    """[B, U, k] log-probabilities that prefer nothing."""
    chips = rollouts.workspace.chips
    return np.full((batch, rollouts.workspace.units.num_units, chips), -np.log(chips))


@pytest.mark.parametrize("rules", ["strict", "replicate", "relay", "default"])
def test_rewards_are_logarithms_against_the_heuristic(rules):
    rollouts = make(lattice(rules=rules))
    workspace = rollouts.workspace
    heuristic = workspace.pricer.evaluate(workspace.reference.device[0]).seconds
    assert workspace.reference_seconds == pytest.approx(heuristic)
    found = rollouts.sample_chips(uniform(rollouts), 0)
    assert found.priced.ok.any()
    for i in range(6):
        seconds = found.priced.seconds[i]
        expected = np.log(heuristic / seconds) if np.isfinite(seconds) else LOG_SPEED_UP.failure
        assert found.reward[i] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rules", ["strict", "replicate", "relay", "default"])
def test_every_usable_plan_is_legal(rules):
    problem = lattice(rules=rules)
    rollouts = make(problem)
    rng = np.random.default_rng(1)
    found = [
        rollouts.sample_chips(np.log(rng.dirichlet(np.ones(3), (6, 10))), 1),
        rollouts.fix(rng.integers(0, 3, (6, 10)), uniform(rollouts), 1),
    ]
    pricer = rollouts.workspace.pricer
    for batch in found:
        assert batch.priced.ok.sum() >= 3
        for device in batch.priced.decisions.device[batch.priced.ok]:
            home, _ = pricer.place(device)
            assert not legal(problem, home, pricer.replicas(device))


def test_sampled_chips_were_possible_when_drawn():
    rollouts = make(lattice(rules="strict"))
    found = rollouts.sample_chips(uniform(rollouts, 16), 0)
    drawn = found.drawn
    assert drawn is not None
    assert np.isfinite(drawn.log_prob[drawn.ok]).all()
    apart = drawn.ok & (drawn.means != Means.CUTS)
    masks = membership(drawn.mask, rollouts.workspace.chips)
    rows = np.take_along_axis(masks, drawn.device[..., None].astype(np.int64), -1)[..., 0]
    assert rows[apart].all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.sample_chips(np.zeros((2, 11, 3)), 0), "log_probs are for 11 units"),
        (
            lambda r: r.sample_chips(np.zeros((2, 10, 4)), 0),
            "log_probs are for 4 chips, the hardware has 3",
        ),
        (lambda r: r.sample_chips(np.full((2, 10, 3), np.nan), 0), "log_probs contain NaN"),
        (
            lambda r: r.fix(np.full((2, 10), 3), np.zeros((2, 10, 3)), 0),
            "chip 3 is not one of 0..2",
        ),
    ],
)
def test_wrong_sizes_and_nan_are_refused(call, message):
    with pytest.raises(EnvironmentUseError, match=f"graph 'small': {message}"):
        call(make(lattice()))


def test_an_infeasible_problem_earns_the_failure_reward():
    """0 -> 1 with 1 pinned below 0."""
    problem = ring_problem(2, [(0, 1)], 2, fixed={0: 1, 1: 0})
    rollouts = RingPlans(problem, RingWorkspace(problem))
    units = rollouts.workspace.units.num_units
    assert rollouts.workspace.reference_seconds == 2.0
    found = rollouts.sample_chips(np.zeros((3, units, 2)), 0)
    assert found.reward.tolist() == [LOG_SPEED_UP.failure] * 3
    assert found.priced.seconds.tolist() == [np.inf] * 3


def test_a_plan_without_room_earns_the_failure_reward():
    problem = ring_problem(3, [(0, 1), (1, 2)], 3, weights=[60.0, 60.0, 60.0])
    problem = replace(problem, edge_bytes=np.array([90.0, 0.0]))
    rollouts = make(problem)
    found = rollouts.fix(np.array([[0, 1, 2]]), uniform(rollouts, 1), 0)
    assert not found.priced.ok.any()
    assert found.reward.tolist() == [LOG_SPEED_UP.failure]


PADDED, CHIPS = 16, 6
"""Sizes of the padded arrays: more than any of the problems has."""


def padded_windows(net: Network, order: np.ndarray, cuts: CutDistribution) -> CutWindows:
    units, chips = len(order), net.chips
    last = np.full((CHIPS, PADDED), -1)
    last[:chips, :units] = cuts.last
    final = np.zeros(CHIPS, np.bool_)
    final[:chips] = not net.all_chips
    final[chips - 1] = True
    extra = np.arange(units, PADDED)
    return CutWindows(
        jnp.asarray(np.r_[order, extra]), jnp.asarray(np.r_[cuts.first, extra + 1]),
        jnp.asarray(last), jnp.int32(units), jnp.asarray(final),
    )  # fmt: skip


def padded_log_probs(log_probs: np.ndarray) -> jax.Array:
    found = np.zeros((PADDED, CHIPS), np.float32)
    found[: log_probs.shape[0], : log_probs.shape[1]] = log_probs
    return jnp.asarray(found)


def starts(order: np.ndarray, chip: np.ndarray) -> jax.Array:
    """The first position of each piece, then the number of units."""
    found = np.searchsorted(chip[order], np.arange(CHIPS + 1))
    return jnp.asarray(found)


def test_its_gradient_is_the_plan_less_the_marginals():
    random = np.array([3], np.uint64)
    slope = jax.jit(jax.grad(lambda *given: cut_log_probs(*given).sum()))
    compared = 0
    for seed in range(60, 110):
        net = ring_instance(random_ring(seed)).net
        rng = np.random.default_rng(seed)
        order = np.arange(len(net.weight))
        log_probs = rng.standard_normal((len(order), net.chips))
        every = list(legal_cuts(net, order, net.start))
        if not every:
            continue
        cuts = CutDistribution(net, order, net.start, log_probs)
        chip = np.zeros(len(order), np.int16)
        cuts.draw(random, chip)
        weights = np.exp(every_log_prob(net, order, log_probs, net.start))
        marginal = sum(w * one_hot(c, net.chips) for w, c in zip(weights, every, strict=True))
        expected = one_hot(chip, net.chips) - marginal / weights.sum()
        found = slope(
            padded_log_probs(log_probs), padded_windows(net, order, cuts), starts(order, chip)
        )
        assert np.isfinite(np.asarray(found)).all()
        np.testing.assert_allclose(found[: len(order), : net.chips], expected, atol=1e-4)
        assert not np.asarray(found)[len(order) :].any()
        compared += 1
    assert compared > 20


def one_hot(chip: np.ndarray, chips: int) -> np.ndarray:
    return np.eye(chips)[chip]
