"""Schedulers: scores worked out by hand, choices, names."""

from math import isnan, log, sqrt

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.belief import CurvePrediction
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.schedulers import SCHEDULERS, Scheduler, scheduler_of
from go_rl.tuning.loop.schedulers.ansor_gradient import AnsorGradient
from go_rl.tuning.loop.schedulers.predicted_gains import PredictedGains
from go_rl.tuning.loop.schedulers.registry import WITH_BELIEF, live_scheduler
from go_rl.tuning.loop.schedulers.upper_confidence_bound import UpperConfidenceBound
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TrialBatch, TuningState
from go_rl.tuning.pools.replay import ReplayBackend
from tests.tuning.toy_pools import PEAK, InOrder, paths_of, pool, pool_set


def state_of(operators, slots, first, seed=0, seconds=1000.0):
    """A state after a warm-up with ``first`` seconds of each operator, and slots, each an operator
    with the seconds of its only trial."""
    config = SlotConfig(seconds=seconds, seed=seed, slot=1.0)
    state = TuningState(operators, 0.0, PEAK, config)
    for k, each in enumerate(first):
        state.add(TrialBatch("warm-up", k, 0, (Trial(Candidate(f"w{k}"), each, 1.0),), 1.0))
    for number, (k, each) in enumerate(slots, 1):
        state.add(TrialBatch("slot", k, number, (Trial(Candidate(f"s{number}"), each, 1.0),), 1.0))
    return state


def operators(*repeats, kinds=("conv2d", "matmul")):
    return tuple(
        TunedOperator(f"{kinds[k % len(kinds)]} {k}", f"w{k}", count, 1e7)
        for k, count in enumerate(repeats)
    )


class Improves:
    """Believes in so much more FLOP/s of each operator, by the length of its curve."""

    def __init__(self, by_length) -> None:
        self.by_length, self.asked = by_length, []

    def predict(self, curve, horizon, peak, seed) -> CurvePrediction:
        self.asked.append((len(curve), horizon, seed))
        return CurvePrediction(curve[-1], 0.0, self.by_length[len(curve)])


def test_rounds_go_from_the_whole_to_the_slowest_and_back():
    """Of 10 ms, a takes 6 and b 3.5: together more than nine tenths, so c has no turn."""
    whole = TunedOperator("fusion of net", "w", 1, 3e7, whole=True)
    named = (whole, *operators(2, 1, 1))
    state = state_of(named, [], [1e-2, 3e-3, 3.5e-3, 5e-4])
    rounds = scheduler_of("rounds")
    assert state.latency == pytest.approx(1e-2)
    chosen = []
    for number in range(1, 6):
        k = rounds.choose(state)
        chosen.append(k)
        trial = Trial(Candidate(f"s{number}"), 9e-3, 1.0)
        state.add(TrialBatch("slot", k, number, (trial,), 1.0, exhausted=number in (2, 3)))
    assert chosen == [0, 1, 2, 0, 0]
    state.add(TrialBatch("slot", 0, 6, (), 1.0, exhausted=True))
    assert rounds.choose(state) == 3


def test_the_upper_confidence_bound_by_hand():
    # a: 8 ms at first, now 2 ms = 5 GFLOP/s; 5 more are 1 ms less, three times in the network.
    state = state_of(operators(3, 9), [(0, 4e-3), (1, 5e-4), (0, 2e-3)], [8e-3, 5e-4])
    belief = Improves({3: 5e9, 2: 0.0})
    scheduler = UpperConfidenceBound(PredictedGains(belief))
    assert scheduler.score(state, 0) == pytest.approx(3.0 + sqrt(2 * log(4) / 2))
    assert scheduler.score(state, 0) == pytest.approx(4.177410, abs=1e-6)
    # 0.5 ms at first, yet C is 2: the network took more than 1 ms
    assert scheduler.score(state, 1) == pytest.approx(sqrt(2 * log(4)))
    assert scheduler.choose(state) == 0
    assert scheduler.predicted(state, 0) == pytest.approx(3e-3)
    assert len(belief.asked) == 2  # once an operator, however often it is looked at


def test_names_that_are_not_there():
    with pytest.raises(TuningError, match="the oracle sees recorded curves"):
        scheduler_of("oracle")
    with pytest.raises(TuningError, match=r"unknown scheduler 'oracl'\. There are .*sequential$"):
        live_scheduler("oracl", "log-power")  # which there is no sense in naming
    with pytest.raises(TuningError, match="share must be > 0, not 0"):
        scheduler_of("sequential", share=0.0)
    for name in SCHEDULERS:
        assert isinstance(scheduler_of(name, Improves({}), paths=[]), Scheduler)
    assert isnan(CurvePrediction(1.0, 1.0, 0.0).acceptance)


def test_the_bonus_of_a_short_network_and_one_in_proportion_to_the_latency():
    nothing = PredictedGains(Improves(dict.fromkeys(range(9), 0.0)))
    short = state_of(operators(1, 1), [(0, 1e-4), (0, 1e-4), (1, 8e-4)], [1e-4, 8e-4])
    paper = UpperConfidenceBound(nothing)
    assert paper.score(short, 0) == pytest.approx(sqrt(0.2 * log(4) / 2))
    assert paper.score(short, 1) == pytest.approx(sqrt(0.2 * log(4)))
    # 0.1 % of 0.9 ms stand for a millisecond
    relative = UpperConfidenceBound(nothing, relative=True)
    assert relative.score(short, 0) == pytest.approx(0.9e-3 * sqrt(2 * log(4) / 2))
    assert relative.choose(short) == 1


def test_ansors_gradient_by_hand():
    ends = [8e-3, 4e-3, 2e-3, 1e-3]
    slots = [(0, each) for each in ends] + [(1, 1e-4)]
    alone = state_of(operators(2, 1), slots, [9e-3, 1e-3])
    # backward (1 - 8) / 3 ms; forward 1 - 1/4 - 1 ms; 2 · (0.2 · -7/3 + 0.8 · -1/4) ms
    assert AnsorGradient().gradient(alone, 0) == pytest.approx(-4e-3 / 3)
    # another convolution has 1e11 FLOP/s: β · 1e7 / 1e11 = 0.2 ms, so that forward is -0.8 ms
    alike = state_of(operators(2, 1, kinds=("conv2d",)), slots, [9e-3, 1e-3])
    assert AnsorGradient().gradient(alike, 0) == pytest.approx(2 * (-1.4e-3 / 3 - 0.64e-3))
    assert AnsorGradient().choose(alike) == 0


def falling(rng, count):
    """Seconds whose best falls with diminishing returns."""
    return (1e-3 + 5e-3 * np.exp(-np.arange(count) / rng.uniform(3, 12))) * rng.uniform(0.5, 2)


def test_the_oracle_is_at_least_as_good_as_all_on_convex_curves():
    rng = np.random.default_rng(0)
    pools = pool_set(*(
        pool(f"conv2d {k}", int(rng.integers(1, 4)), 1e7, falling(rng, 60)) for k in range(4)
    ))  # fmt: skip
    config = SlotConfig(seconds=60.0, batch=4, patience=60, slot=4.0)
    found = {}
    for name in SCHEDULERS:
        if name in WITH_BELIEF:
            belief = Improves(dict.fromkeys(range(999), 1e9))
            scheduler = scheduler_of(name, belief)
        else:
            scheduler = scheduler_of(name, paths=paths_of(pools))
        found[name] = tune_operators(ReplayBackend(pools), scheduler, InOrder, config).latency
    assert min(found, key=found.__getitem__) == "oracle"
    assert found["oracle"] < found["sequential"]
