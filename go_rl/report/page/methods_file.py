"""``methods.json`` of a plan's folder: the rows of all methods and their curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from go_rl.compare.portfolio.method_rows import Row, rows
from go_rl.core import Plan, PlanError
from go_rl.core.evaluation import finite
from go_rl.core.files.strict_json import read_json

METHODS_FILE = "methods.json"
"""Name of the file in the folder."""
PAGE_FILE = "page.html"
"""Name of the page that ``go-rl view`` leaves there."""

Point = tuple[int, float, float | None]
"""Priced samples, seconds of search, and the best value so far in seconds; None: no plan yet."""


@dataclass(frozen=True)
class MethodRuns:
    """Methods that were compared on one problem."""

    table: tuple[Row, ...]
    curves: tuple[tuple[Point, ...], ...]
    """Progress of the method of each row."""
    bound: float
    """Proven lower bound on the objective, seconds; 0: none."""


def method_runs(plans: Sequence[Plan], bound: float) -> MethodRuns:
    """Return the rows and curves of the plans of a portfolio."""
    curves = tuple(
        tuple((p.samples, p.wall_seconds, finite(p.seconds)) for p in plan.curve) for plan in plans
    )
    return MethodRuns(tuple(rows(plans, bound)), curves, finite(bound) or 0.0)


def methods_text(plans: Sequence[Plan], bound: float) -> str:
    """Return the content of the file."""
    runs = method_runs(plans, bound)
    methods = [
        {**asdict(row), "curve": curve} for row, curve in zip(runs.table, runs.curves, strict=True)
    ]
    return json.dumps({"bound": runs.bound, "methods": methods}, allow_nan=False) + "\n"


def read_methods(path: str | Path) -> MethodRuns:
    """Read what `methods_text` wrote.

    Raises:
        PlanError: it cannot be read, or is something else.
    """
    try:
        document: Any = read_json(path)
        names = [f.name for f in fields(Row)]
        table = tuple(Row(*(each[name] for name in names)) for each in document["methods"])
        curves = tuple(
            tuple(_point(*point) for point in each["curve"]) for each in document["methods"]
        )
        return MethodRuns(table, curves, float(document["bound"]))
    except OSError as error:
        raise PlanError(f"{path}: cannot be read ({error.strerror})") from error
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(
            f"{path}: not what go-rl optimize --out writes ({type(error).__name__}: {error})"
        ) from error


def _point(samples: Any, seconds: Any, value: Any) -> Point:
    return int(samples), float(seconds), None if value is None else float(value)
