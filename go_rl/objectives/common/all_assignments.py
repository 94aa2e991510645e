"""Trying all assignments of a small problem: batches, their best plan, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float64, Int16

from go_rl.core import Evaluation, Progress, Status
from go_rl.objectives.common.workspace import Workspace

MOST_ASSIGNMENTS = 250_000
"""Assignments of devices beyond which a problem is not small."""
BATCH = 2048
"""Assignments priced at a time."""


def assignments(allowed: Bool[np.ndarray, "B D"]) -> Iterator[Int16[np.ndarray, "C B"]]:
    """Yield all assignments of ``B`` blocks to allowed devices, in batches."""
    options = [np.flatnonzero(row) for row in allowed]
    shape = tuple(len(row) for row in options)
    count = int(np.prod(shape))
    for first in range(0, count, BATCH):
        picks = np.unravel_index(np.arange(first, min(first + BATCH, count)), shape)
        chosen = [row[pick] for row, pick in zip(options, picks, strict=True)]
        yield np.stack(chosen, axis=1).astype(np.int16)


def best_of_batch(progress: Progress, seconds: Float64[np.ndarray, "C"]) -> int | None:
    """Count the legal plans of a batch; return the row of the best, None where none is legal."""
    rows = np.flatnonzero(np.isfinite(seconds))
    rows = rows[: int(max(1, min(len(rows), progress.remaining_samples)))]
    if not rows.size:
        return None
    best = int(rows[np.argmin(seconds[rows])])
    progress.record(float(seconds[best]), len(rows))
    return best


def gave_up(workspace: Workspace, tried: int) -> Evaluation:
    """Return the failure of a search that did not try everything."""
    detail = f"none of the {tried} assignments tried keeps the rules and fits the memory"
    return workspace.failed(Status.GAVE_UP, detail)


def proved(workspace: Workspace, tried: int) -> Evaluation:
    """Return the proof that there is no plan."""
    detail = f"none of all {tried} assignments keeps the rules and fits the memory"
    return workspace.failed(Status.INFEASIBLE, detail)
