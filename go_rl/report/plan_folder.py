"""The folder that ``go-rl optimize`` leaves: plan, tables, figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import PlanError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.files.whole_file import check_target, writing
from go_rl.report.figures import save_curves, save_loads
from go_rl.report.page.methods_file import METHODS_FILE, PAGE_FILE, methods_text
from go_rl.report.tables import csv_text, markdown
from go_rl.report.timeline.chrome_trace import save_chrome_trace
from go_rl.report.timeline.gantt import save_gantt
from go_rl.report.timeline.plan_timeline import plan_timeline

if TYPE_CHECKING:
    from go_rl.compare.portfolio import Result

FILES = ("plan.json", "table.csv", "table.md", "config.json", METHODS_FILE,
         "loads.svg", "loads.png", "curves.svg", "curves.png",
         "trace.json", "gantt.svg", "gantt.png", PAGE_FILE)  # fmt: skip
"""Everything that the folder may hold; other files in it are left alone."""


def write_plan_folder(folder: Path, result: Result, config: dict[str, Any]) -> tuple[str, ...]:
    """Write all files into a folder in ``folder``, which may be a mount point, then move them up;
    returns the names written.

    A failed plan has no loads to draw; files of an earlier run under these names are removed, also
    the page of its plan.
    """
    with writing(folder, PlanError):
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder("plan", folder) as aside:
            _write(aside, result, config)
            return _move(aside, folder)


def check_plan_folder(folder: Path) -> None:
    """Raise a `PlanError` where a folder, a device or a pipe has the name of a file that
    `write_plan_folder` writes."""
    for name in FILES:
        with writing(folder / name, PlanError):
            check_target(folder / name)


def _write(aside: Path, result: Result, config: dict[str, Any]) -> None:
    best, model = result.best, result.problem.graph.name
    table = result.rows
    best.save(aside / "plan.json")
    (aside / "table.csv").write_text(csv_text(table), encoding="utf-8")
    (aside / "table.md").write_text(markdown(table, best.objective), encoding="utf-8")
    (aside / METHODS_FILE).write_text(methods_text(result.plans, result.bound), encoding="utf-8")
    (aside / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    if best.evaluation.status.ok:
        save_loads(best, model, aside / "loads")
        if result.problem.objective.traits.is_replayed:
            timeline = plan_timeline(result.problem, best)
            save_chrome_trace(timeline, aside / "trace.json")
            save_gantt(timeline, aside / "gantt")
    save_curves(result.plans, result.bound, model, aside / "curves")


def _move(aside: Path, folder: Path) -> tuple[str, ...]:
    written = tuple(name for name in FILES if (aside / name).exists())
    for name in FILES:
        if name in written:
            os.replace(aside / name, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    return written
