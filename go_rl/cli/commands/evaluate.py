"""``go-rl evaluate``: methods on graphs in; tables and curves out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from go_rl.api.zoo import ZOO_PREFIX
from go_rl.cli.console import console, counting, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.cli.plan_output import MEMORY
from go_rl.compare.benchmark.config import THRESHOLDS, EvaluateConfig
from go_rl.core import Objective
from go_rl.report.comparison import CONTROL_FILES, FILES
from go_rl.report.comparison_tables import samples_cells
from go_rl.report.control_tables import (
    HEADS,
    WORDS,
    control_cells,
    control_tables,
    summary_sentence,
)
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.evaluate import Evaluated

DEFAULT_SAMPLES = 200
"""Budget when the user gives neither samples nor seconds."""
DEFAULT_SECONDS = 3.0
"""The same for the second budget of --controls."""


@dataclass(frozen=True)
class Evaluate:
    """Options of ``go-rl evaluate``."""

    graphs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="GRAPHS")]
    """zoo:NAME, a split of the zoo such as zoo:test (go-rl zoo list), or model files."""
    hardware: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME|FILE ...")] = ("ring36",)
    """Hardware, one or more: presets or JSON files, all with ring links (objective ring), or all
    with links between all devices (makespan), such as p100x4."""
    rules: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="RULES ...")] = None
    """Rings: rule sets, one or more of default, strict, replicate, relay. Default: strict."""
    all_chips: bool = False
    """Rings: every chip must be used."""
    decide: Annotated[str | None, tyro.conf.arg(metavar="NAME,NAME")] = None
    """Makespan: some of placement,schedule,fusion. Default: all."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    methods: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Methods of go-rl optimize, and the learned ones (docs/policy.md). Default: that of the
    reference plan (greedy; makespan: default), random, annealing and policy."""
    weights: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Weights of the policy methods and finetuned ones; default: those that ship."""
    control: Literal["untrained", "random-encoder", "blind", "zero-output"] | None = None
    """Control arm that decides in the place of every policy (docs/evaluate.md). Default: none."""
    controls: bool = False
    """Run every policy's control arms as well, at equal samples and then at equal seconds, and
    print them beside it."""
    samples: int | None = None
    """Evaluated plans of each run. Default: 200 if there is no limit in seconds."""
    seconds: float | None = None
    """Seconds of each run, compilation left out. Default: no limit; with --controls, 3."""
    seeds: int = 3
    """Runs of each method on each problem; bands need at least 2."""
    bound_seconds: float = 0.0
    """Seconds in which CP-SAT may raise the proven bound of each problem, beside the methods; 0:
    none."""
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
        title = f"{setting.title}: {what} (higher is better)"
        print_table(out, TextTable(title, *samples_cells(rows, found.summary)))
        best = found.best(setting)
        print_line(out, f"best: {best.method}, {best.improvement[0]:.3f} times the throughput of "
                        "the compiler heuristic")  # fmt: skip
    for title, shown in control_tables(found.controls).items():
        print_table(out, TextTable(title, HEADS, control_cells(shown), words=WORDS))
        print_line(out, summary_sentence(shown))
    files = (*FILES, *(CONTROL_FILES if config.controls else ()))
    print_line(out, f"written to {folder}: {', '.join(files)}")
    say_next(out, *_after(config, found))
    return OK


def _after(config: Evaluate, found: Evaluated) -> list[str]:
    """The command that plans the first graph by the method that did best in the first setting."""
    from go_rl.api.optimize import methods

    setting = next(iter(found.by_setting))
    first = config.graphs[0]
    if first.startswith(ZOO_PREFIX):  # which may be a whole split
        first = f"{ZOO_PREFIX}{found.comparison.runs[0].problem.graph}"
    best = found.best(setting).method
    objective = Objective.MAKESPAN if setting.decide else Objective.RING
    chosen = ("--decide", setting.decide) if setting.decide else ("--rules", setting.rules)
    every = ("--all-chips",) if setting.all_chips else ()
    words = ["optimize", first, "--hardware", setting.hardware, *chosen, *every]
    return [*words, "--method", best if best in methods(objective) else "auto"]


def _chosen(config: Evaluate) -> EvaluateConfig:
    unlimited = config.samples is None and config.seconds is None
    return EvaluateConfig(
        graphs=config.graphs,
        hardware=config.hardware,
        rules=config.rules,
        all_chips=config.all_chips,
        decide=config.decide,
        cost=config.cost,
        memory=MEMORY[config.memory],
        methods=config.methods,
        weights=config.weights,
        control=config.control,
        controls=config.controls,
        samples=DEFAULT_SAMPLES if unlimited else config.samples,
        seconds=DEFAULT_SECONDS if unlimited and config.controls else config.seconds,
        seeds=config.seeds,
        bound_seconds=config.bound_seconds,
    )
