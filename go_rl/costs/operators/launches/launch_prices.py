"""Prices of a network's launches on a GPU of which only the data sheet is known."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int8

from go_rl.core import ElementType
from go_rl.core.hardware.rates import rates_of, replaced_types
from go_rl.costs.devices import DataSheet
from go_rl.costs.operators.examples import OperatorInputs, error_groups
from go_rl.costs.operators.launches import Launches
from go_rl.costs.operators.predictor import Interval
from go_rl.costs.operators.type_rates import MEASURED, in_other_types, type_rates

STREAMED_SHARE = 0.85
"""Share of the bandwidth at which a fused chain moves its bytes."""
BETWEEN_GROUPS = 0.5
"""Correlation that is assumed between the errors of, say, products and softmax on one device; of
operators of one group it is taken to be 1."""


@runtime_checkable
class PredictsOperators(Protocol):
    """Predictor of single operators, such as `OperatorPredictor`."""

    def interval(self, inputs: OperatorInputs) -> Interval:
        """Return seconds, the interval, and what is unlike anything measured."""
        ...


def launch_prices(launches: Launches, sheet: DataSheet, predictor: PredictsOperators) -> Interval:
    """Return the prices of L launches; equal ones are predicted once."""
    rows, operator = launches.distinct
    pairs = np.stack([operator, launches.element_types])
    (operators, types), which = np.unique(pairs, axis=1, return_inverse=True)
    rows, which = rows.take(operators), which.ravel()
    rates = type_rates(types.astype(np.int8), dict(rates_of(sheet.name)))
    weights = float(launches.graph.weight_bytes.sum())
    inputs = OperatorInputs(
        rows, (sheet,), np.zeros_like(operators), rates, reads_weights=weights > sheet.l2_bytes
    )
    found = predictor.interval(inputs)
    extra = launches.extra_bytes / (STREAMED_SHARE * sheet.memory_bandwidth)
    return Interval(
        found.seconds[which] + extra,
        found.low[which] + extra,
        found.high[which] + extra,
        found.unlike[which] | launches.unlike,
        found.host[which],
        found.start[which],
        found.busy[which] + extra,
    )


def scaled_types(element_types: Int8[np.ndarray, "L"], sheet: DataSheet) -> tuple[str, ...]:
    """Return a note on launches in other types than float32."""
    other = in_other_types(element_types)
    types = [ElementType(each) for each in np.unique(element_types[other]).tolist()]
    if not types:
        return ()
    replaced = replaced_types(types, dict(rates_of(sheet.name)))
    measured = [each.label for each in types if each in MEASURED]
    others = [each.label for each in types if each not in MEASURED]
    return (
        *([f"operators in {', '.join(measured)} were measured on an H200 alone; their times on "
           "other GPUs follow from the data sheet's rates"] * bool(measured)),
        *([f"operators in {', '.join(others)} were not measured: their times follow from the data "
           "sheet's rates and the width of an element"] * bool(others)),
        *([f"{sheet.name} states no rate of {replaced}"] * bool(replaced)),
    )  # fmt: skip


def total_bounds(launches: Launches, prices: Interval, total: float) -> tuple[float, float]:
    """Return bounds of a 90 % interval of the seconds of all launches.

    They are as far from ``total``, in proportion, as those of the sum of the launches are from it.

    A device that is faster than predicted at one product is so at all: errors of a group of
    operators add up, those of different groups partly cancel (`BETWEEN_GROUPS`).
    """
    kind = error_groups(launches.rows)
    bounds = []
    for sides in (prices.seconds - prices.low, prices.high - prices.seconds):
        each = np.bincount(kind, sides)
        joint = BETWEEN_GROUPS * each.sum() ** 2 + (1 - BETWEEN_GROUPS) * (each**2).sum()
        bounds.append(float(np.sqrt(joint)))
    alone = float(prices.seconds.sum())
    return total * max(0.0, 1 - bounds[0] / alone), total * (1 + bounds[1] / alone)
