"""Inner tuners: planted optima, exhausted spaces, runs that go on, bad input."""

import numpy as np
import pytest
from tuning.lattice import Lattice, tune

from go_rl.costs.trees.candidate_ranks import CandidateRanksConfig
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, Trial
from go_rl.tuning.tuners.chameleon import ChameleonConfig, chameleon
from go_rl.tuning.tuners.evolutionary_search import EvolutionConfig, evolutionary_search
from go_rl.tuning.tuners.online_scorer import OnlineScorerConfig
from go_rl.tuning.tuners.registry import RandomCandidates
from go_rl.tuning.tuners.simulated_annealing import AnnealingConfig, simulated_annealing

MODEL = OnlineScorerConfig(trees=CandidateRanksConfig(trees=15, depth=3, learning_rate=0.4))
RANKS = OnlineScorerConfig(trees=CandidateRanksConfig(trees=15, depth=3, loss="rank"))
MAKE = {
    "annealing": lambda space, seed, prior=None: simulated_annealing(
        space, seed, AnnealingConfig(model=MODEL), prior
    ),
    "ranks": lambda space, seed, prior=None: simulated_annealing(
        space, seed, AnnealingConfig(model=RANKS), prior
    ),
    "evolution": lambda space, seed, prior=None: evolutionary_search(
        space, seed, EvolutionConfig(model=MODEL), prior
    ),
    "chameleon": lambda space, seed, prior=None: chameleon(
        space, seed, ChameleonConfig(effort=16, hidden=8, model=MODEL), prior
    ),
    "random": lambda space, seed: RandomCandidates(space, seed),
}
GUIDED = [name for name in MAKE if name != "random"]
SEEDS, LIMIT = 20, 90


@pytest.fixture(autouse=True)
def needs_xgboost():
    pytest.importorskip("xgboost", reason="XGBoost is an extra: pip install 'go_rl[tuning]'")


def median_trials(name: str) -> float:
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        space = Lattice(optimum=tuple(rng.integers(0, 7, 3).tolist()))
        found.append(tune(MAKE[name](space, seed), space, LIMIT))
    return float(np.median(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", GUIDED)
def test_a_planted_optimum_is_found_in_a_third_of_the_trials_of_chance(name):
    """Chance needs 172 of 343 trials in the median; it runs to 90 here."""
    assert median_trials(name) <= 60


@pytest.mark.parametrize("name", MAKE)
def test_a_space_is_measured_once_each_and_its_end_is_said(name):
    space = Lattice((4, 3, 1), (2, 2, 0), broken=frozenset({"0,0,0", "1,1,0"}))
    tuner = MAKE[name](space, 3)
    while proposed := tuner.propose(5):
        assert len(proposed) <= 5
        assert len({one.key for one in proposed} - set(space.measured)) == len(proposed)
        tuner.observe(space.measure(proposed))
    assert sorted(space.measured) == sorted(
        one.key for one in space.draw(12, np.random.default_rng())
    )
    assert tuner.propose(1) == []


@pytest.mark.parametrize("name", MAKE)
def test_a_run_that_was_cut_off_goes_on_as_it_would_have(name):
    """Proposing again changes nothing; what others measured is known, too."""
    whole, resumed = Lattice(), Lattice()
    first = MAKE[name](whole, 5)
    told = []
    for _ in range(3):
        first.propose(4)
        told.append(whole.measure(first.propose(8)))
        first.observe(told[-1])
    second = MAKE[name](resumed, 5)
    for batch in told:
        second.observe(batch)
    assert second.propose(8) == first.propose(8)
    third = MAKE[name](resumed, 5)
    third.observe([trial for batch in told for trial in batch])
    assert third.propose(8) == first.propose(8)
    other = MAKE[name](resumed, 6)
    for batch in told:
        other.observe(batch)
    assert other.propose(8) != first.propose(8)


@pytest.mark.parametrize("name", ["evolution", "annealing", "chameleon"])
def test_a_predictor_that_knows_finds_the_optimum_soon(name):
    space = Lattice((9, 9), (7, 2))

    def knows(candidates, features):
        assert features.shape == (len(candidates), 2)
        return np.array([space.seconds(one) for one in candidates])

    tuner = MAKE[name](space, 1, knows)
    assert tune(tuner, space, 30, 10) <= 20  # by chance, 41 in the median
    assert len(tuner.propose(10)) > 0


@pytest.mark.parametrize("scores", [np.zeros(1), np.full(20, np.nan)])
def test_a_predictor_that_returns_nonsense_is_refused(scores):
    tuner = evolutionary_search(Lattice(), 0, EvolutionConfig(effort=40), lambda *_: scores)
    with pytest.raises(TuningError, match="20 finite scores"):
        tuner.propose(2)


@pytest.mark.parametrize("name", MAKE)
def test_bad_input_is_one_clear_error(name):
    with pytest.raises(TuningError, match="seed must be >= 0, not -1"):
        MAKE[name](Lattice(), -1)
    tuner = MAKE[name](Lattice(), 0)
    with pytest.raises(TuningError, match="asked for 0 candidates"):
        tuner.propose(0)
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TuningError, match="candidate 'x' must be finite and above 0"):
            tuner.observe([Trial(Candidate("x"), seconds, 1.0)])
    assert len(tuner.propose(3)) == 3
