"""Whether HDP reaches the expert's step time: attempts with 10,000 samples.

Run: ``python -m experiments placement.hdp_reproduction [--rows NAME ...] [--attempts NAME ...]
[--colocate gradients]``, as TensorFlow colocated what the authors placed.

*published* has the settings of the paper (Mirhoseini et al. 2018, section 3: Adam with 0.1,
gradients of norm 1, tanh constant 5, temperature 10, one grouping and four placements an update)
and, where it is silent, of the authors' ``python/grappler/hierarchical_controller.py`` in
TensorFlow 1.x (20 groups a device, widths 64 and 512, raw numbers into a grouper without
activation, noise of 0.5 on logits for 750 updates, learning rate times 0.95 every 50 updates from
the 400th, a baseline with decay 0.9 from the reward of a failure). *normalised*: advantages of one
size, a tenth of the learning rate; *grouping*: the grouper starts from runs of operators; *learning
rate*: a tenth of its rate, 16 placements an update. The authors' code stops to draw placements
after 500 updates and repeats the last one; ours goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import markdown_table
from experiments.placement.go_rows import ROWS, RowOptions, best_after, row_problem, searched
from go_rl.core import Budget, Problem, TrainingError
from go_rl.core.decisions import Scored
from go_rl.graphs.cutting.colocation import Colocation
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.hdp import HDP
from go_rl.objectives.methods import DefaultPlacement, MakespanExpert

PLAIN = HDPConfig(learning_rate=0.01, placements=4, normalise=False, prior=0.0)
ATTEMPTS = {
    "published": replace(PLAIN, published=True, failure_first=True, learning_rate=0.1),
    "published, untrained": replace(PLAIN, published=True, learning_rate=0.0),
    "normalised": replace(PLAIN, published=True, normalise=True),
    "grouping": replace(PLAIN, normalise=True, learning_rate=0.003, prior=10.0),
    "learning rate": HDPConfig(learning_rate=3e-4, placements=16, normalise=True, prior=10.0),
    "untrained": HDPConfig(learning_rate=0.0, placements=16, normalise=True, prior=10.0),
}
"""*learning rate* has the settings of `HDPConfig`; *untrained* draws as it does."""
SHOWN = ("published", "failure_first", "learning_rate", "placements", "normalise", "prior")
AFTER = (200, 1000, 2000, 5000, 10_000)
"""Samples after which the best placement is reported."""
TITLES = {
    "gradients": "Gradients with their operators, updates with their weights",
    "graph": "Every operator by itself",
}
"""Headings by colocation."""


@dataclass(frozen=True)
class HdpReproduction(RowOptions, Experiment):
    """Options of this experiment."""

    colocate: Colocation = "gradients"
    samples: int = 10_000
    attempts: tuple[str, ...] = tuple(ATTEMPTS)
    """Settings to run; the page shows all that were ever run."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        table = self.kept_runs(Run)
        names = ("row", "attempt", "seed", "samples", "colocate")
        table.fill(self.keys(self.attempts), _run, names)
        self.write_page(page(table.rows))


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    attempt: str
    settings: str
    """Of `HDPConfig`, those `SHOWN`."""
    seed: int
    samples: int
    default_ms: float
    expert_ms: float
    milliseconds: float
    """Step time of the best placement."""
    seconds: float
    """Time of the search, compilation left out."""
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement; older runs have no seconds."""
    means: list[float]
    """Mean step time in milliseconds of the placements drawn, each tenth of the search."""
    colocate: str = "graph"
    """Operators that share a device, see `RowOptions.colocate`."""
    diverged: bool = False
    """Whether learning ended before its last sample, at a gradient that was not finite."""


def _run(row: str, attempt: str, seed: int, samples: int, colocate: Colocation) -> Run:
    problem = row_problem(row, colocate=colocate)
    config, priced = ATTEMPTS[attempt], list[Scored]()
    HDP(config).prepare(problem)
    method, budget = HDP(config, report=priced.append), Budget(samples=samples)
    began, diverged = time.perf_counter(), False
    try:
        plan, spent = searched(lambda: method.optimize(problem, budget, seed), problem)
        curve = [[p.samples, p.wall_seconds, 1e3 * p.seconds] for p in plan.curve]
    except TrainingError as error:
        print(error)
        diverged, spent = True, time.perf_counter() - began
        curve = _improvements(priced, spent)
    milliseconds = 1e3 * np.concatenate([each.seconds for each in priced])
    return Run(
        row=row, attempt=attempt,
        settings=", ".join(f"{name} {getattr(config, name)}" for name in SHOWN), seed=seed,
        samples=samples, default_ms=_milliseconds(DefaultPlacement(), problem),
        expert_ms=_milliseconds(MakespanExpert(), problem), milliseconds=curve[-1][-1],
        seconds=round(spent, 1),
        curve=curve,
        means=[float(part.mean()) for part in np.array_split(milliseconds, 10)], colocate=colocate,
        diverged=diverged,
    )  # fmt: skip


def _improvements(priced: Sequence[Scored], spent: float) -> list[list[float]]:
    """`Run.curve` of what was priced in so many seconds, as if evenly in time."""
    best = np.minimum.accumulate(1e3 * np.concatenate([each.seconds for each in priced]))
    better = np.flatnonzero(best < np.append(np.inf, best[:-1]))
    return [[float(i + 1), spent * (i + 1) / len(best), float(best[i])] for i in better]


def _milliseconds(method: DefaultPlacement | MakespanExpert, problem: Problem) -> float:
    return 1e3 * method.optimize(problem, Budget(samples=1), 0).value


def page(runs: Sequence[Run]) -> str:
    """Return the page, with a table for each colocation and number of samples."""
    settings = [
        f"- *{attempt}*: {settings or 'none'}\n"
        for attempt in ATTEMPTS
        for settings in sorted({r.settings for r in runs if r.attempt == attempt})
    ]
    text = (
        "# HDP against the expert's step time\n\nMilliseconds a step of the best placement after "
        "so many samples, P100-class devices by the analytical cost model; in brackets over the "
        "expert's. *drawn*: mean of the placements drawn in the first and in the last tenth of "
        "the search.\n"
    )
    counts = sorted({run.samples for run in runs}, reverse=True)
    for (colocate, title), count in product(TITLES.items(), counts):
        if mine := [run for run in runs if (run.colocate, run.samples) == (colocate, count)]:
            text += f"\n## {title}: {count:,} samples\n\n{_table(mine, count)}"
    return f"{text}\nSettings:\n\n{''.join(settings)}"


def _table(runs: Sequence[Run], samples: int) -> str:
    lines, counts = [], [count for count in AFTER if count <= samples]
    for run in sorted(
        runs, key=lambda r: (list(ROWS).index(r.row), list(ATTEMPTS).index(r.attempt), r.seed)
    ):
        cells = []
        for count in counts:
            best = best_after(run.curve, count)
            cells.append(f"{best:.1f} ({best / run.expert_ms:.2f})")
        ends = (run.means[0], run.means[-1], run.seconds / 60)
        attempt = f"{run.attempt}, diverged" if run.diverged else run.attempt
        lines.append([
            run.row, attempt, str(run.seed), f"{run.default_ms:.1f}", f"{run.expert_ms:.1f}",
            *cells, *(f"{number:.1f}" for number in ends),
        ])  # fmt: skip
    heads = ("row", "attempt", "seed", "default", "expert", *map(str, counts), "drawn, first",
             "last", "minutes")  # fmt: skip
    return markdown_table(heads, lines, ("attempt",)) + _means(runs)


def _means(runs: Sequence[Run]) -> str:
    """A sentence on each attempt at two rows or more."""
    said = []
    for attempt in dict.fromkeys(run.attempt for run in runs):
        mine = [run for run in runs if run.attempt == attempt]
        over = np.exp(np.mean([np.log(run.milliseconds / run.expert_ms) for run in mine]))
        if len(rows := {run.row for run in mine}) > 1:
            said.append(f"{attempt} {over:.2f} ({len(rows)} rows)")
    return f"\nOver the expert's, geometric mean: {'; '.join(said)}.\n" if said else ""
