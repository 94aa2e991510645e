"""``go-rl partition``: a model in; a table, a plan and figures out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from go_rl.api.partition import load, partition
from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.folders import check_folder, own_folder
from go_rl.cli.next_command import model_words, say_next
from go_rl.cli.options.configuration import ModelArguments, Optimize, Partition, to_json
from go_rl.core import Objective, OpGraph, Plan, PlanError
from go_rl.report.plan_folder import write_plan_folder
from go_rl.report.summary import plan_lines
from go_rl.report.tables import Row, json_rows, rows, text_table
from go_rl.verify.check_plan import check_plan

if TYPE_CHECKING:
    from go_rl.portfolio.portfolio import Result

PLAN_FILE = "plan.json"
"""The plan, in the output folder."""


def run_partition(config: Partition) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        folder = plan_folder(config, graph)
        result = _search(config, graph, report)
        outcome = finish(result, folder, config, report)
    return outcome()


def finish(
    result: Result,
    folder: Path | None,
    config: Partition | Optimize,
    report: Callable[[str], None],
) -> Callable[[], int]:
    """Judge the best plan and write its folder; return what prints the result and gives the exit
    code, once the progress display is gone."""
    judge(result)
    table = rows(result.plans, result.bound)
    written: tuple[str, ...] = ()
    if folder is not None:
        report("drawing figures")
        folder = folder if config.out else own_folder(folder, result.problem.graph)
        written = write_plan_folder(folder, result, to_json(config))

    def say() -> int:
        if config.json:
            print_json({"table": json_rows(table), "plan": result.best.to_json()})
        else:
            print_result(out := console(), result, table)
            print_line(out, f"written to {folder}: {', '.join(written)}")
            say_next(out, *_after(result, folder, config.source))
        return OK if result.best.evaluation.status.ok else FAILED_SEARCH

    return say


def _after(result: Result, folder: Path | None, source: ModelArguments) -> list[str]:
    """The command that checks the plan; without one, that lists other hardware."""
    if folder is None or not result.best.evaluation.status.ok:
        return ["hardware", "list"]
    return ["check", str(folder / PLAN_FILE), *model_words(source)]


def read(source: ModelArguments) -> OpGraph:
    """Read the model that the user named."""
    return load(
        source.model,
        source.dims,
        source.unknown,
        source.training,
        inputs=source.inputs,
        trip_count=source.trip_count,
        weights=source.weights,
    )


def _search(config: Partition, graph: OpGraph, report: Callable[[str], None]) -> Result:
    report(f"preparing {graph.num_nodes:,} operators")
    return partition(
        graph,
        config.hardware,
        memory=config.memory_choice,
        report=report,
        **asdict(config.search),
    )


def judge(result: Result) -> None:
    """No plan leaves the house unless the independent judge accepts it."""
    best: Plan = result.best
    verdict = check_plan(best, result.problem)
    if best.evaluation.status.ok and not verdict.ok:
        raise PlanError(
            f"the plan by {best.optimizer!r} was rejected by the judge, which is a defect in go_rl "
            f"and nothing was written: {verdict.sentence}"
        )


def plan_folder(config: Partition | Optimize, graph: OpGraph) -> Path | None:
    """Return the folder for the plan; None: nothing is written, as ``--json`` alone asks.

    Raises:
        PlanError: see `output_folder`.
    """
    return None if config.json and config.out is None else output_folder(config.out, graph)


def output_folder(chosen: str | None, graph: OpGraph) -> Path:
    """Return the folder that the user chose, else ``out/`` and the graph's name; see `own_folder`,
    which is for when something is to be written.

    Raises:
        PlanError: see `check_folder`.
    """
    named = re.sub(r"[^\w.-]+", "_", graph.name).strip(".") or "model"
    folder = Path("out") / named if chosen is None else Path(chosen)
    check_folder(folder)
    return folder


def print_result(out: Console, result: Result, table: list[Row]) -> None:
    """Print the table of methods and what is known about the best plan."""
    problem = result.problem
    title = f"{problem.graph.name} on {problem.hardware.name}, objective {problem.objective}"
    if problem.objective == Objective.RING:
        title += f", rules {problem.rules.name}"
    print_table(out, text_table(table, result.best, title))
    for line in plan_lines(result.best):
        print_line(out, line)
