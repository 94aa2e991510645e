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

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.pages import RESULTS, run_script, write_page
from experiments.placement.go_rows import ROWS
from experiments.placement.go_runs import keep_run, read_runs
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Budget, Problem
from go_rl.core.decisions import Scored
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.hdp import HDP
from go_rl.objectives.methods import DefaultPlacement, MakespanExpert
from go_rl.verify.check_plan import check_plan

NAME = "hdp_reproduction"
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
class Options:
    """Command line of this experiment."""

    rows: tuple[str, ...] = ("RNNLM 2 layers", "GNMT 2 layers")
    """Rows of GO's table."""
    attempts: tuple[str, ...] = tuple(ATTEMPTS)
    """Settings to run; the page shows all that were ever run."""
    samples: int = 10_000
    """Placements that a search may price."""
    seeds: int = 1
    """Searches of each attempt."""


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


def main(options: Options) -> None:
    """Make the missing runs, then the page."""
    path = RESULTS / NAME / "runs.jsonl"
    runs = read_runs(Run, path)
    done = {(r.row, r.attempt, r.seed, r.samples) for r in runs}
    for seed in range(options.seeds):
        for attempt in options.attempts:
            for row in options.rows:
                if (row, attempt, seed, options.samples) in done:
                    continue
                runs.append(_run(row, attempt, seed, options.samples))
                keep_run(path, runs[-1])
    write_page(RESULTS / NAME, page([r for r in runs if r.samples == options.samples]), __file__)


def _run(row: str, attempt: str, seed: int, samples: int) -> Run:
    name, devices = ROWS[row]
    problem = problem_for(
        zoo_graph(name), OptimizeOptions("makespan", "placement", hardware=f"p100x{devices}")
    )
    config, priced = ATTEMPTS[attempt], list[Scored]()
    HDP(config).prepare(problem)
    started = time.perf_counter()
    plan = HDP(config, report=priced.append).optimize(problem, Budget(samples=samples), seed)
    spent = time.perf_counter() - started
    verdict = check_plan(plan, problem)
    assert verdict.ok, verdict.sentence
    milliseconds = 1e3 * np.concatenate([each.seconds for each in priced])
    return Run(
        row=row,
        attempt=attempt,
        settings=_settings(config),
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


def _settings(config: HDPConfig) -> str:
    return ", ".join(f"{name} {getattr(config, name)}" for name in SHOWN)


def page(runs: Sequence[Run]) -> str:
    """Return the page."""
    out = io.StringIO()
    out.write(
        "# HDP against the expert's step time\n\nMilliseconds a step of the best placement after "
        "so many samples, P100-class devices by the analytical cost model; in brackets over the "
        "expert's. *drawn*: mean of the placements drawn in the first and in the last tenth of "
        "the search.\n\n| row | attempt | seed | default | expert | "
        + " | ".join(f"{count}" for count in AFTER)
        + " | drawn, first | last | minutes |\n| --- | --- |"
        + " ---: |" * (len(AFTER) + 6)
        + "\n"
    )
    for run in sorted(
        runs, key=lambda r: (list(ROWS).index(r.row), list(ATTEMPTS).index(r.attempt), r.seed)
    ):
        cells = []
        for count in AFTER:
            best = min(ms for samples, ms in run.curve if samples <= count)
            cells.append(f"{best:.1f} ({best / run.expert_ms:.2f})")
        out.write(
            f"| {run.row} | {run.attempt} | {run.seed} | {run.default_ms:.1f} | "
            f"{run.expert_ms:.1f} | {' | '.join(cells)} | {run.means[0]:.1f} | "
            f"{run.means[-1]:.1f} | {run.seconds / 60:.1f} |\n"
        )
    out.write("\nSettings:\n\n")
    for attempt in ATTEMPTS:
        for settings in sorted({r.settings for r in runs if r.attempt == attempt}):
            out.write(f"- *{attempt}*: {settings or 'none'}\n")
    return out.getvalue()


if __name__ == "__main__":
    run_script(main, Options, __doc__)
