"""The examples run; those whose libraries are not among go_rl's own are read only."""

import runpy
from pathlib import Path

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


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    assert f"python examples/{path.name}" in text
    compile(text, str(path), "exec")
