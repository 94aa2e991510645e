"""Front end of TenSet: labels and schedule primitives from record files.

A file has one JSON object a line, of Ansor's auto-scheduler: ``{"i": [[workload key, target, …],
[[], steps]], "r": [costs, error, seconds of all, time stamp], "v": version}``. Records hold no loop
nest: nests come from accompanying feature files only (`go_rl.costs.programs.nests.cdmpp`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core.files.paths import check_readable
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.programs.nests.errors import NestError

PRIMITIVES = (
    "AN", "CA", "CHR", "CHW", "CI", "CP", "CR", "FFSP", "FSP", "FU", "PR", "RE", "RF", "SA", "SP",
)  # fmt: skip
"""Ansor's names of the steps of a schedule: annotation, compute-at, cache read and write, inlining,
pragma, compute-root, splits that follow others, fusion, reordering, factored reduction, storage
alignment, split."""
NO_ERROR = 0


@dataclass(frozen=True)
class Primitive:
    """One step of a schedule."""

    name: str
    """One of `PRIMITIVES`."""
    arguments: tuple[Any, ...]
    """Numbers, texts and lists, as the record has them."""


@dataclass(frozen=True)
class TensetRecord:
    """One measured program."""

    workload: str
    """Ansor's key of the task: JSON of a hash or name and sizes."""
    target: str
    seconds: float | None
    """Mean of the costs; None: the program failed."""
    spread: float
    """Standard deviation of the costs, relative to their mean."""
    primitives: tuple[Primitive, ...]


def tenset_records(path: Path) -> Iterator[TensetRecord]:
    """Yield the records of a file, line by line.

    Raises:
        NestError: it cannot be read, or a line is no record; the message names it.
    """
    try:
        check_readable(path)
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _record(line, f"{path}, line {number}")
    except OSError as error:
        raise NestError(f"{path}: {error.strerror or error}") from error


def tenset_labels(records: Sequence[TensetRecord]) -> np.ndarray:
    """Return [R] best seconds of the task divided by each record's seconds, TenSet's label: 1 is
    best; 0 where a program failed."""
    best: dict[tuple[str, str], float] = {}
    for each in records:
        if each.seconds is not None:
            key = each.workload, each.target
            best[key] = min(best.get(key, each.seconds), each.seconds)
    return np.array(
        [best[r.workload, r.target] / r.seconds if r.seconds else 0.0 for r in records], np.float64
    )


def _record(line: bytes, where: str) -> TensetRecord:
    try:
        document = parse_json(line)
        (task, (_, steps)), (costs, error, *_) = document["i"], document["r"]
        primitives = tuple(_primitive(step, where) for step in steps)
        taken = np.array(costs, np.float64)
        ran = error == NO_ERROR and taken.size and bool((taken > 0).all())
        mean = float(taken.mean()) if ran else None
        spread = float(taken.std()) / mean if mean else 0.0
        return TensetRecord(str(task[0]), str(task[1]), mean, spread, primitives)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise NestError(f"{where}: not a record of TenSet ({error})") from error


def _primitive(step: Any, where: str) -> Primitive:
    if not isinstance(step, list) or not step or step[0] not in PRIMITIVES:
        raise NestError(f"{where}: unknown step {step!r}; known are {', '.join(PRIMITIVES)}")
    return Primitive(step[0], tuple(step[1:]))
