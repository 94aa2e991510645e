"""Sequential dispatch learns: it imitates plans, finds optima of toy graphs, trains and resumes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pytest
from policy.tiny import TINY_DISPATCH
from reference.step_problems import random_edges, step_problem

from go_rl.core import Budget, CheckpointError, OpKind, Problem, TrainingError
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_decoder import untrained_weights
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.rollout import HeadWeights
from go_rl.policy.learn.config import (
    DispatchTrainConfig,
    FineTuneConfig,
    ImitationConfig,
    PPOConfig,
)
from go_rl.policy.learn.dispatch_teachers import Teacher, explored
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.imitation import DispatchLesson, imitate
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.weights import load_weights
from go_rl.verify.check_plan import check_plan

DISPATCH = replace(TINY_DISPATCH, attention_layers=0)
LEARN = FineTuneConfig(
    batch=16, first=16, widen=1.0, remembered=8, ppo=PPOConfig(learning_rate=1e-2, epochs=4)
)


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


@pytest.mark.parametrize("seed", range(2))
def test_a_policy_from_scratch_comes_within_five_percent_of_the_optimum(seed):
    """The gate before any pretraining."""
    problem = toy(seed)
    workspace = makespan_workspace(problem)
    every = np.array(list(product((0, 1), repeat=10)))
    best = workspace.evaluate(workspace.decisions(every)).seconds.min()
    plan = FineTuned(untrained(), config=LEARN).optimize(problem, Budget(samples=480), 0)
    assert check_plan(plan, problem).ok
    assert best <= plan.value <= 1.05 * best


def test_what_is_imitated_is_what_is_drawn_in_the_end():
    """Weights that no list scheduler has: the latest end, the lowest rank."""
    decoder = DispatchPlans(makespan_workspace(toy(0)))
    rows = [untrained_weights(head) for head in ("schedule", "placement")]
    wanted = HeadWeights(*(np.tile(mean + 2.0 * spread, (3, 1)) for mean, spread in rows))
    config = ImitationConfig(updates=200, problems=1, learning_rate=2e-2)
    learned, losses = imitate(untrained(), [DispatchLesson("toy", decoder, wanted)], config, 0)
    actions, _ = decoder.sample(learned, "plan", np.ones(50, np.float32), 0)
    assert losses[-10:].mean() < losses[:5].mean() - 10
    for head, want in zip(("schedule", "placement"), wanted, strict=True):
        drawn = np.asarray(actions[head].weights)
        spread = untrained_weights(head)[1]
        assert np.abs(drawn.mean(axis=0) - want[0]).max() < 0.5 * spread.max()
        assert (drawn.std(axis=0) < spread).all()


def test_a_search_improves_and_keeps_the_best_first():
    decoder, config = DispatchPlans(makespan_workspace(toy(1))), ImitationConfig(rollouts=96)
    first = explored(untrained(), decoder, None, ImitationConfig(rollouts=32), 0)
    more = explored(untrained(), decoder, first, config, 1)
    assert more.seconds[0] <= first.seconds[0]
    assert (np.diff(more.seconds) >= 0).all()
    found = decoder.dispatcher.roll_out(more.weights)
    assert len(found.device) == len(more.seconds)


def test_nothing_to_imitate_is_an_error():
    with pytest.raises(TrainingError, match="no problem has weights"):
        imitate(untrained(), [], ImitationConfig(), 0)


def _run(updates: int = 2) -> DispatchTrainConfig:
    return DispatchTrainConfig(
        split="train", validation="train", max_nodes=80, updates=updates, problems=1, samples=8,
        hardware=("p100x2",), validation_hardware=("p100x2",), further=(), policy=DISPATCH,
        decide=(("placement",),), validate_every=2, checkpoint_every=2,
        ppo=PPOConfig(epochs=1),
        imitation=ImitationConfig(rounds=2, updates=3, problems=1, rollouts=32, max_units=60),
    )  # fmt: skip


def test_imitation_is_resumed_where_it_stopped(tmp_path):
    """Killed after the first round: its searches are not made again, and the weights are those of
    the whole run."""
    said: list[str] = []
    whole = pretrain(_run(), tmp_path / "whole", lambda update, sentence: said.append(sentence))
    cut = tmp_path / "cut"
    rounds = {"first": True}

    def stop(update: int, sentence: str) -> None:
        if rounds["first"] and sentence.startswith("round 2"):
            rounds["first"] = False
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain(_run(), cut, stop)
    resumed = pretrain(_run(), cut)
    pairs = zip(*(jax.tree.leaves(w.agent.params) for w in (whole, resumed)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert any(line.startswith("round 1: ") for line in said)
    assert whole.card["effort"]["samples"] > 2 * 8


def test_without_updates_what_was_imitated_is_kept(tmp_path):
    """Nothing is validated, for there is nothing to choose from; the same command again makes the
    same weights from the checkpoint."""
    config = replace(_run(), updates=0)
    first = pretrain(config, tmp_path)
    assert (first.card["updates"], first.card["validation"]) == (0, [])
    searched = len(list((tmp_path / "teachers").glob("*.npz")))
    assert first.card["effort"]["samples"] == 32 * searched
    imitated = load_weights(tmp_path / "imitated-1.npz")
    for other in (load_weights(tmp_path / "weights.npz"), imitated, pretrain(config, tmp_path)):
        pairs = zip(*(jax.tree.leaves(w.agent.params) for w in (first, other)), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_a_damaged_file_of_a_teacher_is_named(tmp_path: Path):
    path = tmp_path / "plan.npz"
    path.write_bytes(b"PK nonsense")
    with pytest.raises(CheckpointError, match=r"plan\.npz: is no file of weights"):
        Teacher.load(path)
