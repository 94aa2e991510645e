"""`LearnedGpus`: kernels on GPUs of which only the data sheet is known, by `OperatorPredictor`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import Device, ElementType, HardwareError, OpGraph, OpKind
from go_rl.costs.devices import DataSheet
from go_rl.costs.models.analytical import DEFAULT, shipped_parameters
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.gpus.gpu_kernels import KEPT, KernelWork, gpu_kernels, streamed_rows
from go_rl.costs.models.gpus.gpu_sheets import sheet_of, unused_launch
from go_rl.costs.models.kernel_cache import check_shapes, with_streaming
from go_rl.costs.operators.examples import OperatorInputs
from go_rl.costs.operators.launches.launch_prices import STREAMED_SHARE
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.type_rates import type_rates

LEFT_OUT = (
    "operators of GPUs that were left out are predicted within 14 % on average, of the first of a "
    "new generation within 103 %"
)
"""Error where nothing but the data sheet is known (`experiments/results/left_out_gpus.md`)."""

MOST_STREAMS = 500_000
"""Sizes of streams on a GPU whose seconds stay in memory."""


@dataclass(frozen=True, eq=False)
class LearnedGpus:
    """`CostModel`: a kernel is its products, and the bytes that it streams beyond theirs; one
    without products is a stream of all its bytes. A kernel of views alone costs nothing.

    Products in other types than float32 are priced by the devices' rates (`type_rates`). The notes
    say so.
    """

    predictor: OperatorPredictor
    name: str = "learned:gpus"

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] predicted seconds.

        Raises:
            ProblemError: the graph's operators have no shapes.
            HardwareError: the device is no GPU of the table (`gpu_sheets.has_learned_gpus`).
        """
        check_shapes(self.name, kernels.graph)
        sheet = _sheet(device)
        asked, work = _Asked(kernels.graph, device, sheet), _work(kernels)
        learned = self._learned(asked, kernels.asked, work)
        return with_streaming(learned, kernels, device)

    def least_seconds(self, graph: OpGraph, device: Device) -> Float64[np.ndarray, "N"]:
        """Return [N] seconds that an operator adds to whatever kernel it is part of: its product;
        0 of operators that are neither a product nor a folded loop."""
        sheet = _sheet(device)
        return _priced_products(self.predictor, _Asked(graph, device, sheet)).seconds

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return notes: the cost model, what is known of the GPU, and how many operators are unlike
        what was measured or priced otherwise."""
        sheet, kind = _sheet(device), device.kind
        which, work = kernels.asked, _work(kernels)
        priced = work.launches[which]
        asked = _Asked(kernels.graph, device, sheet)
        unlike = self._unlike(asked, work)[which] & priced
        return (
            f"Operator times on {kind} are predicted from the data sheet of {sheet.device}, in "
            "float32 without TF32.",
            *self._unmeasured(sheet),
            *([f"launch_seconds of {kind} is not used: a launch takes what was measured; --cost "
               "analytical uses it."] * unused_launch(device)),
            *_scaled(kernels.graph, device),
            *([f"{unlike.sum():,} of {priced.sum():,} operators on {kind} are unlike what was "
               "measured; their times are guesses."] * bool(unlike.any())),
        )  # fmt: skip

    def _unmeasured(self, sheet: DataSheet) -> tuple[str, ...]:
        if self.predictor.has_measured(sheet):
            return ()
        return (f"{sheet.device} was not measured: {LEFT_OUT}.",)

    def _learned(
        self, asked: _Asked, which: Int64[np.ndarray, "K"], work: KernelWork
    ) -> Float64[np.ndarray, "K"]:
        """[K] seconds of the kernels that some nodes lead."""
        products = _priced_products(self.predictor, asked).seconds
        sheet = asked.sheet
        total = np.bincount(work.leader, products, len(products))
        total += work.beyond / (STREAMED_SHARE * sheet.memory_bandwidth)
        streams = which[work.streams[which]]
        priced = _streams(self.predictor, sheet)
        total[streams] += priced.seconds(work.moved[streams], work.length[streams])
        return total[which]

    def _unlike(self, asked: _Asked, work: KernelWork) -> Bool[np.ndarray, "N"]:
        """[N] kernels, at their leaders, that are unlike what was measured."""
        products = _priced_products(self.predictor, asked).unlike
        sheet = asked.sheet
        found = np.bincount(work.leader[products], minlength=len(products)) > 0
        streams = np.flatnonzero(work.streams)
        rows = streamed_rows(work.moved[streams], work.length[streams])
        found[streams] |= self.predictor.outside(_on(rows, sheet))
        return found


class _Asked(NamedTuple):
    """A graph on a GPU of the table."""

    graph: OpGraph
    device: Device
    sheet: DataSheet


class _Products(NamedTuple):
    """Products of a graph on a device."""

    seconds: Float64[np.ndarray, "N"]
    """[N] of each node's product, and of each folded loop; 0 of others."""
    unlike: Bool[np.ndarray, "N"]
    """[N] products unlike what was measured, and folded loops."""


def _sheet(device: Device) -> DataSheet:
    sheet = sheet_of(device)
    if sheet is None:
        raise HardwareError(f"no GPU of the table of devices is like {device.kind!r}")
    return sheet


class _Streams:
    """Seconds of streams on a GPU, so that equal ones of many fusions are priced once."""

    def __init__(self, predictor: OperatorPredictor, sheet: DataSheet) -> None:
        self._predictor, self._sheet = predictor, sheet
        self._known: dict[tuple[float, int], float] = {}

    def seconds(
        self, moved: Float64[np.ndarray, "S"], length: Int64[np.ndarray, "S"]
    ) -> Float64[np.ndarray, "S"]:
        """Return [S] seconds of streams of this many bytes in rows of this many elements."""
        if len(self._known) > MOST_STREAMS:
            self._known = {}
        known = self._known
        sizes = list(zip(moved.tolist(), length.tolist(), strict=True))
        new = [i for i, size in enumerate(sizes) if size not in known]
        if new:
            rows = streamed_rows(moved[new], length[new])
            priced = self._predictor.predict(_on(rows, self._sheet)).tolist()
            known |= {sizes[i]: seconds for i, seconds in zip(new, priced, strict=True)}
        return np.array([known[size] for size in sizes])


@lru_cache(KEPT)
def _streams(predictor: OperatorPredictor, sheet: DataSheet) -> _Streams:
    return _Streams(predictor, sheet)


@lru_cache(KEPT * 4)
def _priced_products(predictor: OperatorPredictor, asked: _Asked) -> _Products:
    rows, types, stand_in, of_node = gpu_kernels(asked.graph).products
    inputs = replace(_on(rows, asked.sheet), types=type_rates(types, dict(asked.device.rates)))
    unlike = predictor.outside(inputs) | stand_in
    seconds = np.append(predictor.predict(inputs), 0.0)[of_node]
    loops = asked.graph.kind == OpKind.CONTROL
    seconds[loops] += _loop_seconds(asked.graph, asked.device)[loops]
    return _Products(seconds, np.append(unlike, False)[of_node] | loops)


def _loop_seconds(graph: OpGraph, device: Device) -> Float64[np.ndarray, "N"]:
    """[N] seconds of the trips of folded loops: their FLOP as fast as matrix products, or their
    bytes, whichever takes longer. What the loop itself reads and writes is a stream beside it."""
    share = shipped_parameters().get(device.kind, DEFAULT)
    arithmetic = graph.flops / (device.peak_flops * share.matmul)
    return np.maximum(arithmetic, graph.bytes_accessed / (device.memory_bandwidth * share.memory))


def _scaled(graph: OpGraph, device: Device) -> tuple[str, ...]:
    """A note on products in other types than float32."""
    types = graph.product_type[graph.product_type != 0]
    if not types.size:
        return ()
    named = ", ".join(ElementType(each).label for each in np.unique(types).tolist())
    return (
        f"{types.size:,} products compute in {named}: tensor cores were measured on an H200 alone, "
        f"and their times on {device.kind} follow from its rates and from the width of an element.",
    )


def _work(kernels: Kernels) -> KernelWork:
    """The work of all kernels of a fusion."""
    return gpu_kernels(kernels.graph).work(kernels.leaders)


def _on(rows: OperatorRows, sheet: DataSheet) -> OperatorInputs:
    return OperatorInputs(rows, (sheet,), np.zeros(len(rows), np.int64))
