"""The examples run; those whose libraries are not among go_rl's own are read only."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_a_cost_model_of_ones_own(capsys):
    example = runpy.run_path(str(EXAMPLES / "cost_model_of_your_own.py"))
    example["main"](["--model", "zoo:vae-3-layers", "--samples", "5", "--method", "annealing"])
    analytical, own, episode = capsys.readouterr().out.splitlines()
    assert analytical.startswith("analytical: ring of four devices ")
    assert own.startswith("matrix-and-vector-unit: ring of four devices ")
    assert analytical.split(": ")[1] != own.split(": ")[1]
    assert episode.startswith("random fusion under matrix-and-vector-unit: reward -0.")
    assert episode.endswith("(ok)")


@pytest.mark.slow
def test_the_agent_in_one_file_takes_its_steps(capsys, monkeypatch):
    example = runpy.run_path(str(EXAMPLES / "one_file_ppo.py"))
    monkeypatch.setattr("sys.argv", ["one_file_ppo.py", "--steps", "600"])
    example["main"]()
    untrained, trained = capsys.readouterr().out.splitlines()
    assert untrained.startswith("untrained: throughput over the heuristic 0.")
    assert trained.startswith("trained: throughput over the heuristic 0.")


def test_its_advantages_by_hand():
    example = runpy.run_path(str(EXAMPLES / "one_file_ppo.py"))
    column = {
        "reward": [1.0, 2.0, 0.0, 4.0], "value": [0.5, 1.0, 3.0, 2.0], "ended": [0, 1, 0, 0],
    }  # fmt: skip
    parts = {name: np.array(numbers)[:, None] for name, numbers in column.items()}
    blank = dict.fromkeys(example["Rollout"]._fields) | parts
    found = example["advantages"](example["Rollout"](**blank), np.array([10.0]))
    # Discount 1, decay 1/2: 4 + 10 - 2; 2 - 3 + 12/2; the episode ends: 2 - 1; 1 + 1 - 1/2 + 1/2.
    assert found[:, 0].tolist() == [2.0, 1.0, 5.0, 12.0]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    assert f"python examples/{path.name}" in text
    compile(text, str(path), "exec")
