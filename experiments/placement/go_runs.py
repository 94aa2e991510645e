"""The log of finished runs: one JSON line each, so that an experiment continues where it
stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R")


def read_runs(kind: type[R], path: Path) -> list[R]:
    """Return the finished runs; none where there is no file."""
    if not path.exists():
        return []
    return [kind(**json.loads(line)) for line in path.read_text().splitlines()]


def keep_run(path: Path, run: Any) -> None:
    """Print a run, without its curve, and append it."""
    print({k: v for k, v in asdict(run).items() if k != "curve"}, flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")
