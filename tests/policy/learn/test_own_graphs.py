"""Graphs of the user, and generated ones, to train on."""

from dataclasses import replace
from pathlib import Path

import pytest
from policy.learn.toys import CONFIG
from policy.tiny import SMALL_LESSON, TINY_DISPATCH, TINY_NODES, chain, equal, small_generated

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import GoRLError
from go_rl.graphs.zoo.index import generated_name
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.config import DispatchTrainConfig, NodesTrainConfig
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.problems import makespan
from go_rl.policy.learn.problems.curriculum import CACHE, listed_files
from go_rl.policy.learn.problems.makespan import HELD_OUT_SEED, MakespanProblems
from go_rl.policy.learn.prototypes.problems import training_problems
from go_rl.policy.weights import load_weights


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two graphs, as ``go-rl graph --save`` writes them, and a hidden file."""
    models = tmp_path / "models"
    models.mkdir()
    for length in (5, 7):
        save_graph(chain(length).graph, models / f"chain-{length}.npz")
    (models / ".hidden").write_text("no model")
    return models


OWN = replace(CONFIG, hardware=("ring4",), validation_hardware=("ring4",), updates=1,
              rules=("default",), validate_every=1)  # fmt: skip


@pytest.mark.slow
def test_a_folder_teaches_and_validates(folder, tmp_path):
    said: list[str] = []
    weights = go_rl.pretrain(OWN, tmp_path / "run", graphs=[folder],
                             report=lambda done, total, text: said.append(text))  # fmt: skip
    assert weights.card["updates"] == 1
    assert [Path(p).name for p in weights.card["training"]["graphs"]] == [
        "chain-5.npz", "chain-7.npz",
    ]  # fmt: skip
    assert any(text.startswith("update 1: ") and "validation" in text for text in said)


def test_makespan_searches_and_draws_them_only(folder):
    config = DispatchTrainConfig(
        policy=TINY_DISPATCH, best_of=(1,), hardware=("p100x2",), graphs=listed_files([folder])
    )
    problems = training_problems(config)
    assert {Path(problem.graph).name for problem in problems} == {"chain-5.npz", "chain-7.npz"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "bad.onnx").write_bytes(b"these are words"), "bad.onnx"),
        (lambda folder: (folder / "empty.npz").touch(), "empty.npz"),
        (lambda folder: [each.unlink() for each in folder.iterdir()], "folder without files"),
        (
            lambda folder: save_graph(chain(9).graph, folder / "large.npz"),
            "large.npz has 9 nodes, and max_nodes is 8",
        ),
    ],
)
def test_bad_files_are_named_before_training(folder, tmp_path, spoil, message):
    spoil(folder)
    with pytest.raises(GoRLError, match=message):
        go_rl.pretrain(replace(OWN, max_nodes=8), tmp_path / "run", graphs=[folder])
    assert not (tmp_path / "run" / "weights.npz").exists()


GENERATED = NodesTrainConfig(
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
    problems = MakespanProblems(GENERATED, cache)
    drawn = [[case.name for case in problems.draw(u, RunningBaseline())] for u in range(8)]
    assert {name for names in drawn for name in names} == {generated_name(0), generated_name(2)}
    assert drawn == [[c.name for c in problems.draw(u, RunningBaseline())] for u in range(8)]
    assert problems.validation == [generated_name(HELD_OUT_SEED)]


@pytest.mark.slow
def test_a_run_goes_on_to_the_bit(cache, tmp_path):
    whole = pretrain(GENERATED, tmp_path)
    cut = tmp_path / "cut"
    cut.mkdir()
    cache.rename(cut / CACHE)
    pretrain(GENERATED, cut, stop_after=1)
    again = pretrain(GENERATED, cut)
    assert equal(whole.agent.params, again.agent.params)
    assert len(whole.card["validation"]) == 3
    assert load_weights(cut / "weights.npz").agent.config == GENERATED.policy
