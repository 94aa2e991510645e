"""``go-rl evaluate``: methods on graphs in; tables and curves out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from go_rl.api.zoo import ZOO_PREFIX
from go_rl.benchmark.config import THRESHOLDS, EvaluateConfig
from go_rl.cli.console import console, counting, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.cli.plan_output import MEMORY
from go_rl.core import Objective
from go_rl.report.comparison import FILES
from go_rl.report.comparison_tables import samples_cells
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.evaluate import Evaluated

DEFAULT_SAMPLES = 200
"""Budget when the user gives neither samples nor seconds."""


@dataclass(frozen=True)
class Evaluate:
    """Options of ``go-rl evaluate``."""

    graphs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="GRAPHS")]
    """zoo:NAME, a split of the zoo such as zoo:test (go-rl zoo list), or model files."""
    hardware: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME|FILE ...")] = ("ring36",)
    """Hardware, one or more: presets with ring links, or JSON files."""
    rules: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RULES ...")] = ("strict",)
    """Rule sets, one or more of default, strict, replicate, relay."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = (
        "greedy", "random", "annealing", "policy",
    )  # fmt: skip
    """Methods of go-rl optimize, and the learned ones (docs/policy.md)."""
    weights: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Weights of the policy methods and finetuned ones; default: those that ship."""
    samples: int | None = None
    """Evaluated plans of each run; 200 if no limit is given."""
    seconds: float | None = None
    """Seconds of each run, compilation left out."""
    seeds: int = 3
    """Runs of each method on each problem; bands need at least 2."""
    bound_seconds: float = 0.0
    """CP-SAT's time to raise the proven bound of each problem, beside the methods."""
    memory: Literal["auto", "on", "off"] = "auto"
    """Must weights and live tensors fit? auto: yes, except for a profile on foreign hardware."""
    thresholds: tuple[float, ...] = THRESHOLDS
    """Improvements over the compiler heuristic whose samples are counted."""
    out: Annotated[str, tyro.conf.arg(metavar="DIR")] = "out/evaluate"
    """Folder for runs, tables and curves; what is finished there is not run again."""


def run(config: Evaluate) -> int:
    """Run the command; returns the exit code."""
    folder = Path(config.out)
    check_folder(folder)
    from go_rl.api.evaluate import evaluate

    with counting("comparing") as report:
        found = evaluate(_chosen(config), folder, thresholds=config.thresholds, report=report)
    out = console()
    for setting, rows in found.by_setting.items():
        what = "throughput over the compiler heuristic's, at the end and after so many samples"
        title = f"{setting.hardware}, rules {setting.rules}: {what} (higher is better)"
        print_table(out, TextTable(title, *samples_cells(rows, found.summary)))
        best = found.best(setting)
        print_line(out, f"best: {best.method}, {best.improvement[0]:.3f} times the throughput of "
                        "the compiler heuristic")  # fmt: skip
    print_line(out, f"written to {folder}: {', '.join(FILES)}")
    say_next(out, *_after(config, found))
    return OK


def _after(config: Evaluate, found: Evaluated) -> list[str]:
    """The command that plans the first graph by the method that did best in the first setting."""
    from go_rl.api.optimize import methods

    first = config.graphs[0]
    if first.startswith(ZOO_PREFIX):  # which may be a whole split
        first = f"{ZOO_PREFIX}{found.comparison.runs[0].problem.graph}"
    best = found.best(next(iter(found.by_setting))).method
    words = ["optimize", first, "--hardware", config.hardware[0], "--rules", config.rules[0]]
    return [*words, "--method", best if best in methods(Objective.RING) else "auto"]


def _chosen(config: Evaluate) -> EvaluateConfig:
    unlimited = config.samples is None and config.seconds is None
    return EvaluateConfig(
        graphs=config.graphs,
        hardware=config.hardware,
        rules=config.rules,
        cost=config.cost,
        memory=MEMORY[config.memory],
        methods=config.methods,
        weights=config.weights,
        samples=DEFAULT_SAMPLES if unlimited else config.samples,
        seconds=config.seconds,
        seeds=config.seeds,
        bound_seconds=config.bound_seconds,
    )
