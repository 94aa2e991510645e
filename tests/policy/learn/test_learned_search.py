"""What a training run accepts, and a search that learns."""

import pytest
from objectives.conformance import RingConformance, under_test
from policy.tiny import TINY_ORDERS, lattice, tiny_agent

from go_rl.core import Budget, SearchError, TrainingError
from go_rl.objectives.methods import Greedy
from go_rl.policy.agent import draw, encode, new_agent
from go_rl.policy.learn.config import (
    DispatchTrainConfig,
    FineTuneConfig,
    NodesTrainConfig,
    PPOConfig,
    RingTrainConfig,
)
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


def test_bad_options_are_named():
    with pytest.raises(SearchError, match="samples must be >= 1, not 0"):
        FineTuned(samples=0)


def test_preparing_compiles_what_optimizing_needs():
    search, problem = searches()[0], lattice(3, rules="relay")
    search.prepare(problem)
    before = (encode._cache_size(), draw._cache_size())
    search.optimize(problem, Budget(samples=20), 0)
    assert (encode._cache_size(), draw._cache_size()) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RingTrainConfig(samples=1), "train: samples must be >= 2, not 1"),
        (
            lambda: RingTrainConfig(solver="guess"),
            "solver must be one of sample, fix, sample-nodes, fix-nodes, none, not 'guess'",
        ),
        (lambda: PPOConfig(learning_rate=0.0), "ppo: learning_rate must be > 0, not 0.0"),
        (lambda: PPOConfig(learning_rate=float("nan")), "ppo: learning_rate must be > 0, not nan"),
        (lambda: PPOConfig(clip=-0.1), "ppo: clip must be > 0, not -0.1"),
        (lambda: PPOConfig(gradient_norm=0.0), "ppo: gradient_norm must be > 0"),
        (lambda: PPOConfig(entropy=-1.0), "ppo: entropy must be >= 0, not -1.0"),
        (lambda: PPOConfig(decay_updates=-1), "ppo: decay_updates must be >= 0, not -1"),
        (lambda: PPOConfig(epochs=0), "ppo: epochs must be >= 1, not 0"),
        (lambda: FineTuneConfig(batch=1), "fine-tuning: batch must be >= 2, not 1"),
        (lambda: RingTrainConfig(updates=-1), "train: updates must be >= 1, not -1"),
        (lambda: NodesTrainConfig(updates=0), "train: updates must be >= 1, not 0"),
        (lambda: RingTrainConfig(hardware=()), "train: hardware needs at least one entry"),
        (lambda: RingTrainConfig(rules=("strickt",)), "unknown rules 'strickt'.*'strict'"),
        (lambda: RingTrainConfig(seed=-1), "train: seed must be >= 0 and below 2.62, not -1"),
        (lambda: DispatchTrainConfig(seed=-1), "train: seed must be >= 0 and below 2.62, not -1"),
        (lambda: NodesTrainConfig(validation_hardware=()), "validation_hardware needs at"),
        (lambda: DispatchTrainConfig(decide=((),)), "name some of placement"),
        (lambda: DispatchTrainConfig(decide=(("fussion",),)), "decision 'fussion'.*'fusion'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


pytestmark = pytest.mark.usefixtures("unchecked_types")


class TestPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(lambda: PolicySearch(tiny_agent()))


class TestOrderPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(lambda: OrderPolicySearch(new_agent(TINY_ORDERS, 0)))
