"""``go-rl partition``: a model in; a table, a plan and figures out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from go_rl.api import load, partition
from go_rl.cli.configuration import Model, Partition, to_json
from go_rl.cli.console import console, print_json, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.core import OpGraph, Plan, PlanError, check_plan
from go_rl.report.plan_folder import write_plan_folder
from go_rl.report.summary import plan_lines
from go_rl.report.tables import Row, json_rows, rich_table, rows

if TYPE_CHECKING:
    from go_rl.portfolio import Result


def run_partition(config: Partition) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        result = _search(config, graph, report)
        judge(result)
        table = rows(result.plans, result.bound)
        silent = config.json and config.out is None
        folder = None if silent else output_folder(config.out, graph)
        written: tuple[str, ...] = ()
        if folder is not None:
            report("drawing figures")
            written = write_plan_folder(folder, result, to_json(config))
    if config.json:
        print_json({"table": json_rows(table), "plan": result.best.to_json()})
    else:
        print_result(console(), result, table)
        console().print(f"written to {folder}: {', '.join(written)}", markup=False, soft_wrap=True)
    return OK if result.best.evaluation.status.ok else FAILED_SEARCH


def read(source: Model) -> OpGraph:
    """Read the model that the user named."""
    return load(source.model, source.dims, source.unknown, source.training)


def _search(config: Partition, graph: OpGraph, report: Callable[[str], None]) -> Result:
    report(f"preparing {graph.num_nodes:,} operators")
    return partition(
        graph,
        config.package,
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


def output_folder(chosen: str | None, graph: OpGraph) -> Path:
    """Return the folder that the user chose, else ``out/`` and the graph's name."""
    if chosen is not None:
        return Path(chosen)
    return Path("out") / (re.sub(r"[^\w.-]+", "_", graph.name).strip(".") or "model")


def print_result(out: Console, result: Result, table: list[Row]) -> None:
    """Print the table of methods and what is known about the best plan."""
    problem = result.problem
    title = (
        f"{problem.graph.name} on {problem.package.name}, objective {problem.objective}, "
        f"rules {problem.rules.name}"
    )
    out.print(rich_table(table, result.best, title))
    for line in plan_lines(result.best):
        out.print(line, markup=False, soft_wrap=True)
