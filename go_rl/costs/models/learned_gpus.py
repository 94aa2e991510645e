"""`LearnedGpus`: kernels on GPUs of which only the data sheet is known, by `OperatorPredictor`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device, HardwareError
from go_rl.costs.devices import DataSheet, DeviceError, find_device
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache, KernelSeconds, check_shapes, with_streaming
from go_rl.costs.models.kernel_work import kernel_work
from go_rl.costs.operators.examples import OperatorInputs
from go_rl.costs.operators.launches.launch import Launch, moved, operator_rows
from go_rl.costs.operators.launches.launch_prices import STREAMED_SHARE
from go_rl.costs.operators.launches.operator_view import HEAVY, OperatorView
from go_rl.costs.operators.launches.product_launches import product_launches
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.graphs.cutting import KernelSet

DATA_SHEETS = {"a100": "a100-sxm-80gb"}
"""Devices of devices whose kind is no name of the table, or names another variant there."""


@dataclass(frozen=True, eq=False)
class LearnedGpus:
    """`CostModel`: a kernel is its products, and the bytes that it streams beyond theirs; one
    without products is a stream of all its bytes. A kernel of views alone costs nothing."""

    predictor: OperatorPredictor
    name: str = "learned:gpus"
    _caches: dict[str, KernelCache] = field(default_factory=dict, repr=False)
    """Kernel caches by kind of device."""
    _unlike: dict[str, set[str]] = field(default_factory=dict, repr=False)
    """Hashes of kernels unlike what was measured, by kind of device."""

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] predicted seconds.

        Raises:
            HardwareError: the device is no device of the table of data sheets.
            OperatorError: the graph computes in other types than float32.
            ProblemError: the graph's operators have no shapes.
        """
        check_shapes(self.name, kernels.graph)
        price = self._price(_sheet(device), device.kind)
        cache = self._caches.setdefault(device.kind, KernelCache())
        return with_streaming(cache.seconds(kernels, price), kernels, device)

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return notes: the cost model, and how many kernels are unlike what was measured."""
        sheet = _sheet(device)
        kind = device.kind
        said = f"Operator times on {kind} are predicted from the data sheet of {sheet.device}."
        cache = self._caches.get(device.kind)
        if cache is None:
            return (said,)
        priced = [h for h in cache.hashes(kernels) if h is not None]
        strange = sum(h in self._unlike.get(device.kind, ()) for h in priced)
        if not strange:
            return (said,)
        return said, (f"{strange:,} of {len(priced):,} operators on {device.kind} are unlike what "
                      "was measured; their times are guesses.")  # fmt: skip

    def _price(self, sheet: DataSheet, kind: str) -> KernelSeconds:
        """The function that prices kernels on a device."""

        def price(kernels: KernelSet) -> Float64[np.ndarray, "K"]:
            launches, kernel, extra = kernel_launches(kernels)
            total = np.zeros(kernels.num_kernels)
            if not launches:
                return total
            rows = operator_rows(launches)
            found = self.predictor.interval(
                OperatorInputs(rows, (sheet,), np.zeros(len(rows), np.int64))
            )
            total = np.bincount(kernel, found.seconds, kernels.num_kernels)
            strange = found.unlike | [launch.unlike for launch in launches]
            hashes = {kernels.hashes[k] for k in kernel[strange].tolist()}
            self._unlike.setdefault(kind, set()).update(hashes)
            return total + extra / (STREAMED_SHARE * sheet.memory_bandwidth)

        return price


def kernel_launches(
    kernels: KernelSet,
) -> tuple[list[Launch], np.ndarray, Float64[np.ndarray, "K"]]:
    """Return the operators of kernels, the kernel of each, and [K] bytes that kernels with products
    move beyond them."""
    view = OperatorView(kernels.graph)
    moved_bytes = kernel_work(kernels).bytes_accessed
    busy = np.zeros(kernels.num_kernels, bool)
    longest = np.ones(kernels.num_kernels, np.int64)
    launches: list[Launch] = []
    of: list[int] = []
    for node, own in enumerate(kernels.kernel.tolist()):
        if kernels.graph.is_fed[node] or view.is_view[node]:
            continue
        busy[own] = True
        longest[own] = max(longest[own], view.shape[node][-1] if view.shape[node] else 1)
        if view.graph.kind[node] in HEAVY:
            launches.append(list(product_launches(view, node, ()))[-1])
            of.append(own)
    products = np.zeros(kernels.num_kernels)
    if launches:
        products = np.bincount(of, operator_rows(launches).least_bytes(), kernels.num_kernels)
    extra = np.where(products > 0, np.maximum(moved_bytes - products, 0.0), 0.0)
    for k in np.flatnonzero(busy & (products == 0)).tolist():
        launches.append(moved(moved_bytes[k], int(longest[k]), (), "stream"))
        of.append(k)
    return launches, np.array(of, np.int64), extra


def _sheet(device: Device) -> DataSheet:
    try:
        return find_device(DATA_SHEETS.get(device.kind, device.kind))
    except DeviceError as error:
        raise HardwareError(
            f"--cost learned:gpus: devices of kind {device.kind!r} are no GPUs of the table of "
            "devices; take hardware such as t4, v100x4 or a100x8"
        ) from error
