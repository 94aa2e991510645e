"""Which weights should be the default for makespan: two of them at equal samples and equal seconds.

Run: ``python -m experiments.learning.makespan_default [--seeds 5] [--minutes 9]``, as often as
there is time. Both place the rows of GO's table with two devices, and take all decisions there.
Runs at equal samples are kept in ``control_arms``, which has most of them. Seconds are those of the
processor: the clock is replaced by the process's, so that other programs change nothing. ``auto``
with either stands in ``headroom_auto``.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np

from experiments.experiment import RESULTS, Experiment, say
from experiments.learning.control_arms import GO
from experiments.placement.go_rows import ROWS
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import Comparison, evaluate
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.controls.control_table import bootstrap, paired_logs
from go_rl.core.files.whole_file import write_text
from go_rl.report.file_tables import csv_table, markdown_table

NAME = "makespan_default"
DECIDE = ("placement", "placement,schedule,fusion")
HEADS = ("decides", "budget", "ratio", "95 %", "rows", "families", "rows won / tied / lost",
         "seconds of the candidate", "of the rival")  # fmt: skip
TIE = 1e-3
"""Difference of logarithms up to which two plans are equal."""


@dataclass(frozen=True)
class MakespanDefault(Experiment):
    """Options of this experiment."""

    candidate: str = "dispatch-1.1"
    """Weights."""
    rival: str = "graph-1.0"
    """Weights that they would replace."""
    rows: tuple[str, ...] = GO
    """Rows of GO's table with two devices."""
    decide: tuple[str, ...] = DECIDE
    """Sets of decisions, one comparison after the other."""
    samples: tuple[int, ...] = (20, 200)
    """Plans of each run, one comparison after the other."""
    seconds: tuple[float, ...] = (1.0,)
    """Seconds of a processor of each run, likewise."""
    seeds: int = 5
    """Runs with each of the weights on each row."""
    minutes: float = 0.0
    """Time after which no comparison of a row begins; 0: none."""

    def run(self) -> None:
        """Make the missing runs; where none is missing, the page."""
        ends = time.time() + 60 * self.minutes if self.minutes else float("inf")
        cells = []
        for config in configs(self):
            found: dict[str, list[Run]] = defaultdict(list)
            families: dict[str, str] = {}
            for row in self.rows:
                for weights in (self.candidate, self.rival):
                    if time.time() >= ends:
                        return
                    compared = _compared(replace(config, graphs=(_graph(row),), weights=weights))
                    found[weights] += compared.runs
                    families |= compared.families
            cells.append(_cells(config, found[self.candidate], found[self.rival], families))
        self.write_page(page(self, cells))
        write_text(self.path(".csv"), csv_table(HEADS, cells))


def configs(options: MakespanDefault) -> list[EvaluateConfig]:
    """Return one comparison for each set of decisions and budget."""
    budgets = [(samples, None) for samples in options.samples]
    budgets += [(None, seconds) for seconds in options.seconds]
    return [
        EvaluateConfig(
            graphs=(_graph(options.rows[0]),), hardware=("p100x2",), decide=decide,
            methods=("policy",), samples=samples, seconds=seconds, seeds=options.seeds,
        )
        for decide in options.decide
        for samples, seconds in budgets
    ]  # fmt: skip


def _graph(row: str) -> str:
    return f"zoo:{ROWS[row][0]}"


def _compared(config: EvaluateConfig) -> Comparison:
    """The runs of one of the weights on one row."""
    if config.seconds is None:
        return evaluate(config, RESULTS / "control_arms", say)
    with mock.patch.object(time, "perf_counter", time.process_time):
        return evaluate(config, RESULTS / NAME, say)


def _cells(
    config: EvaluateConfig, mine: list[Run], theirs: list[Run], families: dict[str, str]
) -> list[str]:
    """A row of the table: the rival's seconds an iteration over the candidate's."""
    logs = paired_logs(theirs, mine)
    grouped: dict[str, list[float]] = defaultdict(list)
    for problem, log in logs.items():
        grouped[families[problem.graph]].append(log)
    means = np.array([np.mean(of) for of in grouped.values()])
    low, high = np.exp(bootstrap(means))
    won = sum(log > TIE for log in logs.values())
    lost = sum(log < -TIE for log in logs.values())
    budget = f"{config.samples} samples" if config.samples else f"{config.seconds:g} s"
    return [
        str(config.decide), budget, f"{np.exp(means.mean()):.3f}", f"{low:.3f} to {high:.3f}",
        str(len(logs)), str(len(means)), f"{won} / {len(logs) - won - lost} / {lost}",
        *(f"{np.median([run.seconds for run in runs]):.3g}" for runs in (mine, theirs)),
    ]  # fmt: skip


def page(options: MakespanDefault, cells: list[list[str]]) -> str:
    """Return the page."""
    return (
        f"# `{options.candidate}` against `{options.rival}`\n\n"
        f"Zero-shot plans of GO's rows with two devices, {options.seeds} seeds. *Ratio*: seconds "
        f"an iteration of `{options.rival}`'s plan over those of `{options.candidate}`'s, paired "
        "by row and seed, the mean over seeds, then rows, then families; above 1 the candidate is "
        "ahead. The interval is a bootstrap over families. Budgets in seconds count those of the "
        "processor. The seconds of a search are medians, compilation left out; at equal samples "
        "they were measured beside other work. GO's families were in the training of "
        "`graph-1.0`'s critic, and never in that of `dispatch-1.1`.\n\n"
        f"{markdown_table(list(HEADS), cells)}"
    )


if __name__ == "__main__":
    MakespanDefault.main()
