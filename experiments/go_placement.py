"""GO's device-placement table on its six families: step time and search cost of every method.

Run: ``python experiments/go_placement.py [--rows NAME ...] [--samples 200] [--seeds 1]``. Training
graphs of the zoo on P100-class devices, analytical costs, the same simulator for all; task
placement only. *expert* are the published rules of each family; *one* is the policy learning on the
single graph from untrained weights (GO-one); *zero-shot* and *fine-tuned* start from the shipped
weights. Every finished run is kept in ``results/go_placement/runs.jsonl`` and not made again.

Published (real P100 GPUs, raw seconds): GO-one takes 20.5 % less time than human placement and
19.7 % less than HDP in the geometric mean over 14 rows, and searches 15 times as fast as HDP.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro
from go_rows import ROWS, SEEN

from go_rl.core import Budget, Optimizer, Problem, check_plan
from go_rl.core.plan import write_text
from go_rl.joint import step_problem
from go_rl.policy.config import PolicyConfig
from go_rl.policy.step_agent import new_step_agent
from go_rl.policy.step_search import StepPolicySearch
from go_rl.search import (
    StepAnnealing,
    StepDefault,
    StepExpert,
    StepHeft,
    StepMetis,
    StepRandom,
)
from go_rl.search.hdp import HDP
from go_rl.train.config import StepFineTuneConfig
from go_rl.train.step_learning import StepFineTuned
from go_rl.zoo import zoo_graph

RESULTS = Path(__file__).parent / "results"
NAME = "go_placement"


@dataclass(frozen=True)
class Options:
    """Command line of this experiment."""

    rows: tuple[str, ...] = tuple(ROWS)
    """Rows of the table."""
    samples: int = 200
    """Placements that a search may price."""
    seeds: int = 1
    """Runs of each method that draws."""
    methods: tuple[str, ...] = (
        "default", "expert", "metis", "heft", "annealing", "zero-shot", "one", "fine-tuned", "hdp",
    )  # fmt: skip
    """Methods to run; the table shows all that were ever run."""
    folder: Path = RESULTS / NAME
    """Where finished runs are kept."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    method: str
    seed: int
    samples: int
    milliseconds: float | None
    """Step time of the best placement; None: none fits."""
    seconds: float
    """Time of the search, compilation left out."""
    bound_ms: float
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement."""


SINGLE = ("default", "expert", "metis", "heft")
"""Methods that do not draw."""


def _one(problem: Problem) -> Optimizer:
    agent = new_step_agent(PolicyConfig(), 0)
    return StepFineTuned(agent, StepFineTuneConfig(first=1), name="one")


METHODS: dict[str, Callable[[Problem], Optimizer]] = {
    "default": lambda _: StepDefault(),
    "expert": lambda _: StepExpert(),
    "metis": lambda _: StepMetis(),
    "heft": lambda _: StepHeft(),
    "random": lambda _: StepRandom(),
    "annealing": lambda _: StepAnnealing(),
    "zero-shot": lambda _: StepPolicySearch(name="zero-shot"),
    "one": _one,
    "fine-tuned": lambda _: StepFineTuned(name="fine-tuned"),
    "hdp": lambda _: HDP(),
}


def main(options: Options) -> None:
    """Make the missing runs, then the table."""
    path = options.folder / "runs.jsonl"
    runs = _read(path)
    done = {(r.row, r.method, r.seed, r.samples) for r in runs}
    for row in options.rows:
        name, devices = ROWS[row]
        problem = step_problem(zoo_graph(name), f"p100x{devices}", ("placement",))
        for method in options.methods:
            for seed in range(1 if method in SINGLE else options.seeds):
                if (row, method, seed, options.samples) in done:
                    continue
                run = _run(row, method, seed, problem, options.samples)
                print({k: v for k, v in asdict(run).items() if k != "curve"}, flush=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(json.dumps(asdict(run)) + "\n")
                runs.append(run)
    write_text(RESULTS / f"{NAME}.md", _page(runs, options))


def _read(path: Path) -> list[Run]:
    if not path.exists():
        return []
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()]


def _run(row: str, method: str, seed: int, problem: Problem, samples: int) -> Run:
    optimizer = METHODS[method](problem)
    # Learners compile for each size of graph: a short run first, which is not timed.
    if method in ("one", "fine-tuned", "zero-shot", "hdp"):
        optimizer.optimize(problem, Budget(samples=25), seed)
    started = time.perf_counter()
    plan = optimizer.optimize(problem, Budget(samples=samples), seed)
    spent = time.perf_counter() - started
    if plan.evaluation.status.ok:
        verdict = check_plan(plan, problem)
        assert verdict.ok, verdict.sentence
    value = 1e3 * plan.value if plan.evaluation.status.ok else None
    curve = [[c.samples, c.wall_seconds, 1e3 * c.seconds_per_step] for c in plan.curve]
    return Run(row, method, seed, samples, value, round(spent, 3), 1e3 * plan.bound, curve)


def _page(runs: list[Run], options: Options) -> str:
    runs = [r for r in runs if r.samples == options.samples]
    methods = [m for m in METHODS if any(r.method == m for r in runs)]
    out = io.StringIO()
    hours = sum(r.seconds for r in runs) / 3600
    out.write(
        f"# Device placement on GO's six families\n\nMilliseconds a step, task placement, "
        f"{options.samples} samples, P100-class devices by the analytical cost model, one "
        f"simulator for all; {options.seeds} seed(s), mean and standard deviation. Search "
        f"{hours:.2f} hours on two shared cores. "
        f"Training graphs of {', '.join(SEEN)} were in the pretraining; the other families were "
        "not.\n\n"
    )
    out.write("| row | devices | " + " | ".join(methods) + " | bound |\n")
    out.write("| --- | ---: |" + " ---: |" * (len(methods) + 1) + "\n")
    rows = [row for row in ROWS if any(r.row == row for r in runs)]
    for row in rows:
        cells = [_cell(_mean(runs, row, method)) for method in methods]
        bound = max((r.bound_ms for r in runs if r.row == row), default=0.0)
        out.write(f"| {row} | {ROWS[row][1]} | " + " | ".join(cells) + f" | {bound:.1f} |\n")
    out.write("\n## Step time against others, geometric means\n\n")
    out.write("| | " + " | ".join(f"against {m}" for m in methods) + " | rows |\n")
    out.write("| --- |" + " ---: |" * (len(methods) + 1) + "\n")
    for label, chosen in (("", rows), (", unseen families", _unseen(rows))):
        for mine in ("one", "zero-shot", "fine-tuned"):
            if mine in methods and chosen:
                ratios = [_ratio(runs, chosen, mine, other) for other in methods]
                cells = " | ".join("–" if np.isnan(r) else f"{r:.3f}" for r in ratios)
                count = sum(bool(_of(runs, row, mine)) for row in chosen)
                out.write(f"| {mine}{label} | {cells} | {count} |\n")
    _search_cost(out, runs, rows)
    return out.getvalue()


def _search_cost(out: io.StringIO, runs: list[Run], rows: list[str]) -> None:
    out.write(
        "\n## Search cost\n\nSeconds of search, and seconds until a method is at least as good as "
        "HDP's final placement.\n\n| row | hdp | one | one reaches hdp | fine-tuned reaches hdp |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
    )
    gains = []
    for row in rows:
        hdp, one = _of(runs, row, "hdp"), _of(runs, row, "one")
        if not hdp or not one:
            continue
        target = float(np.mean([r.milliseconds or np.inf for r in hdp]))
        cost = float(np.mean([r.seconds for r in hdp]))
        reach = [
            float(np.mean([_reaches(r, target) for r in _of(runs, row, m)] or [np.inf]))
            for m in ("one", "fine-tuned")
        ]
        gains.append(cost / max(reach[0], 1e-3))
        own = float(np.mean([r.seconds for r in one]))
        out.write(f"| {row} | {cost:.1f} | {own:.1f} | {reach[0]:.2f} | {reach[1]:.2f} |\n")
    usable = [g for g in gains if np.isfinite(g) and g > 0]
    if usable:
        out.write(
            f"\n*one* reaches HDP's result {np.exp(np.log(usable).mean()):.1f} times as fast "
            f"(geometric mean of {len(usable)} rows; published: 15 times).\n"
        )


def _reaches(run: Run, target: float) -> float:
    return next((seconds for _, seconds, ms in run.curve if ms <= target * (1 + 1e-9)), np.inf)


def _of(runs: list[Run], row: str, method: str) -> list[Run]:
    return [r for r in runs if r.row == row and r.method == method]


def _mean(runs: list[Run], row: str, method: str) -> tuple[float, float]:
    values = [r.milliseconds if r.milliseconds else np.nan for r in _of(runs, row, method)]
    return (float(np.mean(values)), float(np.std(values))) if values else (np.nan, 0.0)


def _cell(found: tuple[float, float]) -> str:
    mean, spread = found
    if np.isnan(mean):
        return "–"
    return f"{mean:.2f} ± {spread:.2f}" if spread > 0 else f"{mean:.2f}"


def _unseen(rows: list[str]) -> list[str]:
    return [row for row in rows if not row.startswith(SEEN)]


def _ratio(runs: list[Run], rows: list[str], mine: str, other: str) -> float:
    pairs = [(_mean(runs, row, mine)[0], _mean(runs, row, other)[0]) for row in rows]
    logs = [np.log(a / b) for a, b in pairs if np.isfinite(a) and np.isfinite(b)]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__, config=(tyro.conf.FlagCreatePairsOff,)))
