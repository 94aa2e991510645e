"""What scripts of results inherit: rows that are kept, tables by declared columns, the page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import pytest

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.rows import KeptRows, read_rows, rows_table


@dataclass(frozen=True)
class Run:
    name: str
    seconds: Annotated[float, Column("seconds, ms", ".1f")]
    share: Annotated[float, Column(form="{:.0%} of all")] = 0.5


@dataclass(frozen=True)
class Traced:
    name: str
    curve: list[float]


@dataclass(frozen=True)
class Toy(Experiment):
    """Options of a toy."""

    seeds: int = 2
    """Runs."""

    def run(self) -> None:
        """Make what is missing."""
        table = self.kept_rows(Run)
        for seed in range(self.seeds):
            if not table.has(f"run {seed}"):
                table.add(Run(f"run {seed}", seed + 0.25))
        self.write_page(f"# Toy\n\n{rows_table(table.rows)}")


def test_rows_are_kept_and_the_page_has_their_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "--seeds", "2"])
    monkeypatch.setattr(Experiment, "module", "experiments.toy")
    Toy(out=tmp_path, seeds=1).run()
    first = (tmp_path / "toy.csv").read_text()
    Toy(out=tmp_path).run()
    assert first == "name,seconds,share\nrun 0,0.25,0.5\n"
    assert (tmp_path / "toy.csv").read_text() == f"{first}run 1,1.25,0.5\n"
    assert (tmp_path / "toy.md").read_text() == (
        "# Toy\n\nMade by `python -m experiments.toy --seeds 2`.\n\n"
        "| name | seconds, ms | share |\n| --- | ---: | ---: |\n"
        "| run 0 | 0.2 | 50% of all |\n| run 1 | 1.2 | 50% of all |\n"
    )


def test_the_command_line_has_own_and_common_options(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "--seeds", "3", "--out", str(tmp_path)])
    monkeypatch.setattr(Experiment, "module", "experiments.toy")
    Toy.main()
    assert len(read_rows(Run, tmp_path / "toy.csv")) == 3


def test_rows_with_lists_are_lines_of_json(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    KeptRows(Traced, path).add(Traced("a", [1.0, 0.5]))
    assert KeptRows(Traced, path).rows == [Traced("a", [1.0, 0.5])]
    assert "curve" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("without", "heads"), [((), "name | seconds, ms | share"), (("share",), "name | seconds, ms")]
)
def test_fields_can_be_left_out_of_a_table(without, heads):
    told = rows_table([Run("a", float("nan"))], without)
    assert told.splitlines()[0] == f"| {heads} |"
    assert "| a | – |" in told
