"""Notebooks and examples run."""

import ast
import json
import re
import runpy
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import go_rl

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def unknown_names(code: str) -> Iterator[str]:
    """Names of go_rl that some code uses and that do not exist."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "go_rl" and node.attr not in go_rl.__all__:
                yield f"go_rl.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("go_rl"):
            module = import_module(node.module or "")
            yield from (a.name for a in node.names if not hasattr(module, a.name))


@each
def test_every_cell_was_executed_and_none_failed(path):
    counts = [cell["execution_count"] for cell in cells(path, "code")]
    assert counts == list(range(1, len(counts) + 1)), "make notebooks executes them"
    kinds = {out["output_type"] for cell in cells(path, "code") for out in cell["outputs"]}
    assert "error" not in kinds
    assert path.stat().st_size < 120_000


@each
def test_names_of_the_api_exist(path):
    assert [name for cell in cells(path, "code") for name in unknown_names(source(cell))] == []


@each
def test_links_lead_to_pages(path):
    texts = [source(cell) for cell in cells(path, "markdown")]
    links = [link for text in texts for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", text)]
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.slow
def test_the_fastest_notebook_runs(capsys, monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in cells(ROOT / "docs" / "notebooks" / "predict.ipynb", "code"):
        exec(compile(source(cell), "predict.ipynb", "exec"), names)
    assert capsys.readouterr().out.endswith(" ms\n")
    assert names["prediction"].latency_ms > 0


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("one_file_ppo.py --graph nosuch.onnx", "nosuch.onnx: "),
        ("one_file_ppo.py --seed -1", "--seed >= 0"),
        ("one_file_ppo.py --steps 0", "--steps must be >= 1"),
        ("train_off_the_shelf_agent.py --steps 0", "--steps must be >= 1"),
        ("train_off_the_shelf_agent.py", 'pip install "go_rl[agents]"'),
        ("cost_model_of_your_own.py --samples -1", "samples must be"),
        ("cost_model_of_your_own.py --samples 0", "samples must be"),
        ("cost_model_of_your_own.py --method nosuch", "'nosuch'"),
    ],
)
def test_examples_refuse_bad_arguments_in_a_sentence(words, said, monkeypatch, capsys):
    name, *arguments = words.split()
    for absent in ("torch", "sb3_contrib"):
        monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert said in f"{left.value.code} {capsys.readouterr().err}"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    assert f"python examples/{path.name}" in text
    compile(text, str(path), "exec")
