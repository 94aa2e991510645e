"""Every optimizer of the hardware under the one conformance suite."""

from __future__ import annotations

import pytest
from objectives.conformance import SAMPLES, OptimizerConformance, RingConformance

from go_rl.compare.portfolio import METHODS
from go_rl.core import Budget, Objective, Optimizer, Problem, SearchError
from go_rl.objectives.methods import (
    Annealing,
    Exact,
    Expert,
    Greedy,
    IdealDP,
    LinearDP,
    LocalSearch,
    MaxLoadDP,
    Metis,
    OrderAnnealing,
    RandomSearch,
    RingLocalSearch,
    UnitAnnealing,
)


def everything_on_chip_zero(problem: Problem) -> Expert:
    return Expert({name: problem.fixed.get(i, 0) for i, name in enumerate(problem.graph.names)})


class TestGreedyOnTheRing(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return Greedy()


class TestRandom(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return RandomSearch()


class TestAnnealing(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return Annealing()


class TestRingLocalSearch(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return RingLocalSearch()


class TestMetis(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return Metis()


class TestLinearDP(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return LinearDP()


class TestOrderAnnealing(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return OrderAnnealing()


class TestUnitAnnealing(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return UnitAnnealing()


class TestIdealDP(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return IdealDP()


class TestExact(RingConformance):
    sampled = False

    def make(self, problem: Problem) -> Optimizer:
        return Exact(workers=1)


class TestExpertOnTheRing(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return everything_on_chip_zero(problem)


class TestGreedyOnMaxLoad(OptimizerConformance):
    objective = Objective.MAX_LOAD

    def make(self, problem: Problem) -> Optimizer:
        return Greedy()


class TestMaxLoadDP(OptimizerConformance):
    objective = Objective.MAX_LOAD

    def make(self, problem: Problem) -> Optimizer:
        return MaxLoadDP()


class TestLocalSearchOnMaxLoad(OptimizerConformance):
    objective = Objective.MAX_LOAD

    def make(self, problem: Problem) -> Optimizer:
        return LocalSearch()


class TestGreedyOnLatency(OptimizerConformance):
    objective = Objective.LATENCY

    def make(self, problem: Problem) -> Optimizer:
        return Greedy()


class TestLocalSearchOnLatency(OptimizerConformance):
    objective = Objective.LATENCY

    def make(self, problem: Problem) -> Optimizer:
        return LocalSearch()


def test_every_method_of_the_portfolio_is_here():
    suites = OptimizerConformance.__subclasses__() + RingConformance.__subclasses__()
    problem = RingConformance().problem(2, [(0, 1)], 2)
    here = [s for s in suites if s.__module__ == __name__ and s is not RingConformance]
    named = {s().make(problem).name for s in here}
    # What learns is held to the same suite in tests/policy/learn/test_learned_conformance.py.
    learned = {"policy", "policy-placement", "finetuned"}
    assert named - learned == {
        make().name
        for objective, known in METHODS.items()
        for make in known.values()
        if objective is not Objective.MAKESPAN
    } - learned | {"expert"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": 1}, "node 1 has no device"),
        ({"chip": 7}, "node 1 is on device 7; devices are 0..1"),
    ],
)
def test_an_expert_split_must_cover_the_graph_and_name_devices(change, message):
    problem = RingConformance().problem(2, [(0, 1)], 2)
    split = {0: 0, 1: change.get("chip", 1)}
    split.pop(change.get("drop"), None)
    with pytest.raises(SearchError, match=message):
        Expert(split).optimize(problem, Budget(samples=SAMPLES), 0)
