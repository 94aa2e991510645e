"""Every optimizer of the hardware under the one conformance suite."""

import pytest
from objectives.conformance import SAMPLES, OptimizerConformance, RingConformance, under_test

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
    OrderSearch,
    RandomSearch,
    RingLocalSearch,
    UnitAnnealing,
)


def everything_on_chip_zero(problem: Problem) -> Expert:
    return Expert({name: problem.fixed.get(i, 0) for i, name in enumerate(problem.graph.names)})


ON_THE_RING = (
    Greedy(), RandomSearch(), Annealing(), RingLocalSearch(), Metis(), LinearDP(),
    OrderSearch(), UnitAnnealing(), IdealDP(),
)  # fmt: skip
ON_MAX_LOAD = (Greedy(), MaxLoadDP(), LocalSearch())
ON_LATENCY = (Greedy(), LocalSearch())


class TestOnTheRing(RingConformance):
    which = under_test(*ON_THE_RING)


class TestExact(RingConformance):
    sampled = False
    optimizer = Exact(workers=1)


class TestExpert(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return everything_on_chip_zero(problem)


class TestOnMaxLoad(OptimizerConformance):
    objective = Objective.MAX_LOAD
    which = under_test(*ON_MAX_LOAD)


class TestOnLatency(OptimizerConformance):
    objective = Objective.LATENCY
    which = under_test(*ON_LATENCY)


def test_every_method_of_the_portfolio_is_here():
    here = {each.name for each in (*ON_THE_RING, *ON_MAX_LOAD, *ON_LATENCY, TestExact.optimizer)}
    # What learns is held to the same suite in tests/policy/learn/test_learned_search.py.
    learned = {"policy", "order-policy", "finetuned"}
    assert (
        here
        == {
            make().name
            for objective, known in METHODS.items()
            for make in known.values()
            if objective is not Objective.MAKESPAN
        }
        - learned
    )


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
