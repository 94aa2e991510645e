"""`Reach`: the sizes and devices that were learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.costs.devices import DataSheet
from go_rl.costs.operators.architectures import generation_of
from go_rl.costs.operators.examples import OperatorInputs
from go_rl.costs.operators.tables.operator_rows import CONV_KERNEL, CONV_STRIDE, sizes_of

COMPARED = ("memory_bandwidth", "vector_flops", "multiprocessors", "l2_bytes")
BEYOND_SIZES, BEYOND_DEVICES = 2.0, 1.5
"""Factors outside the learned range up to which sizes and data sheets still count as alike."""
BEYOND, OTHER_VENDOR = 1.3, 1.6
"""Factors of intervals where the data sheet lies outside, and where the architecture is unknown or
not NVIDIA's."""
FIXED = {"kernel_size": CONV_KERNEL, "stride": CONV_STRIDE, "padding": 1}
"""Sizes of convolutions of which one value was measured where the library has Winograd's."""


@dataclass(frozen=True)
class Reach:
    """Ranges of what was learned."""

    sizes: Mapping[str, Mapping[str, Sequence[float]]]
    """Least and largest of each size of each operator."""
    devices: Mapping[str, Sequence[float]]
    """Least and largest of numbers of the data sheets."""

    def outside(self, inputs: OperatorInputs) -> Bool[np.ndarray, "R"]:
        """Return [R] whether sizes or device lie outside."""
        found = np.array([self.is_strange(sheet) for sheet in inputs.devices], bool)[inputs.device]
        for op in np.unique(inputs.rows.op):
            rows = np.flatnonzero(inputs.rows.op == op)
            size = {name: each[rows] for name, each in inputs.rows.sizes.items()}
            found[rows] |= self._beyond(str(op), size)
            if op == "conv":
                other = [size[name] != value for name, value in FIXED.items()]
                found[rows] |= np.any(other, axis=0) & (inputs.with_winograd()[rows] == 1)
        return found

    def wider(self, inputs: OperatorInputs) -> Float64[np.ndarray, "R"]:
        """Return [R] factors by which intervals are wider for the device's sake (assumed)."""
        of_device = [self._factor(sheet) for sheet in inputs.devices]
        return np.array(of_device, np.float64)[inputs.device]

    def _factor(self, sheet: DataSheet) -> float:
        if generation_of(sheet) is None:
            return OTHER_VENDOR
        return BEYOND if self.is_strange(sheet) else 1.0

    def _beyond(self, op: str, size: Mapping[str, np.ndarray]) -> np.ndarray:
        count = len(size["batch"])
        if op not in self.sizes:
            return np.ones(count, bool)
        found = np.zeros(count, bool)
        for name in sizes_of(op):
            least, most = self.sizes[op][name]
            value = size[name]
            if op == "linear" and name in ("batch", "rows"):
                least, most = self.sizes[op]["rows"]
                value = size["batch"] * size["rows"]
            found |= (value > most * BEYOND_SIZES) | (value * BEYOND_SIZES < least)
        return found

    def is_strange(self, sheet: DataSheet) -> bool:
        """Whether a data sheet lies outside, or its architecture is unknown or not NVIDIA's."""
        if generation_of(sheet) is None:
            return True
        for name, (least, most) in self.devices.items():
            value = getattr(sheet, name)
            if value > most * BEYOND_DEVICES or value * BEYOND_DEVICES < least:
                return True
        return False


def reach_of(inputs: OperatorInputs, sheets: Sequence[DataSheet]) -> Reach:
    """Return the reach of examples on GPUs with these data sheets."""
    sizes: dict[str, dict[str, list[float]]] = {}
    for op in np.unique(inputs.rows.op):
        rows = inputs.rows.op == op
        sizes[str(op)] = {}
        for name in sizes_of(str(op)):
            value = inputs.rows.sizes[name][rows]
            sizes[str(op)][name] = [float(value.min()), float(value.max())]
    numbers = {name: [float(getattr(sheet, name)) for sheet in sheets] for name in COMPARED}
    return Reach(sizes, {name: [min(each), max(each)] for name, each in numbers.items()})
