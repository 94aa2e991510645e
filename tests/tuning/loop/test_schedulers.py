"""Schedulers: scores worked out by hand, choices, names."""

from math import isnan, log, sqrt

import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.belief import CurvePrediction
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.schedulers import SCHEDULERS, scheduler_of
from go_rl.tuning.loop.schedulers.predicted_gains import PredictedGains
from go_rl.tuning.loop.schedulers.registry import live_scheduler
from go_rl.tuning.loop.schedulers.upper_confidence_bound import UpperConfidenceBound
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TrialBatch, TuningState
from tests.tuning.toy_pools import PEAK


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
    with pytest.raises(TuningError, match="unknown scheduler 'dynatun'; did you mean 'dynatune'"):
        scheduler_of("dynatun")
    with pytest.raises(TuningError, match="the oracle sees recorded curves"):
        scheduler_of("oracle")
    with pytest.raises(TuningError, match=r"unknown scheduler 'oracl'\. There are .*sequential$"):
        live_scheduler("oracl", "log-power")  # which there is no sense in naming
    with pytest.raises(TuningError, match="share must be > 0, not 0"):
        scheduler_of("sequential", share=0.0)
    for name in SCHEDULERS:
        scheduler = scheduler_of(name, Improves({}), paths=[])
        assert scheduler.name == name
    assert isnan(CurvePrediction(1.0, 1.0, 0.0).acceptance)
