"""Operators with their devices, and what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from go_rl.costs.devices import DataSheet
from go_rl.costs.operators.architectures import AMPERE, WITH_WINOGRAD, generation_of, power_ratio
from go_rl.costs.operators.attention_model import AttentionInputs
from go_rl.costs.operators.product_model import WINOGRAD, ProductInputs
from go_rl.costs.operators.stream_model import StreamInputs
from go_rl.costs.operators.tables import PRODUCTS, STREAMS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import (
    ATTENTION,
    ATTENTION_SIZES,
    CONV_KERNEL,
    CONV_STRIDE,
    CONVOLUTIONS,
    MOVES,
    NORMS,
    STREAMED,
)
from go_rl.costs.operators.type_rates import ROW_BYTES, Precision, TypeRates

STREAM_GROUP = "streams"


class OperatorGroup(NamedTuple):
    """Operators that share a model and its parameters."""

    ops: tuple[str, ...]
    precision: Precision
    host: str
    """Name of the group of whose operators the host needs as long for a launch; its own of those
    that tell what a host needs."""

    @property
    def is_stream(self) -> bool:
        """Whether they are priced by `go_rl.costs.operators.stream_model`."""
        return self.ops[0] in STREAMED

    @property
    def is_attention(self) -> bool:
        """Whether they are priced by `go_rl.costs.operators.attention_model`."""
        return self.ops == (ATTENTION,)


NEUSIGHT = ("bmm", "linear", "conv", STREAM_GROUP)
"""Groups of which NeuSight's tables have several GPUs."""
_KINDS = {**{name: (name,) for name in (*PRODUCTS, ATTENTION)}, STREAM_GROUP: STREAMS,
          "moves": MOVES}  # fmt: skip
_HOSTS = {**{name: name for name in NEUSIGHT}, "grouped": "conv", ATTENTION: "bmm",
          "moves": STREAM_GROUP}  # fmt: skip
GROUPS: Mapping[str, OperatorGroup] = {
    **{name: OperatorGroup(ops, Precision.FULL, _HOSTS[name]) for name, ops in _KINDS.items()},
    **{f"{name} tf32": OperatorGroup((name,), Precision.TF32, _HOSTS[name]) for name in PRODUCTS},
    **{
        f"{name} half": OperatorGroup(ops, Precision.HALF, _HOSTS[name])
        for name, ops in _KINDS.items()
    },
}
"""By name, that of float32 first."""
ERROR_GROUPS = (*PRODUCTS, ATTENTION, "element-wise", *NORMS)
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
    reads_weights: bool = False
    """Whether the weights of layers come from memory, as in a network with more of them than a
    cache holds; measured one by one, operators find them where the call before left them."""

    def take(self, rows: np.ndarray) -> OperatorInputs:
        """Return some rows."""
        types = None if self.types is None else self.types.take(rows)
        return replace(self, rows=self.rows.take(rows), device=self.device[rows], types=types)

    def as_learned(self) -> OperatorInputs:
        """Return the rows as they are priced. 1 × 1 convolutions are products: on tensor cores
        batched ones of images as they lie in memory, else, on GPUs whose library has Winograd's
        convolutions, of which only 3 × 3 ones were measured, linear layers."""
        rows, size = self.rows, self.rows.sizes
        small = (rows.op == "conv") & (size["kernel_size"] == 1)
        on_tensor_cores = self.precision() > Precision.FULL
        batched = small & on_tensor_cores & (size["stride"] == 1) & (size["padding"] == 0)
        linear = small & ~on_tensor_cores & (self.with_winograd() == 1)
        if not (batched | linear).any():
            return self
        one, height, width, depth = rows.products()
        products: dict[str, tuple[np.ndarray, np.ndarray]] = {
            "batch": (one, size["batch"]), "rows": (height, width), "depth": (depth, depth),
            "columns": (width, size["input_size"] ** 2),
        }  # fmt: skip
        zero = np.zeros(len(rows))
        sizes = {}
        for name, each in size.items():
            as_linear, as_batched = products.get(name, (zero, zero))
            found = np.select([linear, batched], [as_linear, as_batched], each)
            sizes[name] = found.astype(np.int64)
        op = np.select([linear, batched], ["linear", "bmm"], rows.op)
        return replace(self, rows=OperatorRows(op, sizes))

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
        """Return what `go_rl.costs.operators.product_model` reads; of `PRODUCTS` only."""
        return ProductInputs(
            *self.rows.products(),
            **self._device_numbers(),
            power_ratio=np.array([power_ratio(sheet) for sheet in self.devices])[self.device],
            peak_share=self._peak_share(),
            ragged=self._ragged(),
            weights=self._weights(),
            converted=self._converted(),
        )

    def attention_inputs(self) -> AttentionInputs:
        """Return what `go_rl.costs.operators.attention_model` reads."""
        return AttentionInputs(
            *(self.rows.sizes[name].astype(np.float64) for name in ATTENTION_SIZES),
            **self._device_numbers(),
        )

    def _device_numbers(self) -> dict[str, Float64[np.ndarray, "R"]]:
        """[R] numbers of the devices that every model of products reads, memory and cache as if
        elements were of float32."""
        width = self._width()
        return {
            "flops": self.product_rate(),
            "bandwidth": self.fields("memory_bandwidth") / width,
            "l2": self.fields("l2_bytes") / width,
            "multiprocessors": self.fields("multiprocessors"),
            "clock": self.fields("clock_hz"),
        }

    def precision(self) -> Int[np.ndarray, "R"]:
        """Return [R] `Precision` by which each row is priced. Products in a type of which the
        device states no rate are those of float32; TF32 is of products alone."""
        if self.types is None:
            return np.zeros(len(self.rows), np.int64)
        found = self.types.precision.astype(np.int64)
        product = self.rows.is_any(PRODUCTS)
        full = (product | (self.rows.op == ATTENTION)) & (self.types.rate <= 0)
        full |= ~product & (found == Precision.TF32)
        return np.where(full, int(Precision.FULL), found)

    def product_rate(self) -> Float64[np.ndarray, "R"]:
        """Return [R] FLOP/s of products in the element types."""
        flops = self.fields("matrix_flops")
        if self.types is None:
            return flops
        return np.where(self.types.rate > 0, self.types.rate, flops)

    def _weights(self) -> Float64[np.ndarray, "R"]:
        """[R] elements of weights that come from memory, however small the operator."""
        if not self.reads_weights:
            return np.zeros(len(self.rows))
        batch, _, columns, depth = self.rows.products()
        has_weights = self.rows.is_any(("linear", *CONVOLUTIONS))
        return np.where(has_weights, batch * columns * depth, 0.0)

    def _converted(self) -> Float64[np.ndarray, "R"]:
        """[R] elements of images of which tensor cores need another layout."""
        if self.types is None:
            return np.zeros(len(self.rows))
        size = self.rows.float_sizes
        read = size["input_channel"] * size["input_size"] ** 2
        made = size["output_channel"] * self.rows.conv_outputs().astype(np.float64) ** 2
        is_image = self.rows.is_any(CONVOLUTIONS) & (self.precision() > Precision.FULL)
        return np.where(is_image, size["batch"] * (read + made), 0.0)

    def _ragged(self) -> Int[np.ndarray, "R"]:
        """[R] 0: all rows of operands and results are such as tensor cores read, or the operator
        does not use them; 1: they are not; 2: they have an odd number of elements."""
        if self.types is None:
            return np.zeros(len(self.rows), np.int64)
        _, _, columns, depth = self.rows.products()
        convolved = self.rows.is_any(CONVOLUTIONS)
        depth = np.where(convolved, self.rows.sizes["input_channel"], depth)
        step = ROW_BYTES / (4 * self._width())
        found = np.where((columns % step + depth % step) > 0, 1, 0)
        found = np.where((columns % 2 + depth % 2) > 0, 2, found)
        return np.where(self.precision() > Precision.FULL, found, 0)

    def _width(self) -> Float64[np.ndarray, "R"] | float:
        """[R] width of an element over that of float32."""
        return 1.0 if self.types is None else self.types.width

    def _peak_share(self) -> Float64[np.ndarray, "R"]:
        """Winograd's convolutions do with fewer multiplications, if the library has them and kernel
        and stride are those for which it does."""
        size = self.rows.sizes
        small = (size["kernel_size"] == CONV_KERNEL) & (size["stride"] == CONV_STRIDE)
        small &= (self.with_winograd() == 1) & (self.precision() == Precision.FULL)
        saved = np.where(small, WINOGRAD, 1.0)
        return np.where(self.rows.op == "conv", saved * CONV_SLACK, 1.0)

    def stream_inputs(self) -> StreamInputs:
        """Return what `go_rl.costs.operators.stream_model` reads; of `STREAMED` only."""
        rows, length = self.rows.stream_rows()
        return StreamInputs(
            op=np.array([STREAMED.index(op) for op in self.rows.op.tolist()], np.int64),
            bytes=self.rows.streamed_bytes() * self._width(),
            rows=rows,
            length=length,
            window=self.rows.window_elements(),
            ragged=(length * 4 * self._width() % ROW_BYTES > 0).astype(np.int64),
            bandwidth=self.fields("memory_bandwidth"),
            l2=self.fields("l2_bytes"),
            multiprocessors=self.fields("multiprocessors"),
            clock=self.fields("clock_hz"),
            vector_flops=self.fields("vector_flops"),
        )

    def present_groups(self) -> dict[str, np.ndarray]:
        """Return the rows of each of `GROUPS` that has some."""
        ops, op = np.unique(self.rows.op, return_inverse=True)
        precision = self.precision()
        found: dict[str, list[np.ndarray]] = {}
        for name, group in GROUPS.items():
            for number in np.flatnonzero([each in group.ops for each in ops.tolist()]):
                rows = np.flatnonzero((op == number) & (precision == group.precision))
                if len(rows):
                    found.setdefault(name, []).append(rows)
        return {name: np.sort(np.concatenate(each)) for name, each in found.items()}

    def in_group(self, group: str) -> np.ndarray:
        """Return the rows of one of `GROUPS`."""
        own = GROUPS[group]
        return np.flatnonzero(self.rows.is_any(own.ops) & (self.precision() == own.precision))


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
