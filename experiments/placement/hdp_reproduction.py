"""Whether HDP reaches the expert's step time: attempts with 10,000 samples.

Run: ``python -m experiments.placement.hdp_reproduction [--rows NAME ...] [--attempts NAME ...]``.
Two of GO's rows (`go_placement.py`), decision placement only. *published* has the settings of the
paper (Mirhoseini et al. 2018, section 3: Adam with 0.1, gradients of norm 1, tanh constant 5,
temperature 10, one grouping and four placements an update) and, where it is silent, of the authors'
code in TensorFlow 1.x, ``python/grappler/hierarchical_controller.py`` (20 groups for each device,
hidden widths 64 and 512, raw numbers into a grouper without activation, noise of 0.5 on logits
for 750 updates, learning rate times 0.95 every 50 updates from the 400th, a baseline with decay 0.9
that starts at the reward of a failure). *normalised*: advantages of one size, a tenth of the
learning rate; *grouping*: the grouper starts from runs of operators, too; *learning rate*: a tenth
of its rate, 16 placements an update; *untrained*: the same draws, and nothing is learned. The
authors' code also stops to draw placements after 500 updates
and then repeats the last one; ours goes on. Every finished run is kept in
``results/hdp_reproduction/runs.jsonl`` and not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import markdown_table
from experiments.placement.go_rows import ROWS, row_problem, searched
from go_rl.core import Budget, Problem
from go_rl.core.decisions import Scored
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.hdp import HDP
from go_rl.objectives.methods import DefaultPlacement, MakespanExpert

PLAIN = HDPConfig(learning_rate=0.01, placements=4, normalise=False, prior=0.0)
ATTEMPTS = {
    "published": replace(PLAIN, published=True, failure_first=True, learning_rate=0.1),
    "normalised": replace(PLAIN, published=True, normalise=True),
    "grouping": replace(PLAIN, normalise=True, learning_rate=0.003, prior=10.0),
    "learning rate": HDPConfig(learning_rate=3e-4, placements=16, normalise=True, prior=10.0),
    "untrained": HDPConfig(learning_rate=0.0, placements=16, normalise=True, prior=10.0),
}
"""The fourth has the settings of `HDPConfig`; the last draws as it does and learns nothing."""
SHOWN = ("published", "failure_first", "learning_rate", "placements", "normalise", "prior")
AFTER = (200, 1000, 2000, 5000, 10_000)
"""Samples after which the best placement is reported."""


@dataclass(frozen=True)
class HdpReproduction(Experiment):
    """Options of this experiment."""

    rows: tuple[str, ...] = ("RNNLM 2 layers", "GNMT 2 layers")
    """Rows of GO's table."""
    attempts: tuple[str, ...] = tuple(ATTEMPTS)
    """Settings to run; the page shows all that were ever run."""
    samples: int = 10_000
    """Placements that a search may price."""
    seeds: int = 1
    """Searches of each attempt."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        table = self.kept_runs(Run)
        done = {(r.row, r.attempt, r.seed, r.samples) for r in table.rows}
        for seed, attempt, row in product(range(self.seeds), self.attempts, self.rows):
            if (row, attempt, seed, self.samples) not in done:
                table.add(_run(row, attempt, seed, self.samples))
        self.write_page(page([r for r in table.rows if r.samples == self.samples]))


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
    """[samples, ms] at every improvement."""
    means: list[float]
    """Mean step time in milliseconds of the placements drawn, each tenth of the search."""


def _run(row: str, attempt: str, seed: int, samples: int) -> Run:
    problem, config, priced = row_problem(row), ATTEMPTS[attempt], list[Scored]()
    HDP(config).prepare(problem)
    method, budget = HDP(config, report=priced.append), Budget(samples=samples)
    plan, spent = searched(lambda: method.optimize(problem, budget, seed), problem)
    milliseconds = 1e3 * np.concatenate([each.seconds for each in priced])
    return Run(
        row=row,
        attempt=attempt,
        settings=", ".join(f"{name} {getattr(config, name)}" for name in SHOWN),
        seed=seed,
        samples=samples,
        default_ms=_milliseconds(DefaultPlacement(), problem),
        expert_ms=_milliseconds(MakespanExpert(), problem),
        milliseconds=1e3 * plan.value,
        seconds=round(spent, 1),
        curve=[[point.samples, 1e3 * point.seconds] for point in plan.curve],
        means=[float(part.mean()) for part in np.array_split(milliseconds, 10)],
    )


def _milliseconds(method: DefaultPlacement | MakespanExpert, problem: Problem) -> float:
    return 1e3 * method.optimize(problem, Budget(samples=1), 0).value


def page(runs: Sequence[Run]) -> str:
    """Return the page."""
    lines = []
    for run in sorted(
        runs, key=lambda r: (list(ROWS).index(r.row), list(ATTEMPTS).index(r.attempt), r.seed)
    ):
        cells = []
        for count in AFTER:
            best = min(ms for samples, ms in run.curve if samples <= count)
            cells.append(f"{best:.1f} ({best / run.expert_ms:.2f})")
        ends = (run.means[0], run.means[-1], run.seconds / 60)
        lines.append([
            run.row, run.attempt, str(run.seed), f"{run.default_ms:.1f}", f"{run.expert_ms:.1f}",
            *cells, *(f"{number:.1f}" for number in ends),
        ])  # fmt: skip
    heads = ("row", "attempt", "seed", "default", "expert", *map(str, AFTER), "drawn, first",
             "last", "minutes")  # fmt: skip
    settings = [
        f"- *{attempt}*: {settings or 'none'}\n"
        for attempt in ATTEMPTS
        for settings in sorted({r.settings for r in runs if r.attempt == attempt})
    ]
    return (
        "# HDP against the expert's step time\n\nMilliseconds a step of the best placement after "
        "so many samples, P100-class devices by the analytical cost model; in brackets over the "
        "expert's. *drawn*: mean of the placements drawn in the first and in the last tenth of "
        f"the search.\n\n{markdown_table(heads, lines, ('attempt',))}\nSettings:\n\n"
        f"{''.join(settings)}"
    )


if __name__ == "__main__":
    HdpReproduction.main()
