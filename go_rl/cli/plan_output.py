"""Output of ``go-rl optimize`` and ``finetune``: a folder, a table, sentences about the plan."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from go_rl.cli.console import complain, print_line, print_table
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.folders import check_folder
from go_rl.cli.stopping import STOPPED, Stop
from go_rl.core import OpGraph
from go_rl.core.files.run_lock import locked

if TYPE_CHECKING:
    from go_rl.api.optimize import Result


def output_folder(chosen: str | None, graph: OpGraph, held: ExitStack) -> Path:
    """Return the folder that the user chose, whose lock is kept by ``held``, so that it is refused
    before the search; else ``out/`` and the graph's name: see `own_folder`, which is for when
    something is to be written.

    Raises:
        PlanError: see `check_folder` and `check_plan_folder`.
        RunLockError: another run writes the folder.
    """
    from go_rl.report.plan_folder import check_plan_folder

    named = re.sub(r"[^\w.-]+", "_", graph.name).strip(".") or "model"
    folder = Path("out") / named if chosen is None else Path(chosen)
    check_folder(folder)
    if chosen is not None:
        check_plan_folder(folder)
        held.enter_context(locked(folder))
    return folder


def exit_code(result: Result, stop: Stop) -> int:
    """Return the exit code of a search; if the user ended it, say so."""
    if stop.code is not None:
        complain(STOPPED)
        return stop.code
    return OK if result.best.evaluation.status.ok else FAILED_SEARCH


def print_result(out: Console, result: Result) -> None:
    """Print the table of methods and what is known about the best plan."""
    from go_rl.report.bottleneck import bottleneck
    from go_rl.report.summary import plan_lines, problem_text
    from go_rl.report.tables import text_table

    problem = result.problem
    title = problem_text(problem)
    if problem.objective.traits.decides_several:
        title += f", decides {', '.join(problem.decisions)}"
    title += f" ({problem.objective.traits.value_name}: lower is better)"
    print_table(out, text_table(result.rows, result.best, title))
    if problem.hardware.description:
        print_line(out, f"{problem.hardware.name}: {problem.hardware.description}")
    for line in plan_lines(result.best, result.reference, bottleneck(problem, result.best)):
        print_line(out, line)
