"""A policy trained on a user's own models."""

from dataclasses import replace
from pathlib import Path

import pytest
from policy.learn.toys import CONFIG
from policy.tiny import chain

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import GoRLError


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
