"""``go-rl optimize``: a model in; a table, a plan, figures and, for makespan, a timeline out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.api.options import DEFAULT_SECONDS, For, OptimizeOptions
from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.folders import PLAN, own_folder
from go_rl.cli.model_arguments import ModelArguments, Pins, read
from go_rl.cli.next_command import changed_options, model_words, say_next
from go_rl.cli.plan_output import exit_code, output_folder, print_result
from go_rl.cli.stopping import keeping_the_best
from go_rl.core import Status

if TYPE_CHECKING:
    from go_rl.api.optimize import Result


@dataclass(frozen=True)
class Optimize:
    """Options of ``go-rl optimize``."""

    source: ModelArguments
    search: OptimizeOptions = field(default_factory=OptimizeOptions)
    fixed: Pins = ()
    """Operators that must not move, by name or pattern, such as 'encoder/*=0'."""
    for_: Annotated[For | None, tyro.conf.arg(name="for")] = None
    """Plan in whole layers, as this tool takes them (docs/export.md); hf: contiguous ones.
    Default: operators are free."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, tables, figures and timeline. Default: out/MODEL, none with --json."""
    json: bool = False
    """Print one JSON document, table and plan, and nothing else."""


def run(config: Optimize) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report, ExitStack() as held:
        graph = read(config.source)
        silent = config.json and config.out is None
        folder = None if silent else output_folder(config.out, graph, held)
        report(f"preparing {graph.num_nodes:,} operators")
        from go_rl.api.optimize import optimize
        from go_rl.api.plans.check import require_accepted
        from go_rl.api.problem import read_pins

        with keeping_the_best() as stop:
            fixed = read_pins(config.fixed)
            result = optimize(
                graph, fixed=fixed, for_=config.for_, report=report, **asdict(config.search)
            )
        require_accepted(result)
        written: tuple[str, ...] = ()
        if folder is not None:
            if config.out is None:
                folder = own_folder(folder, result.problem.graph, held)
            written = _write(folder, result, config, report)
    _print(result, config, folder, written)
    return exit_code(result, stop)


def _write(
    folder: Path, result: Result, config: Optimize, report: Callable[[str], None]
) -> tuple[str, ...]:
    from go_rl.report.plan_folder import write_plan_folder

    report("drawing figures")
    return write_plan_folder(folder, result, asdict(config))


def _print(result: Result, config: Optimize, folder: Path | None, written: tuple[str, ...]) -> None:
    from go_rl.report.bottleneck import bottleneck
    from go_rl.report.tables import json_rows

    if config.json:
        held = bottleneck(result.problem, result.best)
        print_json({
            "table": json_rows(result.rows),
            "reference": result.reference.optimizer,
            "bottleneck": None if held is None else held.to_json(),
            "plan": result.best.to_json(),
        })  # fmt: skip
        return
    print_result(out := console(), result)
    print_line(out, f"written to {folder}: {', '.join(written)}")
    status = result.best.evaluation.status
    if status is Status.GAVE_UP:
        say_next(out, *_longer(config))
    elif folder is None or not status.ok:
        say_next(out, "hardware", "list")
    else:
        say_next(out, "check", str(folder / PLAN), *model_words(config.source))


def _longer(config: Optimize) -> list[str]:
    """Words of the same command with twice the budget."""
    samples, seconds = config.search.samples, config.search.seconds
    if samples is None and seconds is None:
        seconds = DEFAULT_SECONDS
    more = replace(config.search, samples=samples and 2 * samples, seconds=seconds and 2 * seconds)
    words = ["optimize", *model_words(config.source), *changed_options(more)]
    for flag, given in (("--fixed", config.fixed), ("--for", config.for_), ("--out", config.out)):
        words += [flag, *([given] if isinstance(given, str) else given)] if given else []
    return words
