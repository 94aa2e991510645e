"""Parts of inner tuners, by hand: chains, diversity, clusters, policies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning.lattice import Lattice

from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.tuners.adaptive_sampling import adaptive_sample, k_means
from go_rl.tuning.tuners.chameleon import discounted
from go_rl.tuning.tuners.evolutionary_search import parent_odds
from go_rl.tuning.tuners.neighbour_policy import MoveExperience, NeighbourMoves, NeighbourPolicy
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.proposal import diverse_choice, feature_values
from go_rl.tuning.tuners.scored_pool import ScoredCandidates, ScoredPool
from go_rl.tuning.tuners.simulated_annealing import AnnealingConfig, accepted, anneal

SPACE = Lattice((4, 4), (3, 3))


def scored(rows: list[list[float]], scores: list[float]) -> ScoredCandidates:
    candidates = tuple(SPACE.at((i,)) for i in range(len(rows)))
    return ScoredCandidates(candidates, np.array(scores), np.array(rows, np.float32))


def keys(found: ScoredCandidates) -> list[str]:
    return [one.key for one in found.candidates]


def test_moves_that_are_better_are_made_and_others_by_their_heat():
    rng = np.random.default_rng(0)
    old, new = np.zeros(4000), np.repeat([-1.0, 0.0, 1.0, 2.0], 1000)
    share = accepted(old, new, 1.0, rng).reshape(4, 1000).mean(axis=1)
    assert share[:2].tolist() == [1.0, 1.0]
    assert share[2:] == pytest.approx(np.exp([-1.0, -2.0]), abs=0.04)
    assert accepted(np.zeros(3), np.array([-1.0, 0.0, 1e-9]), 0.0, rng).tolist() == [1, 1, 0]


def test_chains_end_when_nothing_better_is_found():
    """All candidates are alike: after three idle moves of two chains at most eight are known."""
    pool = ScoredPool(SPACE, lambda some, _: np.zeros(len(some)))
    first = [SPACE.at((0, 0)), SPACE.at((1, 1))]
    anneal(SPACE, pool, first, 99, AnnealingConfig(patience=3), np.random.default_rng(0))
    assert len(pool) <= 2 + 3 * 2
    alone = Lattice((1, 1), (0, 0))
    anneal(alone, pool, [alone.at((0, 0))], 9, AnnealingConfig(), np.random.default_rng(0))
    anneal(SPACE, pool, [], 9, AnnealingConfig(), np.random.default_rng(0))


def test_each_candidate_is_scored_once():
    asked: list[str] = []

    def score(candidates, features):
        asked.extend(one.key for one in candidates)
        return -features.sum(axis=1).astype(np.float64)

    pool = ScoredPool(SPACE, score)
    some = [SPACE.at(point) for point in ((1, 2), (0, 0), (1, 2), (3, 3))]
    assert pool.scores(some).tolist() == [-3.0, 0.0, -3.0, -6.0]
    assert pool.scores(some[::-1]).tolist() == [-6.0, -3.0, 0.0, -3.0]
    assert asked == ["1,2", "0,0", "3,3"]
    assert keys(pool.fresh({"3,3"})) == ["1,2", "0,0"]
    assert pool.rows(some[:2]).tolist() == [[1, 2], [0, 0]]
    assert keys(ScoredPool(SPACE, score).fresh({})) == []


def test_diversity_takes_new_values_before_slightly_better_scores():
    """0 and 1 are alike, 2 is unlike them in both features, 3 in one. The scores' deviation is
    0.37: at weight 1, after 0, the gains are 1: 0.27 less, 2: 1 more and 0.54 less, and so on."""
    pool = scored([[0, 0, 5], [0, 0, 5], [1, 1, 5], [1, 0, 5]], [0.0, 0.1, 0.2, 1.0])
    assert keys(diverse_choice(pool, 2, 0.0)) == ["0", "1"]
    assert keys(diverse_choice(pool, 2, 1.0)) == ["0", "2"]
    assert keys(diverse_choice(pool, 3, 1.0)) == ["0", "2", "1"]
    assert keys(diverse_choice(pool, 9, 1.0)) == ["0", "1", "2", "3"]
    assert feature_values(pool.features).tolist() == [[0, 0], [0, 0], [1, 1], [1, 0]]
    same = scored([[1.0]] * 3, [2.0] * 3)
    assert keys(diverse_choice(same, 2, 1.0)) == ["0", "1"]


def test_one_candidate_stands_for_each_cluster():
    rows = [[0, 0], [9, 9], [0, 0.1], [9, 9.1], [0.1, 0]]
    pool = scored(rows, [1.0, 2.0, 3.0, 4.0, 5.0])
    rng = np.random.default_rng(0)
    owner, inertia = k_means(np.array(rows), 2, rng)
    assert owner[0] == owner[2] == owner[4] != owner[1] == owner[3]
    assert inertia == pytest.approx(2 * 0.1**2 / 3 * 2 + 2 * 0.05**2)
    assert keys(adaptive_sample(pool, 5, 0.05, rng)) == ["0", "1"]
    assert len(adaptive_sample(pool, 5, 0.0, rng).candidates) == 5
    assert keys(adaptive_sample(pool.take(np.array([3])), 5, 0.05, rng)) == ["3"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_clusters_are_the_nearest_centres(seed, count, k):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (count, 2)).astype(np.float64)
    k = min(k, count)
    owner, inertia = k_means(points, k, rng)
    assert ((owner >= 0) & (owner < k)).all()
    within = sum(((points[owner == j] - points[owner == j].mean(0)) ** 2).sum() for j in set(owner))
    assert inertia <= within + 1e-9


def test_rewards_are_discounted_by_hand():
    rewards = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 8.0]])
    assert discounted(rewards, 0.5).tolist() == [[3.0, 2.0], [4.0, 4.0], [4.0, 8.0]]


def test_parents_are_drawn_by_rank():
    odds = parent_odds(np.array([3.0, -7.0, 100.0]), 2.0)
    weights = np.exp([-1.0, 0.0, -2.0])
    np.testing.assert_allclose(odds, weights / weights.sum())
    assert parent_odds(np.array([5.0]), 2.0).tolist() == [1.0]


def test_a_policy_learns_to_take_the_choice_that_pays():
    """The second choice is known by its feature; the third does not exist."""
    policy = NeighbourPolicy(2, 8, 0.03, np.random.default_rng(1))
    n, rng = 64, np.random.default_rng(0)
    choices = np.zeros((n, 3, 2), np.float32)
    choices[:, 1, 0] = 1.0
    moves = NeighbourMoves(choices[:, 0], choices, np.tile([True, True, False], (n, 1)))
    logs, values = policy.look(moves)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.exp(logs[:, :2]), 0.5, atol=0.05)
    assert np.exp(logs[:, 2]).max() == 0.0
    assert values.shape == (n,)
    for _ in range(6):
        logs, _ = policy.look(moves)
        chosen = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1).astype(np.int32)
        reward = np.where(chosen == 1, 1.0, -1.0).astype(np.float32)
        policy.learn(MoveExperience(moves, chosen, logs[np.arange(n), chosen], reward, reward), 4)
    assert np.exp(policy.look(moves)[0][:, 1]).min() > 0.8


def test_a_candidate_counts_once_by_its_first_trial():
    observed = ObservedTrials(SPACE, 0)
    slow, fast, bad = (SPACE.at((i, i)) for i in range(3))
    observed.add([Trial(slow, 3.0, 1.0), Trial(bad, None, 1.0, "crashed")])
    observed.add([Trial(fast, 1.0, 1.0), Trial(slow, 0.5, 1.0), Trial(bad, 2.0, 1.0)])
    assert observed.count == 5
    assert dict(observed.seconds) == {"0,0": 3.0, "2,2": np.inf, "1,1": 1.0}
    assert observed.fastest(9) == [fast, slow]
    assert observed.measured().features.tolist() == [[0, 0], [2, 2], [1, 1]]
    assert observed.measured().speed.tolist() == [1 / 3, 0.0, 1.0]
