"""How much each measured GPU tells of another: inverse squares of distances between data sheets.

Shepard's interpolation. Besides the numbers, GPUs differ by the generation of their library's
kernels and by whether a product exceeds their power: small boards of much arithmetic for little
bandwidth run products at a third of their peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from jaxtyping import Float64

from go_rl.programs.devices import DataSheet

GENERATIONS = {"kepler": 0, "maxwell": 0, "pascal": 0, "volta": 1, "turing": 1, "ampere": 2,
               "ada": 2, "hopper": 2, "blackwell": 2}  # fmt: skip
"""Of the float32 products of NVIDIA's library: architectures with one number run the same."""
STRANGE = 1.0
"""Distance of generations if one is unknown or another vendor's."""
COMPARED = ("memory_bandwidth", "vector_flops", "multiprocessors", "l2_bytes")
NEAREST = 0.1
"""Added to all distances: an equal data sheet is not everything."""
ENOUGH_BANDWIDTH, LITTLE_BANDWIDTH = 500e9, 330e9
"""Bytes per second from which, and up to which, power bounds no or all products."""
LOW_INTENSITY, HIGH_INTENSITY = 18.0, 25.0
"""Peak FLOP per byte up to which, and from which, it does so."""


def bounded_by_power(sheet: DataSheet) -> float:
    """Return 0 to 1: how far power rather than arithmetic bounds large products."""
    intensity = log(sheet.vector_flops / sheet.memory_bandwidth / LOW_INTENSITY)
    narrow = log(ENOUGH_BANDWIDTH / sheet.memory_bandwidth)
    return float(
        np.clip(intensity / log(HIGH_INTENSITY / LOW_INTENSITY), 0, 1)
        * np.clip(narrow / log(ENOUGH_BANDWIDTH / LITTLE_BANDWIDTH), 0, 1)
    )


def weights_of(
    target: DataSheet, sources: Sequence[DataSheet], generation: float, power: float
) -> Float64[np.ndarray, "D"]:
    """Return [D] weights of sources for a target, which add up to 1.

    Args:
        target: the device to be predicted.
        sources: measured ones.
        generation: distance of one generation.
        power: distance between devices that power bounds and those that it does not.
    """
    apart = [
        NEAREST
        + generation * _generations_apart(target, source)
        + power * abs(bounded_by_power(target) - bounded_by_power(source))
        + _numbers_apart(target, source)
        for source in sources
    ]
    weights = np.array(apart) ** -2.0
    return weights / weights.sum()


def _generations_apart(one: DataSheet, other: DataSheet) -> float:
    left, right = (GENERATIONS.get(each.architecture or "") for each in (one, other))
    return STRANGE if left is None or right is None else float(abs(left - right))


def _numbers_apart(one: DataSheet, other: DataSheet) -> float:
    logs = [abs(log(getattr(one, name) / getattr(other, name))) for name in COMPARED]
    return sum(logs) / len(logs)
