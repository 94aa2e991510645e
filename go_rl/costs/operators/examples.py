"""Operators with their devices, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int

from go_rl.costs.devices import DataSheet
from go_rl.costs.operators.architectures import (
    AMPERE,
    WITH_WINOGRAD,
    generation_of,
    power_ratio,
)
from go_rl.costs.operators.product_model import WINOGRAD, ProductInputs
from go_rl.costs.operators.stream_model import StreamInputs
from go_rl.costs.operators.tables import PRODUCTS, STREAMS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import CONV_KERNEL, CONV_STRIDE, NORMS
from go_rl.costs.operators.type_rates import ALIGNED, RAGGED_RATE, TypeRates, narrowing

STREAM_GROUP = "streams"
GROUPS = (*PRODUCTS, STREAM_GROUP)
"""Operators that share a model."""
ERROR_GROUPS = (*PRODUCTS, "element-wise", *NORMS)
"""Operators whose errors are stated, and intervals calibrated, together."""


CONV_SLACK = 1.1
"""Convolutions of some GPUs run on tensor cores: they may exceed Winograd's savings so far."""


@dataclass(frozen=True, eq=False)
class OperatorInputs:
    """``R`` operators, each on one of ``D`` devices."""

    rows: OperatorRows
    devices: tuple[DataSheet, ...]
    """[D] devices of the rows."""
    device: Int[np.ndarray, "R"]
    """[R] index of the device."""
    types: TypeRates | None = None
    """Rates and widths in other element types than float32; None: all are of float32."""

    def take(self, rows: np.ndarray) -> OperatorInputs:
        """Return some rows."""
        types = None if self.types is None else self.types.take(rows)
        return OperatorInputs(self.rows.take(rows), self.devices, self.device[rows], types)

    def as_learned(self) -> OperatorInputs:
        """Return the rows as they are priced: 1 × 1 convolutions on GPUs whose library has
        Winograd's, of which only 3 × 3 ones were measured, as the linear layers that they are."""
        rows = self.rows
        linear = (
            (rows.op == "conv") & (rows.sizes["kernel_size"] == 1) & (self.with_winograd() == 1)
        )
        if not linear.any():
            return self
        batch, height, columns, depth = rows.products()
        products: dict[str, np.ndarray] = {
            "batch": batch, "rows": height, "columns": columns, "depth": depth,
        }  # fmt: skip
        sizes = {
            name: np.where(linear, products.get(name, 0), each).astype(np.int64)
            for name, each in rows.sizes.items()
        }
        return replace(self, rows=OperatorRows(np.where(linear, "linear", rows.op), sizes))

    def fields(self, name: str) -> Float64[np.ndarray, "R"]:
        """Return [R] a number of the data sheet of each row's device."""
        of_device = np.array([float(getattr(sheet, name)) for sheet in self.devices])
        return of_device[self.device]

    def generations(self) -> Int[np.ndarray, "R"]:
        """Return [R] the generation of each row's library; unknown ones count as the latest."""
        found = [generation_of(sheet) for sheet in self.devices]
        of_device = np.array([AMPERE if each is None else each for each in found], np.int64)
        return of_device[self.device]

    def with_winograd(self) -> Int[np.ndarray, "R"]:
        """Return [R] 1 where the library of the row's GPU has Winograd's convolutions, else 0."""
        return np.isin(self.generations(), WITH_WINOGRAD).astype(np.int64)

    def product_inputs(self) -> ProductInputs:
        """Return what `product_model` reads; of `PRODUCTS` only."""
        width = self._width()
        return ProductInputs(
            *self.rows.products(),
            flops=self._product_rate(),
            bandwidth=self.fields("memory_bandwidth") / width,
            l2=self.fields("l2_bytes") / width,
            multiprocessors=self.fields("multiprocessors"),
            clock=self.fields("clock_hz"),
            power_ratio=np.array([power_ratio(sheet) for sheet in self.devices])[self.device],
            peak_share=self._peak_share(),
        )

    def _product_rate(self) -> Float64[np.ndarray, "R"]:
        """[R] FLOP/s of products in the element types."""
        flops = self.fields("matrix_flops")
        if self.types is None:
            return flops
        rate = self.types.rate * np.where(self._is_ragged(), RAGGED_RATE, 1.0)
        return np.where(rate > 0, rate, flops)

    def _is_ragged(self) -> Bool[np.ndarray, "R"]:
        """[R] whether a product of matrices has rows that tensor cores cannot read as they are."""
        _, _, columns, depth = self.rows.products()
        return self.rows.is_any(("bmm", "linear")) & ((columns % ALIGNED + depth % ALIGNED) > 0)

    def roofline_ratio(self) -> Float64[np.ndarray, "R"]:
        """Return [R] what a roofline takes in the element types over what it takes in float32."""
        streams = ~self.rows.is_any(PRODUCTS)
        flops, moved = self.rows.flops(), self.rows.least_bytes() / self.fields("memory_bandwidth")
        before = np.where(streams, 0.0, flops / self.fields("matrix_flops"))
        after = np.where(streams, 0.0, flops / self._product_rate())
        return np.maximum(after, moved * self._width()) / np.maximum(before, moved)

    def _width(self) -> Float64[np.ndarray, "R"] | float:
        """[R] width of an element over that of float32, as far as the operator gains by it."""
        if self.types is None:
            return 1.0
        return self.types.width ** narrowing(self.rows)

    def _peak_share(self) -> Float64[np.ndarray, "R"]:
        """Winograd's convolutions do with fewer multiplications, if the library has them and kernel
        and stride are those for which it does."""
        size = self.rows.sizes
        small = (size["kernel_size"] == CONV_KERNEL) & (size["stride"] == CONV_STRIDE)
        small &= self.with_winograd() == 1
        saved = np.where(small, WINOGRAD, 1.0)
        return np.where(self.rows.op == "conv", saved * CONV_SLACK, 1.0)

    def stream_inputs(self) -> StreamInputs:
        """Return what `stream_model` reads; of `STREAMS` only."""
        return StreamInputs(
            op=np.searchsorted(np.array(STREAMS), self.rows.op),
            bytes=self.rows.streamed_bytes() * self._width(),
            rows=self.rows.sizes["batch"].astype(np.float64),
            length=self.rows.sizes["width"].astype(np.float64),
            bandwidth=self.fields("memory_bandwidth"),
            l2=self.fields("l2_bytes"),
            multiprocessors=self.fields("multiprocessors"),
            clock=self.fields("clock_hz"),
            vector_flops=self.fields("vector_flops"),
        )

    def in_group(self, group: str) -> np.ndarray:
        """Return the rows of one of `GROUPS`."""
        return np.flatnonzero(self.rows.is_any(STREAMS if group == STREAM_GROUP else (group,)))


def error_groups(rows: OperatorRows) -> np.ndarray:
    """Return [R] the index in `ERROR_GROUPS` of each operator."""
    named = np.where(rows.is_any(ERROR_GROUPS), rows.op, "element-wise")
    return np.array([ERROR_GROUPS.index(name) for name in named], np.int64)


@dataclass(frozen=True, eq=False)
class OperatorExamples:
    """``R`` measured operators."""

    inputs: OperatorInputs
    seconds: Float64[np.ndarray, "R"]
    tile: Int[np.ndarray, "R"]
    """[R] index in `go_rl.costs.operators.product_model.TILES` of the tile that the library
    chose; `UNKNOWN_TILE`: it is not known, or there is none."""
    in_graph: Float64[np.ndarray, "R"]
    """[R] seconds of one call among many of one CUDA graph, which no host holds up; nan: not
    measured."""

    def take(self, rows: np.ndarray) -> OperatorExamples:
        """Return some rows."""
        return OperatorExamples(
            self.inputs.take(rows), self.seconds[rows], self.tile[rows], self.in_graph[rows]
        )
