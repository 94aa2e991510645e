"""The analytical cost model: a roofline with an efficiency for each kind of operator.

seconds = max(flops / (peak * e_kind), bytes / (bandwidth * e_memory), streamed / host) + launch
(Williams, Waterman, Patterson, "Roofline", CACM 2009). Efficiencies are data, one set per device
kind, in ``parameters.json``; `calibrate` fits them to measured seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device, ElementType, HardwareError, OpKind, ProblemError
from go_rl.core.graph.op_kind import IS_FREE
from go_rl.core.hardware.rates import replaced_types
from go_rl.costs.models.cost_model import Kernels

NO_RATE = 1e-30
"""FLOP/s at which nothing is ever done."""


@dataclass(frozen=True)
class Efficiency:
    """Share of a device's peak that each kind of operator reaches, in (0, 1]."""

    matmul: float = 0.7
    convolution: float = 0.6
    elementwise: float = 0.1
    reduction: float = 0.1
    other: float = 0.1
    memory: float = 0.75
    """Share of the memory bandwidth, all kinds."""

    def __post_init__(self) -> None:
        for name, share in asdict(self).items():
            if not 0 < share <= 1:
                raise HardwareError(f"efficiency {name} must lie in (0, 1], not {share}")

    def of_kind(self) -> Float64[np.ndarray, "kinds"]:
        """Return the arithmetic efficiency by `OpKind` value."""
        table = np.full(len(OpKind), self.other)
        table[OpKind.MATMUL] = self.matmul
        table[OpKind.CONVOLUTION] = self.convolution
        table[OpKind.ELEMENTWISE] = self.elementwise
        table[OpKind.REDUCTION] = self.reduction
        return table


DEFAULT = Efficiency()
"""Efficiency where a device kind has none of its own."""


@cache
def shipped_parameters() -> Mapping[str, Efficiency]:
    """Return the efficiencies shipped with the package, by device kind."""
    text = files("go_rl.costs.models").joinpath("parameters.json").read_text()
    return {kind: Efficiency(**shares) for kind, shares in json.loads(text).items()}


@dataclass(frozen=True)
class Analytical:
    """`CostModel`: the roofline. An unknown device kind gets the default `Efficiency`."""

    parameters: Mapping[str, Efficiency] | None = None
    """Efficiencies by device kind; None: the shipped ones."""

    name: str = "analytical"

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds an iteration of each kernel on the device; free kinds cost nothing.

        Raises:
            ProblemError: the graph brings seconds and no FLOP.
        """
        if kernels.graph.seconds and not kernels.graph.has_flops:
            raise ProblemError(
                f"graph {kernels.graph.name!r} brings a profile of its operators' seconds and no "
                "FLOP, which the analytical model needs; use --cost profiled"
            )
        table = self.parameters if self.parameters is not None else shipped_parameters()
        share = table.get(device.kind, DEFAULT)
        compute = kernels.flops / (peak_rates(kernels, device) * share.of_kind()[kernels.kind])
        memory = kernels.bytes_accessed / (device.memory_bandwidth * share.memory)
        streamed = kernels.streamed_bytes / device.host_bandwidth
        seconds = np.maximum(np.maximum(compute, memory), streamed) + device.launch_seconds
        return np.where(IS_FREE[kernels.kind], 0.0, seconds)


def peak_rates(kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
    """Return [K] the device's FLOP/s in the element type of each kernel's product, `NO_RATE` where
    it cannot compute in that type."""
    if kernels.element_type is None:
        return np.full(len(kernels.kind), device.peak_flops)
    return _rates_by_type(device)[kernels.element_type]


@cache
def _rates_by_type(device: Device) -> Float64[np.ndarray, "types"]:
    """[types] FLOP/s by `ElementType`; asked for each batch of candidate kernels."""
    return np.maximum([device.rate(each) for each in ElementType], NO_RATE)


def unstated_rates(kernels: Kernels, devices: tuple[Device, ...]) -> tuple[str, ...]:
    """Return a note on each device that computes products in types of which it states no rate."""
    if kernels.element_type is None:
        return ()
    present = [ElementType(each) for each in np.unique(kernels.element_type).tolist() if each]
    found = []
    for device in devices:
        said = replaced_types(present, dict(device.rates))
        if said:
            found.append(f"{device.kind} states no rate of {said}.")
    return tuple(found)
