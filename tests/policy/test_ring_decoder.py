"""Batches of decisions, solved, priced and rewarded."""

from dataclasses import replace

import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.core import EnvironmentUseError, Means, Problem
from go_rl.envs.rewards import LOG_SPEED_UP
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.ring.ring_plans import RingPlans
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
    masks = drawn.masks(rollouts.workspace.chips)
    rows = np.take_along_axis(masks, drawn.device[..., None].astype(np.int64), -1)[..., 0]
    assert rows[apart].all()


@pytest.mark.parametrize("seed", [0, 2**40, 2**63])
def test_equal_seeds_give_equal_rollouts(seed):
    one, two = (make(lattice()) for _ in range(2))
    first, second = one.sample_chips(uniform(one), seed), two.sample_chips(uniform(two), seed)
    assert first.chip.tolist() == second.chip.tolist()
    assert first.reward.tolist() == second.reward.tolist()
    assert len({tuple(row) for row in first.chip.tolist()}) > 1


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
