"""Repeated numbers in one cell: means with ranges, errors and intervals over families."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.page_text import NOTHING, shown
from experiments.rows import grouped
from go_rl.compare.controls.control_table import bootstrap


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of the finite values; NaN of none."""
    logs = [np.log(value) for value in values if np.isfinite(value)]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def mean_cell(values: Sequence[float], digits: int = 2) -> str:
    """Return the mean of values with so many decimals; a dash of none."""
    return shown(float(np.mean(values)), f".{digits}f") if len(values) else NOTHING


def with_range(
    values: Sequence[float] | np.ndarray,
    form: str | Callable[[float], str] = ".2f",
    middle: Callable[[Any], Any] = np.mean,
    to: str = " to ",
) -> str:
    """Return the middle of values, and in brackets the least and the greatest; a dash of none.

    Args:
        values: such as one of each seed.
        form: format of the middle, or what writes a number.
        middle: mean, median or geometric mean.
        to: between the two.
    """
    if not len(values):
        return NOTHING
    told = form if callable(form) else lambda value: shown(value, form)
    return f"{told(float(middle(values)))} ({told(min(values))}{to}{told(max(values))})"


def with_error(values: Sequence[float], digits: int = 1) -> str:
    """Return the mean and, of two values or more, its standard error; a dash of none."""
    if len(values) < 2:
        return mean_cell(values, digits)
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return f"{mean_cell(values, digits)} ± {error:.{digits}f}"


def family_means(logs: Iterable[tuple[str, float]]) -> np.ndarray:
    """Return [F] the mean of each family's logarithms, given with their families."""
    return np.array(list(_means(logs).values()))


def mean_logs(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the mean logarithm of each problem's finite values, such as those of its seeds."""
    return _means((problem, np.log(value)) for problem, value in values if np.isfinite(value))


def _means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    found = grouped(values, lambda each: each[0])
    return {key: float(np.mean([value for _, value in own])) for key, own in found.items()}


def ratio_of(means: np.ndarray) -> tuple[float, float, float]:
    """Return the geometric mean over families, and the ends of its 95 % interval (`bootstrap`)."""
    low, high = np.exp(bootstrap(means))
    return float(np.exp(means.mean())), float(low), float(high)


def lead(
    rival: Mapping[str, float], ours: Mapping[str, float], family: Mapping[str, str]
) -> tuple[float, float, float]:
    """Return the rival's seconds over ours, `ratio_of` with families alike; NaN without a problem
    that both have.

    Args:
        rival: logarithms by problem.
        ours: the same.
        family: of each problem.
    """
    both = [(family[p], log - ours[p]) for p, log in rival.items() if p in ours]
    return ratio_of(family_means(both)) if both else (np.nan, np.nan, np.nan)


def lead_cell(ratio: tuple[float, float, float]) -> str:
    """Return a ratio and its interval as a cell; an empty one for NaN."""
    return "" if np.isnan(ratio[0]) else "{:.3f} ({:.3f} to {:.3f})".format(*ratio)
