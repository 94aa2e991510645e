"""Samples of a policy: which ones a budget buys, and how time is kept."""

from functools import cache

import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from policy.tiny import tiny_makespan_agent as agent
from reference.step_networks import operators, priced

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.policy_search import DOUBT, PolicySearch

BATCH = TINY_DISPATCH.prototypes
"""Samples of a round."""


@cache
def problem() -> Problem:
    return priced(operators(3), "p100x2")


def searched(**budget) -> Plan:
    return PolicySearch(agent()).optimize(problem(), Budget(**budget), 5)


def whole_batches(samples: int, seed: int) -> list[float]:
    """Seconds of the default plan and of batches drawn, decoded and priced whole."""
    workspace = MakespanWorkspace(problem())
    decoder = DispatchPlans(workspace)
    found = workspace.evaluate(workspace.reference).seconds.tolist()
    for rounds in range(-(-samples // BATCH)):
        noise = np.resize(np.array(DOUBT, np.float32), BATCH) * min(rounds, 1)
        _, drawn = decoder.sample(agent(), "plan", noise, seed * 1_000_003 + rounds)
        found += drawn.priced.seconds.tolist()
    return found[:samples]


@pytest.mark.parametrize("limit", [{}, {"seconds": 600.0}])
@pytest.mark.parametrize("samples", [1, 2, 17, 40])
def test_a_number_of_samples_buys_the_same_ones_with_and_without_a_limit_in_time(samples, limit):
    seconds = whole_batches(samples, 5)
    bests = [s for i, s in enumerate(seconds) if s < min(seconds[:i], default=np.inf)]
    plan = searched(samples=samples, **limit)
    assert plan.samples == samples
    assert [point.seconds for point in plan.curve] == bests


class Clock:
    """Time passes when a batch is drawn, and with every plan that is priced."""

    def __init__(self, monkeypatch, drawing: float, pricing: float) -> None:
        self.now, self.pieces, self.batches = 0.0, [], 0
        draw, price = Agent.draw, MakespanWorkspace.evaluate

        def slow_draw(*given):
            self.now += drawing
            self.batches += 1
            return draw(*given)

        def slow_price(workspace, plans):
            self.now += pricing * len(plans.device)
            self.pieces.append(len(plans.device))
            return price(workspace, plans)

        monkeypatch.setattr(Progress, "wall_seconds", property(lambda _: self.now))
        monkeypatch.setattr(Agent, "draw", slow_draw)
        monkeypatch.setattr(MakespanWorkspace, "evaluate", slow_price)


@pytest.fixture
def ready():
    """The default plan is priced beforehand, and the decoder is built."""
    searched(samples=2)


def test_no_batch_is_drawn_that_would_take_longer_than_what_is_left(monkeypatch, ready):
    """Draws end at 4, 8 and 12 of 13 seconds; a fourth would end at 16."""
    clock = Clock(monkeypatch, drawing=4.0, pricing=1e-9)
    searched(seconds=13.0)
    assert clock.batches == 3
    assert clock.now < 13.0
    late = Clock(monkeypatch, drawing=40.0, pricing=1.0)
    plan = searched(seconds=13.0)
    assert (late.batches, plan.samples) == (1, 2)
