"""The folder that ``go-rl partition`` leaves: plan, tables, figures."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from go_rl.core import Plan, PlanError
from go_rl.report.figures import save_curves, save_loads
from go_rl.report.tables import Row, csv_text, markdown

FILES = ("plan.json", "table.csv", "table.md", "config.json",
         "loads.svg", "loads.png", "curves.svg", "curves.png")  # fmt: skip
"""Everything that the folder may hold; other files in it are left alone."""


def write_plan_folder(
    folder: Path,
    best: Plan,
    plans: Sequence[Plan],
    table: Sequence[Row],
    config: dict[str, Any],
) -> tuple[str, ...]:
    """Write all files aside, then move them into ``folder``; returns the names written.

    A failed plan has no loads to draw; what an earlier run left under these names is removed.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise PlanError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        _write(aside, best, plans, table, config)
        return _move(aside, folder)
    except OSError as error:
        raise PlanError(f"{folder}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write(
    aside: Path, best: Plan, plans: Sequence[Plan], table: Sequence[Row], config: dict[str, Any]
) -> None:
    best.save(aside / "plan.json")
    (aside / "table.csv").write_text(csv_text(table), encoding="utf-8")
    (aside / "table.md").write_text(markdown(table), encoding="utf-8")
    (aside / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    if best.evaluation.status.ok:
        save_loads(best, aside / "loads")
    save_curves(plans, best.bound, aside / "curves")


def _move(aside: Path, folder: Path) -> tuple[str, ...]:
    folder.mkdir(parents=True, exist_ok=True)
    written = tuple(name for name in FILES if (aside / name).exists())
    for name in FILES:
        if name in written:
            os.replace(aside / name, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    return written
