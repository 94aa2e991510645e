"""Zero-shot search and fine-tuning as optimizers: samples are counted, the heuristic is kept."""

import jax
import numpy as np
import pytest
from policy.tiny import lattice, tiny_agent

from go_rl.core import Budget, SearchError
from go_rl.objectives.methods import Greedy
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.objectives.ring.workspace import RingWorkspace
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
    for seed, samples in ((0, 1), (0, 2), (1, 21)):
        problem = lattice(seed, rules="relay")
        greedy = Greedy().optimize(problem, Budget(samples=1), 0)
        plan = search.optimize(problem, Budget(samples=samples), seed)
        assert plan.samples == samples
        assert plan.value <= greedy.value
        assert plan.curve[0].samples == 1
        assert plan.curve[0].seconds == pytest.approx(greedy.value)
        assert plan.curve[-1].samples <= samples


@pytest.mark.parametrize("which", [0, 1])
def test_a_budget_of_many_samples_is_not_cut(which, monkeypatch):
    """`OPEN_SAMPLES` limits a budget of seconds alone."""
    for module in ("go_rl.policy.policy_search", "go_rl.policy.learn.fine_tune"):
        monkeypatch.setattr(f"{module}.OPEN_SAMPLES", 8)
    search, problem = searches("order")[which], lattice(1, rules="relay")
    assert search.optimize(problem, Budget(samples=40), 0).samples == 40
    assert search.optimize(problem, Budget(seconds=600.0), 0).samples == 8


def test_untrained_weights_are_not_changed_by_fine_tuning():
    agent = tiny_agent()
    before = {name: np.array(x) for name, x in _flat(agent).items()}
    plan, learnt = searches("order")[1].learn(lattice(1, rules="relay"), Budget(samples=40), 0)
    assert plan.evaluation.status.ok
    assert all(np.array_equal(before[name], x) for name, x in _flat(agent).items())
    assert any(not np.array_equal(before[name], x) for name, x in _flat(learnt).items())


def _flat(agent) -> dict:
    return {str(path): x for path, x in jax.tree_util.tree_leaves_with_path(agent.params)}


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


class _Doubled:
    """A `Pricer` that charges twice what the simulator does, and counts."""

    def __init__(self, problem):
        self._true, self.priced = RingPricer(problem), 0
        self.evaluate = self._true.evaluate
        self.place, self.replicated = self._true.place, self._true.replicated

    def price(self, devices):
        self.priced += len(devices)
        seconds, codes = self._true.price(devices)
        return 2 * seconds, codes


def test_a_policy_learns_from_a_pricer_of_ones_own():
    problem = lattice(1, rules="relay")
    pricer = _Doubled(problem)
    workspace = RingWorkspace(problem, pricer)
    search = searches("order")[1]
    search.learn(problem, Budget(samples=24), 0, workspace)
    assert pricer.priced >= 24
