"""The page of the published multi-chip policy: the recipe is its network, seeds choose weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from policy.tiny import TINY, chain

from experiments.learning.long_runs import listed
from experiments.partition.mcm_published import (
    MODE,
    PAPER,
    PUBLISHED,
    WEIGHTS,
    BySeed,
    methods,
    published_search,
)
from go_rl.cli.parsing.parse import parse
from go_rl.core import Budget
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import Weights, save_weights


@pytest.fixture
def recipes():
    """Training runs of the list, as the command line reads them."""
    runs = [run for run in listed() if run.name.startswith("mcm-published-")]
    words = [run.command.removeprefix("go-rl ").split() for run in runs]
    return [parse(each)[1] for each in words]


def test_the_recipe_trains_the_network_that_is_judged_on_enough_samples(recipes):
    assert [each.given.seed for each in recipes] == [0, 1, 2]
    assert tuple(f"{each.out}/weights.npz" for each in recipes) == WEIGHTS
    for each in recipes:
        training = each.given
        assert training.policy == PUBLISHED
        assert training.samples.solver == MODE
        drawn = training.updates * training.problems * training.samples.placements
        assert drawn >= 20_000
        assert not training.imitation.teaches


def test_a_runs_seed_names_the_weights(tmp_path: Path):
    config = replace(TINY, orders=False, prior=False)
    files = []
    for seed in range(2):
        files.append(str(tmp_path / f"{seed}.npz"))
        save_weights(Weights(new_agent(config, seed), f"seed-{seed}", {}), files[-1])
    taken: list[Agent] = []

    def make(agent: Agent) -> PolicySearch:
        taken.append(agent)
        search = published_search(agent)
        assert isinstance(search, PolicySearch)
        return search

    by_seed = BySeed(make, tuple(files), "zero-shot")
    plans = [by_seed.optimize(chain(), Budget(samples=2), seed) for seed in (0, 1, 2)]
    assert taken[0] is taken[2]
    assert taken[0] is not taken[1]
    assert {plan.optimizer for plan in plans} == {"zero-shot"}


def test_every_figure_of_the_paper_has_its_row():
    assert set(PAPER) <= set(methods(WEIGHTS))
