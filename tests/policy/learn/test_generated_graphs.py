"""Node policies that learn from generated graphs: which are drawn, what chooses the weights."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from policy.tiny import SMALL_LESSON, TINY_NODES, small_generated

from go_rl.core import TrainingError
from go_rl.graphs.zoo.index import generated_name
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import NodesTrainConfig
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.problems import makespan
from go_rl.policy.learn.problems.curriculum import CACHE
from go_rl.policy.learn.problems.makespan import HELD_OUT_SEED, MakespanProblems
from go_rl.policy.weights import load_weights

CONFIG = NodesTrainConfig(
    generated=3, max_nodes=60, updates=2, problems=2, samples=8, hardware=("p100x2",),
    decide=(("placement",),), colocate="gradients", top=None, validate_every=1,
    checkpoint_every=1, ppo=SMALL_LESSON.ppo, policy=TINY_NODES,
)  # fmt: skip


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Folder in which small graphs stand for the generated ones; seed 1 is too large."""
    monkeypatch.setattr(makespan, "HELD_OUT", 2)
    layers = {0: 2, 1: 12, 2: 3, HELD_OUT_SEED: 2, HELD_OUT_SEED + 1: 12}
    return small_generated(tmp_path / CACHE, layers)


def test_updates_draw_small_generated_graphs(cache):
    problems = MakespanProblems(CONFIG, cache)
    drawn = [[case.name for case in problems.draw(u, RunningBaseline())] for u in range(8)]
    assert {name for names in drawn for name in names} == {generated_name(0), generated_name(2)}
    assert drawn == [[c.name for c in problems.draw(u, RunningBaseline())] for u in range(8)]
    assert problems.validation == [generated_name(HELD_OUT_SEED)]


@pytest.mark.slow
def test_a_run_goes_on_to_the_bit(cache, tmp_path):
    whole = pretrain(CONFIG, tmp_path)
    cut = tmp_path / "cut"
    cut.mkdir()
    cache.rename(cut / CACHE)
    pretrain(CONFIG, cut, stop_after=1)
    again = pretrain(CONFIG, cut)
    pairs = zip(*(jax.tree.leaves(w.agent.params) for w in (whole, again)), strict=True)
    assert all(np.array_equal(one, other) for one, other in pairs)
    assert len(whole.card["validation"]) == 3
    assert load_weights(cut / "weights.npz").agent.config == CONFIG.policy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"generated": 0, "traced": "graphs"}, "traced is the folder of generated graphs; give"),
        ({"generated": -1}, "generated must be >= 0, not -1"),
        ({"further_share": 0.5}, "further_share has no meaning beside generated 3"),
        ({"further": ()}, "further has no meaning beside generated 3"),
        ({"graphs": ("/a.npz",)}, "graphs has no meaning beside generated 3"),
        ({"validation": "validation"}, "validation has no meaning beside generated 3"),
    ],
)
def test_bad_values_are_named(given, message):
    with pytest.raises(TrainingError, match=message):
        replace(CONFIG, **given)
