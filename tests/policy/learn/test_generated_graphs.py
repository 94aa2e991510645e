"""Node policies that learn from generated graphs: which are drawn, what chooses the weights."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from policy.tiny import SMALL_LESSON, TINY_NODES, network, small_generated

from go_rl.core import FREE, ProblemError, TrainingError
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.zoo.generate.generated import generated_graph
from go_rl.graphs.zoo.index import generated_name
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import NodesTrainConfig
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.problems import makespan
from go_rl.policy.learn.problems.curriculum import CACHE, stored_graph
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


def test_gradients_are_colocated_where_asked(cache):
    for colocate, bound in (("gradients", True), ("graph", False)):
        problems = MakespanProblems(replace(CONFIG, colocate=colocate), cache)
        graph = problems.draw(0, RunningBaseline())[0].decoder.workspace.problem.graph
        assert (graph.colocation != FREE).any() == bound


def test_nothing_small_enough_is_said(cache):
    small = replace(CONFIG, max_nodes=network(2).num_nodes)
    assert MakespanProblems(replace(small, generated=1), cache).draw(0, RunningBaseline())
    for seed in (0, HELD_OUT_SEED):
        save_graph(network(3), cache / f"{generated_name(seed)}.npz")
    with pytest.raises(TrainingError, match="raise max_nodes"):
        MakespanProblems(small, cache)
    save_graph(network(2), cache / f"{generated_name(HELD_OUT_SEED)}.npz")
    with pytest.raises(TrainingError, match="of 200 generated graphs 0 have at most max_nodes="):
        MakespanProblems(small, cache).draw(0, RunningBaseline())


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


def test_a_generated_graph_is_traced_once(tmp_path, monkeypatch):
    name = generated_name(7)
    first = stored_graph(name, tmp_path)
    assert first.digest == generated_graph(7).digest
    monkeypatch.setattr("go_rl.graphs.zoo.generate.generated.generated_graph", None)
    assert stored_graph(name, tmp_path).digest == first.digest


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


def test_a_misspelt_colocation_is_named():
    with pytest.raises(ProblemError, match=r"not 'gradient'.*'gradients'"):
        replace(CONFIG, colocate="gradient")
