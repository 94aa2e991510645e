"""90 % intervals of GPUs that were not measured, learned by leaving out each measured one.

Host and GPU err apart. A host may be somewhat faster or much slower than the usual one
(`FASTER_HOST`, `SLOWER_HOST`: assumed, for six hosts tell little); it scales the floor and the
start of an operator. What the GPU takes beyond the start is uncertain by a factor that is learned:
on each left-out GPU the half-width that covers nine rows in ten, its mean square over GPUs, drawn
from few GPUs towards that of like operators (empirical Bayes), times a scale of products and one of
streams, such that nine rows in ten of GPUs are covered whose own errors set nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from go_rl.costs.operators.examples import ERROR_GROUPS
from go_rl.costs.operators.launches.launch_floor import (
    PRODUCT_SHARPNESS,
    STREAM_SHARPNESS,
    with_floor,
)
from go_rl.costs.operators.pricing import LogSeconds
from go_rl.costs.operators.tables import PRODUCTS
from go_rl.costs.operators.tables.operator_rows import ATTENTION

FASTER_HOST, SLOWER_HOST = 2.5, 1.9
"""Factors by which a host that nobody measured may be faster or slower than the usual one. Of those
met later an H200's was 1.9 (additions) to 2.5 times (layer norm) as fast, an H100's 1.3 times."""
STATED_HOST = 1.35
"""The same, either way, of a host that the user states by one operator."""
LENGTHS = np.array([1.5, 2.5])
"""Logarithms of the GPU's part over the floor that part short, middle and long operators."""
REGIMES = len(LENGTHS) + 1
CELLS = len(ERROR_GROUPS) * REGIMES
HEAVY = (*PRODUCTS, ATTENTION)
EXPONENTS = np.where(np.isin(ERROR_GROUPS, HEAVY), PRODUCT_SHARPNESS, STREAM_SHARPNESS)
ROWS = 0.9
"""Rows of a GPU that its half-width covers."""
LIKE = 2.0
"""GPUs that count as much as those of like operators together."""
WANTED = 0.9
"""Mean coverage of GPUs left out."""


class Family(NamedTuple):
    """Groups of operators whose half-widths are scaled together."""

    groups: slice
    """Slice of `ERROR_GROUPS`."""
    most: float
    """Coverage of a GPU that counts, at most: streams are covered wholly where the host is the
    usual one, which must not pay for GPUs on which they are not."""


FAMILIES = (Family(slice(0, len(HEAVY)), 1.0), Family(slice(len(HEAVY), None), 0.95))
"""Products and attention come first in `ERROR_GROUPS`, then streams."""
HALF_WIDTHS = np.linspace(0.0, 2.5, 126)
SCALES = np.arange(0.7, 2.51, 0.05)
FEWEST = 20
"""Rows of a GPU that tell a half-width."""
UNKNOWN = 0.7
"""Half-width where nothing was learned."""
WIDEST = 1.5
"""Half-width of one GPU that counts, at most."""


@dataclass(frozen=True)
class Calibration:
    """Uncertainty of the GPU's part of an operator."""

    half_width: tuple[float, ...]
    """[CELLS] of `cells`, of the logarithm of seconds."""
    covered: Mapping[str, float] = field(default_factory=dict)
    """Mean coverage, by error group, of GPUs left out by what the errors of the others set; empty:
    it is not known."""


def cells(error_group: Int[np.ndarray, "R"], logs: LogSeconds) -> Int[np.ndarray, "R"]:
    """Return [R] cells of half-widths: operators of one group and regime.

    Args:
        error_group: [R] index in `ERROR_GROUPS`.
        logs: what was predicted.
    """
    return error_group * REGIMES + np.digitize(_gpu_part(logs) - logs.floor, LENGTHS)


def bounds(
    half_width: Float64[np.ndarray, "R"], error_group: Int[np.ndarray, "R"], logs: LogSeconds,
    stated: Bool[np.ndarray, "R"],
) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:  # fmt: skip
    """Return [R] logarithms of lower and upper bounds; the upper one is that of a stream which
    finds nothing in the cache.

    Args:
        half_width: [R] of the GPU's part.
        error_group: [R] index in `ERROR_GROUPS`.
        logs: what was predicted.
        stated: [R] whether the user states the host.
    """
    part, exponent = _gpu_part(logs), EXPONENTS[error_group]
    most = np.maximum(part, _gpu_part(logs._replace(body=logs.uncached)))
    faster = np.log(np.where(stated, STATED_HOST, FASTER_HOST))
    slower = np.log(np.where(stated, STATED_HOST, SLOWER_HOST))
    ends = []
    for gpu, host in ((part - half_width, -faster), (most + half_width, slower)):
        body = np.logaddexp(gpu, logs.start + host)
        ends.append(with_floor(body, logs.floor + host, exponent, np))
    return ends[0], ends[1]


def calibrate(
    truth: Float64[np.ndarray, "R"], logs: LogSeconds,
    error_group: Int[np.ndarray, "R"], device: Int[np.ndarray, "R"],
) -> Calibration:  # fmt: skip
    """Return half-widths.

    Args:
        truth: [R] logarithms of measured seconds.
        logs: what was predicted of each row's GPU by what was learned without it.
        error_group: [R] index in `ERROR_GROUPS`.
        device: [R] index of the GPU.
    """
    devices = np.unique(device)
    if len(devices) < 2:
        return Calibration((UNKNOWN,) * CELLS)
    needed, cell = _needed(truth, logs, error_group), cells(error_group, logs)
    own = np.stack([_quantiles(needed[device == d], cell[device == d]) for d in devices])
    others = [_pooled(np.delete(own, place, axis=0)) for place in range(len(devices))]
    ratio = np.concatenate([
        needed[device == d] / others[place][cell[device == d]] for place, d in enumerate(devices)
    ])  # fmt: skip
    group = np.concatenate([error_group[device == d] for d in devices])
    unit = group + len(ERROR_GROUPS) * np.repeat(devices, [(device == d).sum() for d in devices])
    scale = np.ones(len(ERROR_GROUPS))
    for family in FAMILIES:
        own_rows = np.isin(group, np.arange(len(ERROR_GROUPS))[family.groups])
        if own_rows.any():
            scale[family.groups] = _scale(ratio[own_rows], unit[own_rows], family.most)
    inside = ratio <= scale[group]
    covered = {
        name: _coverage(inside[group == number], unit[group == number])
        for number, name in enumerate(ERROR_GROUPS)
        if (group == number).any()
    }
    return Calibration(tuple((np.repeat(scale, REGIMES) * _pooled(own)).tolist()), covered)


def _scale(ratio: np.ndarray, unit: np.ndarray, most: float) -> float:
    """The least scale at which units are covered as is wanted."""
    return next((s for s in SCALES.tolist() if _coverage(ratio <= s, unit, most) >= WANTED),
                float(SCALES[-1]))  # fmt: skip


def _coverage(inside: np.ndarray, unit: np.ndarray, most: float = 1.0) -> float:
    """Mean over units of the share of rows inside, each counted up to ``most``."""
    return float(np.mean([min(most, inside[unit == each].mean()) for each in np.unique(unit)]))


def _gpu_part(logs: LogSeconds) -> Float64[np.ndarray, "R"]:
    """Logarithms of what the GPU takes beyond the start."""
    return np.log(np.maximum(np.exp(logs.body) - np.exp(logs.start), 1e-9))


def _needed(truth: np.ndarray, logs: LogSeconds, error_group: np.ndarray) -> np.ndarray:
    """[R] least half-widths that cover the rows."""
    found = np.full(len(truth), HALF_WIDTHS[-1])
    host = np.zeros(len(truth), bool)
    for width in HALF_WIDTHS[::-1]:
        low, high = bounds(np.full(len(truth), width), error_group, logs, host)
        found[(low <= truth) & (truth <= high)] = width
    return found


def _quantiles(needed: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """[groups, 1 + regimes] half-widths of one GPU: of all regimes, then of each; NaN where there
    are too few rows."""
    found = np.full((len(ERROR_GROUPS), 1 + REGIMES), np.nan)
    for group in range(len(ERROR_GROUPS)):
        for column in range(1 + REGIMES):
            inside = (
                cell // REGIMES == group if column == 0 else cell == group * REGIMES + column - 1
            )
            if inside.sum() >= FEWEST:
                found[group, column] = min(np.quantile(needed[inside], ROWS), WIDEST)
    return found


def _pooled(own: np.ndarray) -> Float64[np.ndarray, "CELLS"]:
    """[CELLS] half-widths from [GPUs, groups, 1 + regimes] those of GPUs: of a regime drawn towards
    that of its group, that towards its family's."""
    squares, counts = np.square(own), (~np.isnan(own)).sum(0)
    mean = np.nansum(squares, axis=0) / np.maximum(counts, 1)
    found = np.full((len(ERROR_GROUPS), REGIMES), np.square(UNKNOWN))
    for family in (each.groups for each in FAMILIES):
        known = counts[family, 0] > 0
        if known.any():
            group = _drawn(mean[family, 0], counts[family, 0], mean[family, 0][known].mean())
            found[family] = _drawn(mean[family, 1:], counts[family, 1:], group[:, None])
    return np.maximum(np.sqrt(found), HALF_WIDTHS[1]).ravel()


def _drawn(mean: np.ndarray, count: np.ndarray, towards: np.ndarray | float) -> np.ndarray:
    return (count * mean + LIKE * towards) / (count + LIKE)
