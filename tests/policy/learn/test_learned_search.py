"""What a training run accepts, and a search that learns."""

import pytest
from objectives.conformance import RingConformance, under_test
from policy.tiny import TINY_ORDERS, lattice, tiny_agent

from go_rl.core import Budget
from go_rl.objectives.methods import Greedy
from go_rl.policy.agent import draw, encode, new_agent
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.policy_search import PolicySearch


def searches() -> list:
    """Both optimizers with an untrained tiny agent."""
    agent = tiny_agent()
    return [PolicySearch(agent), FineTuned(agent, FineTuneConfig(batch=16))]


@pytest.mark.parametrize("which", [0, 1])
def test_samples_are_counted_exactly_and_the_heuristic_is_kept(which):
    search = searches()[which]
    for seed, samples in ((0, 1), (1, 21)):
        problem = lattice(seed, rules="relay")
        greedy = Greedy().optimize(problem, Budget(samples=1), 0)
        plan = search.optimize(problem, Budget(samples=samples), seed)
        assert plan.samples == samples
        assert plan.value <= greedy.value
        assert plan.curve[0].samples == 1
        assert plan.curve[0].seconds == pytest.approx(greedy.value)
        assert plan.curve[-1].samples <= samples


def test_preparing_compiles_what_optimizing_needs():
    search, problem = searches()[0], lattice(3, rules="relay")
    search.prepare(problem)
    before = (encode._cache_size(), draw._cache_size())
    search.optimize(problem, Budget(samples=20), 0)
    assert (encode._cache_size(), draw._cache_size()) == before


pytestmark = pytest.mark.usefixtures("unchecked_types")


class TestPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(lambda: PolicySearch(tiny_agent()))


class TestOrderPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(lambda: OrderPolicySearch(new_agent(TINY_ORDERS, 0)))
