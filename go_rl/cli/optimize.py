"""``go-rl optimize``: placement, schedule and fusion; a table, a plan, a timeline and figures."""

from __future__ import annotations

from dataclasses import asdict

from go_rl.cli.configuration import Optimize, to_json
from go_rl.cli.console import console, print_json, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.partition import judge, output_folder, print_result, read
from go_rl.core import ProblemError
from go_rl.report.plan_folder import write_plan_folder
from go_rl.report.tables import json_rows, rows


def run_optimize(config: Optimize) -> int:
    """Run the command; returns the exit code."""
    from go_rl.joint import optimize

    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        report(f"preparing {graph.num_nodes:,} operators")
        result = optimize(
            graph,
            config.package,
            named_tasks(config.tasks),
            memory=config.memory == "on",
            report=report,
            **asdict(config.search),
        )
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


def named_tasks(text: str | None) -> tuple[str, ...] | None:
    """Return the tasks in ``placement,schedule,fusion``; None: all that make sense.

    Raises:
        ProblemError: nothing is named.
    """
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ProblemError("--tasks: name some of placement, schedule, fusion, with commas between")
    return names
