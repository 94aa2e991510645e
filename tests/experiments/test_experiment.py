"""Experiments, their results, and long runs."""

import re
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from graphs.readers.onnx_models import parsed

from experiments.__main__ import names, script_of
from experiments.experiment import Experiment
from experiments.learning import long_runs
from experiments.page_text import Column
from experiments.readers.foreign_models import page, read_as_advised, row_of
from experiments.rows import KeptRows, grouped, rows_table
from experiments.statistics import (
    family_means,
    geometric_mean,
    lead,
    lead_cell,
    mean_logs,
    ratio_of,
    with_error,
    with_range,
)
from go_rl.cli.commands.train.policy import TrainOptions
from go_rl.cli.parsing.parse import parse
from go_rl.core import TrainingError


@dataclass(frozen=True)
class Run:
    name: str
    seconds: Annotated[float, Column("seconds, ms", ".1f")]
    share: Annotated[float, Column(form="{:.0%} of all")] = 0.5


@dataclass(frozen=True)
class Toy(Experiment):
    """Options of a toy."""

    seeds: int = 2
    """Runs."""

    def run(self) -> None:
        """Make what is missing."""
        table = self.kept_rows(Run)
        names = [f"run {seed}" for seed in range(self.seeds)]
        table.fill(((name,) for name in names), lambda name: Run(name, names.index(name) + 0.25))
        self.write_page(f"# Toy\n\n{rows_table(table.rows)}")


def test_rows_are_kept_and_the_page_has_their_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "--seeds", "2"])
    monkeypatch.setattr(Experiment, "name", "toy")
    Toy(out=tmp_path, seeds=1).run()
    first = (tmp_path / "toy.csv").read_text()
    Toy(out=tmp_path).run()
    assert first == "name,seconds,share\nrun 0,0.25,0.5\n"
    assert (tmp_path / "toy.csv").read_text() == f"{first}run 1,1.25,0.5\n"
    assert (tmp_path / "toy.md").read_text() == (
        "# Toy\n\nMade by `python -m experiments toy --seeds 2`.\n\n"
        "| name | seconds, ms | share |\n| --- | ---: | ---: |\n"
        "| run 0 | 0.2 | 50% of all |\n| run 1 | 1.2 | 50% of all |\n"
    )


def test_remarks_written_by_hand_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(Experiment, "name", "toy")
    Toy(out=tmp_path).run()
    page = tmp_path / "toy.md"
    page.write_text(page.read_text() + "\n## Remarks\n\nBy hand.\n")
    Toy(out=tmp_path, seeds=3).run()
    assert page.read_text().endswith("| run 2 | 2.2 | 50% of all |\n\n## Remarks\n\nBy hand.\n")


def test_numbers_are_summed_up_by_hand():
    """Of 1 and 3 the mean is 2, the standard error 1, the deviation 1; of 2 and 8 the geometric
    mean is 4."""
    assert with_range([1.0, 3.0], ".1f") == "2.0 (1.0 to 3.0)"
    assert with_range([1.0, 2.0, 9.0], ".1f", np.median, "–") == "2.0 (1.0–9.0)"
    never = with_range([0.0, 2.0], lambda value: "never" if value == 0 else f"{value:.0f}", max)
    assert never == "2 (never to 2)"
    assert with_error([1.0, 3.0]) == "2.0 ± 1.0"
    assert with_error([2.0]) == "2.0"
    assert [with_range([]), with_error([])] == ["–"] * 2
    assert geometric_mean([2.0, 8.0, float("inf")]) == pytest.approx(4.0)


def test_families_weigh_equally():
    """Two problems of one family at 2 and 8, one of another at 1: the mean is 2."""
    means = family_means((name, np.log(x)) for name, x in (("a", 2.0), ("b", 1.0), ("a", 8.0)))
    ratio, low, high = ratio_of(means)
    assert (ratio, low, high) == pytest.approx((2.0, 1.0, 4.0))
    assert grouped("abA", str.lower) == {"a": ["a", "A"], "b": ["b"]}


def test_a_lead_counts_problems_that_both_have():
    """At 2 and 8 (mean of 4 and 16) against 1 and 1, of two families: 4; a third has no rival."""
    rival = mean_logs([("a", 2.0), ("b", 4.0), ("b", 16.0), ("b", np.inf), ("c", np.inf)])
    ours = mean_logs([("a", 1.0), ("b", 1.0), ("c", 3.0)])
    found = lead(rival, ours, {"a": "x", "b": "y", "c": "z"})
    assert found == pytest.approx((4.0, 2.0, 8.0))
    assert lead_cell(found) == "4.000 (2.000 to 8.000)"
    assert lead_cell(lead({}, ours, {})) == ""


def test_rows_of_another_run_are_refused(tmp_path):
    KeptRows(Run, tmp_path / "rows.csv").add(Run("one", 1.0))
    with pytest.raises(TrainingError, match="move the file away"):
        KeptRows(Run, tmp_path / "rows.csv", run="key")


def test_a_script_is_found_by_its_name():
    assert "partition.solver_speed" in names()
    assert "readers.foreign_keras" not in names()
    assert script_of("learning.generated_graphs").__name__ == "GeneratedGraphs"
    with pytest.raises(SystemExit, match=r"did you mean 'partition.solver_speed'"):
        script_of("partition.solver_sped")


ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
PAGES = sorted(RESULTS.glob("*.md"))
COMMAND = re.compile(r"Made by `(?:python -m experiments[. ]([\w.]+)[^`]*|make ([\w-]+))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_the_script_that_makes_it(page):
    found = COMMAND.search(page.read_text(encoding="utf-8"))
    assert found is not None
    module, target = found.groups()
    if module:
        assert (ROOT / "experiments" / f"{module.replace('.', '/')}.py").is_file()
    else:
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_row_of_the_results_names_a_page_that_exists():
    documents = sorted((ROOT / "docs" / "results").glob("*.md"))
    text = "\n".join(document.read_text(encoding="utf-8") for document in documents)
    rows = re.findall(r"^\|.*\| `(\w+)` \|$", text, re.M)
    assert len(rows) > 30
    assert set(rows) <= {page.stem for page in PAGES}
    assert {page.stem for page in PAGES} - set(rows) == set()


def test_the_list_names_each_run_once_and_commands_that_exist():
    runs = long_runs.listed()
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        program, *words = shlex.split(run.command)
        assert run.core_hours > 0
        if program == "python":
            assert words[:2] == ["-m", "experiments"]
            assert words[2] in names()
        else:
            assert program == "go-rl"
            assert words[0] in ("train", "measure")
            _, options = parse(words)
            assert f"experiments/learning/runs/{run.name}" in run.command
            if words[:2] == ["train", "policy"]:
                assert isinstance(options, TrainOptions)
                assert options.training.name
                assert options.out == f"experiments/learning/runs/{run.name}"


@pytest.fixture
def list_of_two(tmp_path, monkeypatch):
    """A run that ends, and one that fails; the session of the tests keeps its priority."""
    monkeypatch.setattr(long_runs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(long_runs, "KEEP_EVERY", 0.05)
    monkeypatch.setattr(long_runs, "_take_last_core", lambda: None)
    runs = [
        long_runs.LongRun("ends", 'python -c "import time; time.sleep(0.3)"', 1.0, "nothing"),
        long_runs.LongRun("fails", 'python -c "raise SystemExit(3)"', 1.0, "nothing"),
    ]
    monkeypatch.setattr(long_runs, "listed", lambda: runs)
    return tmp_path / "runs"


def test_what_ends_is_marked_and_what_fails_is_tried_again(list_of_two, capfd):
    assert long_runs.work() == 0
    assert (list_of_two / "ends.done").exists()
    assert not (list_of_two / "fails.done").exists()
    assert "ends" in (list_of_two / "spent.json").read_text()
    before = time.perf_counter()
    long_runs.work()
    assert time.perf_counter() - before < 10
    said = capfd.readouterr().out
    assert said.count("== ends: ended") == 1
    assert said.count("== fails: ended with 3") == 2


def test_the_state_of_each_run_is_told(list_of_two, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(long_runs, "WORK", tmp_path / "work")
    long_runs.work()
    assert long_runs.status() == 0
    shown = capsys.readouterr().out
    assert "ends                 done" in shown
    assert "no worker" in shown
    assert long_runs._signal(long_runs.signal.SIGSTOP, "paused") == 1


def write(path, text):
    path.write_bytes(parsed(text, domains=["own"]).SerializeToString())
    return path


def test_the_advice_is_followed_until_the_model_is_read(tmp_path):
    reading = read_as_advised(
        write(tmp_path / "m.onnx", "(float[n,3] x) => (y) { y = own.Twist(x) }")
    )
    assert reading.graph is not None
    assert reading.options == ("--dim n=2", "--unknown bytes")
    assert len(reading.refusals) == 2
    row = row_of("m", ("me", ""), reading, None)
    assert (row.outcome, row.nodes, row.mflop) == ("read", 2, 0.0)
    assert "own.Twist" in row.notes


def test_a_derived_model_is_compared_with_its_source(tmp_path):
    texts = {"both": "z = Relu(x) y = Neg(z)", "one": "y = Relu(x)"}
    both, one = (
        read_as_advised(write(tmp_path / f"{name}.onnx", f"(float[2,3] x) => (y) {{ {text} }}"))
        for name, text in texts.items()
    )
    row = row_of("fused", ("a fuser", "bert"), one, both.graph)
    assert (row.source, row.flop_ratio) == ("bert", 0.5)
    assert "| 0.500 |" in page([row], {"other": "ValueError: no"})
    assert "- other: ValueError: no" in page([row], {"other": "ValueError: no"})
