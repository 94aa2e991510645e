"""What scripts of results inherit: rows that are kept, tables by declared columns, the page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from experiments.__main__ import names, script_of
from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.rows import grouped, rows_table
from experiments.statistics import (
    family_means,
    geometric_mean,
    ratio_of,
    with_error,
    with_range,
)


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
        for seed in range(self.seeds):
            if not table.has(f"run {seed}"):
                table.add(Run(f"run {seed}", seed + 0.25))
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
    assert with_range([1.0, 2.0, 9.0], ".1f", np.median, ".0f", "–") == "2.0 (1–9)"
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


def test_a_script_is_found_by_its_name():
    assert "partition.ring_quality" in names()
    assert "readers.foreign_keras" not in names()
    assert script_of("learning.generated_graphs").__name__ == "GeneratedGraphs"
    with pytest.raises(SystemExit, match=r"did you mean 'partition.ring_quality'"):
        script_of("partition.ring_qualty")
