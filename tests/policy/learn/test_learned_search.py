"""Zero-shot search and fine-tuning as optimizers: samples are counted, the heuristic is kept."""

import pytest
from policy.tiny import lattice, tiny_agent

from go_rl.core import Budget, SearchError
from go_rl.objectives.methods import Greedy
from go_rl.policy.agent import draw, encode
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch

DECISIONS = ("order", "placement")


def searches(task: str) -> list:
    """Both optimizers with an untrained tiny agent."""
    agent = tiny_agent()
    return [PolicySearch(agent, task), FineTuned(agent, task, FineTuneConfig(batch=16))]


@pytest.mark.parametrize("task", DECISIONS)
@pytest.mark.parametrize("which", [0, 1])
def test_samples_are_counted_exactly_and_the_heuristic_is_kept(task, which):
    search = searches(task)[which]
    for seed, samples in ((0, 1), (1, 21)):
        problem = lattice(seed, rules="relay")
        greedy = Greedy().optimize(problem, Budget(samples=1), 0)
        plan = search.optimize(problem, Budget(samples=samples), seed)
        assert plan.samples == samples
        assert plan.value <= greedy.value
        assert plan.curve[0].samples == 1
        assert plan.curve[0].seconds == pytest.approx(greedy.value)
        assert plan.curve[-1].samples <= samples


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PolicySearch(decoder="orders"),
            "decoder must be one of order, placement, not 'orders'",
        ),
        (
            lambda: FineTuned(decoder="chips"),
            "decoder must be one of order, placement, not 'chips'",
        ),
        (lambda: FineTuned(samples=0), "samples must be >= 1, not 0"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(SearchError, match=message):
        make()


def test_preparing_compiles_what_optimizing_needs():
    search, problem = searches("order")[0], lattice(3, rules="relay")
    search.prepare(problem)
    before = (encode._cache_size(), draw._cache_size())
    search.optimize(problem, Budget(samples=20), 0)
    assert (encode._cache_size(), draw._cache_size()) == before
