"""The profiled cost model: the seconds that a graph brings with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device, ProblemError
from go_rl.costs.models.cost_model import Kernels


@dataclass(frozen=True)
class Profiled:
    """`CostModel`: a profile's own seconds, used on any device; see `profile_for`."""

    name: str = "profiled"

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] the profile of the nearest device kind; a `ProblemError` without profile."""
        profiles = kernels.graph.seconds
        if not profiles:
            raise ProblemError(
                f"graph {kernels.graph.name!r} brings no measured seconds; use the analytical "
                "model (--cost analytical)"
            )
        return np.array(profiles[profile_for(device, tuple(profiles))], np.float64)


def profile_for(device: Device, kinds: tuple[str, ...]) -> str:
    """Return the profile that applies to a device: its own kind's, else ``cpu`` for CPUs, else an
    accelerator's."""
    if device.kind in kinds:
        return device.kind
    if device.is_cpu and "cpu" in kinds:
        return "cpu"
    accelerators = [kind for kind in kinds if kind != "cpu"]
    return accelerators[0] if accelerators else kinds[0]
