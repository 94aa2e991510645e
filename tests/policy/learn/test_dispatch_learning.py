"""Pretraining of a dispatch policy: searches, a cover, a choice, offsets; each is resumed."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from reference.step_problems import random_edges, step_problem

from go_rl.core import Budget, CheckpointError, OpKind, Problem, TrainingError
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.learn.config import DispatchTrainConfig
from go_rl.policy.learn.dispatch.run import pretrain_dispatch
from go_rl.verify.check_plan import check_plan

DISPATCH = replace(TINY_DISPATCH, prototypes=6)


@cache
def untrained() -> Agent:
    return new_agent(DISPATCH, 0)


def toy(seed: int) -> Problem:
    """Ten matrix products on two devices with expensive transfers; all assignments can be tried."""
    rng = np.random.default_rng(seed)
    edges = [edge for edge in random_edges(rng, 10) if rng.random() < 0.5]
    kinds = [OpKind.MATMUL] * 10
    seconds = rng.integers(1, 6, (2, 10)).astype(float)
    return step_problem(seconds, edges, 2, kinds=kinds, decisions=("placement",))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_search_from_scratch_comes_within_five_percent_of_the_optimum(seed):
    """The gate before any pretraining."""
    problem = toy(seed)
    workspace = makespan_workspace(problem)
    every = np.array(list(product((0, 1), repeat=10)))
    best = workspace.evaluate(workspace.decisions(every)).seconds.min()
    plan = DispatchSearch(untrained()).optimize(problem, Budget(samples=480), 0)
    assert check_plan(plan, problem).ok
    assert best <= plan.value <= 1.05 * best


def _run(**changes) -> DispatchTrainConfig:
    options = {
        "generated": 8, "zoo": False, "hardware": ("p100x2",), "max_nodes": 500, "rollouts": 32,
        "candidates": 4, "judged": 4, "choices": 12, "updates": 11, "problems": 1,
        "best_of": (1, 2), "held_out": 0.4, "policy": DISPATCH,
    }  # fmt: skip
    return DispatchTrainConfig(**(options | changes))


def test_a_damaged_file_of_searches_is_named(tmp_path: Path):
    finds = tmp_path / "finds"
    finds.mkdir()
    for number in range(64):
        (finds / f"searches-{number:02d}.npz").write_bytes(b"PK nonsense")
    with pytest.raises(CheckpointError, match=r"searches-\d\d\.npz: is no file of searches"):
        pretrain_dispatch(_run(finds=str(finds)), tmp_path / "run")


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(TrainingError, match="leave nothing to learn"):
        _run(generated=0)
    with pytest.raises(TrainingError, match="more samples than the policy has prototypes"):
        _run(best_of=(1, 7))


def test_a_folder_of_another_configuration_is_refused(tmp_path: Path):
    (tmp_path / "config.json").write_text(_run().to_json())
    other = replace(_run(), rollouts=_run().rollouts + 1)
    with pytest.raises(CheckpointError, match="another configuration: rollouts was"):
        pretrain_dispatch(other, tmp_path)
