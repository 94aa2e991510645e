"""``go-rl optimize``: a model in; a table, a plan, figures and, for makespan, a timeline out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from go_rl.api.options import OptimizeOptions
from go_rl.api.run_lock import locked
from go_rl.cli.configuration import to_json
from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.folders import own_folder
from go_rl.cli.model_arguments import ModelArguments, read
from go_rl.cli.next_command import model_words, say_next
from go_rl.cli.plan_output import MEMORY, PLAN_FILE, output_folder, print_result

if TYPE_CHECKING:
    from go_rl.api.optimize import Result


@dataclass(frozen=True)
class Optimize:
    """Options of ``go-rl optimize``."""

    source: ModelArguments
    hardware: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Hardware: a preset (go-rl hardware list), a JSON file, a plan.json (its hardware), or "file"
    for the model file's own. Default: that one; else p100x4 for makespan and training graphs, and
    ring36 for all others."""
    search: OptimizeOptions = field(default_factory=OptimizeOptions)
    memory: Literal["auto", "on", "off"] = "auto"
    """Must weights and live tensors fit? auto: yes, except for a profile on foreign hardware."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, tables, figures and timeline. Default: out/MODEL, none with --json."""
    json: bool = False
    """Print one JSON document, table and plan, and nothing else."""


def run(config: Optimize) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report, ExitStack() as held:
        graph = read(config.source)
        silent = config.json and config.out is None
        folder = None if silent else output_folder(config.out, graph)
        if folder is not None and config.out is not None:
            held.enter_context(locked(folder))  # refused before the search
        report(f"preparing {graph.num_nodes:,} operators")
        from go_rl.api.check import require_accepted
        from go_rl.api.optimize import optimize

        memory, options = MEMORY[config.memory], asdict(config.search)
        result = optimize(graph, config.hardware, memory=memory, report=report, **options)
        require_accepted(result)
        written: tuple[str, ...] = ()
        if folder is not None:
            if config.out is None:
                folder = own_folder(folder, result.problem.graph)
                held.enter_context(locked(folder))
            written = _write(folder, result, config, report)
    _print(result, config, folder, written)
    return OK if result.best.evaluation.status.ok else FAILED_SEARCH


def _write(
    folder: Path, result: Result, config: Optimize, report: Callable[[str], None]
) -> tuple[str, ...]:
    from go_rl.report.plan_folder import write_plan_folder

    report("drawing figures")
    return write_plan_folder(folder, result, to_json(config))


def _print(result: Result, config: Optimize, folder: Path | None, written: tuple[str, ...]) -> None:
    from go_rl.report.tables import json_rows, rows

    table = rows(result.plans, result.bound)
    if config.json:
        print_json({"table": json_rows(table), "plan": result.best.to_json()})
        return
    print_result(out := console(), result, table)
    print_line(out, f"written to {folder}: {', '.join(written)}")
    if folder is None or not result.best.evaluation.status.ok:
        say_next(out, "hardware", "list")
    else:
        say_next(out, "check", str(folder / PLAN_FILE), *model_words(config.source))
