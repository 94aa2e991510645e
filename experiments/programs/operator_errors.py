"""Errors of predicted operators on GPUs, by kind: rows that the tables of GPUs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.page_text import grid_table
from go_rl.costs.operators.examples import OperatorInputs

SHARE_OF_PEAK, SHARE_OF_BANDWIDTH = 0.7, 0.7
"""Of the roofline."""


@dataclass(frozen=True)
class OperatorErrors:
    """Errors of one method on the operators of one kind, in percent."""

    method: str
    case: str
    """GPU that was left out, what was timed, or element type."""
    operators: str
    rows: int
    mean: float
    """Mean of |predicted / measured - 1|."""
    median: float
    bias: float
    """Median of ln(predicted / measured)."""
    coverage: float
    """Rows within the 90 % interval; nan: the method has none."""
    width: float
    """Median of the upper over the lower bound."""


def errors_by_kind(
    method: str,
    case: str,
    predicted: np.ndarray,
    measured: np.ndarray,
    kinds: Iterable[tuple[str, np.ndarray]],
    inside: np.ndarray | None = None,
    width: np.ndarray | None = None,
) -> list[OperatorErrors]:
    """Return the errors of each kind that has rows.

    Args:
        method: name in the tables.
        case: see `OperatorErrors`.
        predicted: [R] seconds.
        measured: [R] seconds.
        kinds: names, and [R] which rows are of each.
        inside: [R] whether a row lies within the interval.
        width: [R] upper over lower bound.
    """
    ratio, nothing = predicted / measured, np.full(len(measured), np.nan)
    covered = nothing if inside is None else inside
    wide = nothing if width is None else width
    return [
        OperatorErrors(
            method, case, kind, int(some.sum()),
            mean=100 * float(np.abs(ratio[some] - 1).mean()),
            median=100 * float(np.median(np.abs(ratio[some] - 1))),
            bias=100 * float(np.median(np.log(ratio[some]))),
            coverage=100 * float(covered[some].mean()), width=float(np.median(wide[some])),
        )
        for kind, some in kinds
        if some.any()
    ]  # fmt: skip


def errors_table(
    corner: str, rows: Sequence[OperatorErrors], told: Callable[[OperatorErrors], str]
) -> str:
    """Return a table of what is told of each method's errors, a line a kind of operators."""
    value = {(row.operators, row.method): row for row in rows}
    columns: dict[str, Callable[[str], str]] = {
        method: lambda kind, method=method: told(value[kind, method])
        for method in dict.fromkeys(row.method for row in rows)
    }
    kinds = {row.operators: row.rows for row in rows}
    return grid_table(corner, kinds.keys(), {"rows": lambda kind: f"{kinds[kind]:,}", **columns})


def roofline(inputs: OperatorInputs) -> np.ndarray:
    """Return [R] seconds at a share of the peak of the element type or of the bandwidth, whichever
    takes longer."""
    width = 1.0 if inputs.types is None else inputs.types.width
    busy = inputs.rows.flops() / (SHARE_OF_PEAK * inputs.product_rate())
    num_bytes = inputs.rows.least_bytes() * width
    moved = num_bytes / (SHARE_OF_BANDWIDTH * inputs.fields("memory_bandwidth"))
    return np.maximum(busy, moved)
