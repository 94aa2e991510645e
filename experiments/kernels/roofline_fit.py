"""`calibrate`: the efficiencies of a roofline that measured seconds suggest."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device, HardwareError
from go_rl.costs.models.analytical import Analytical, Efficiency
from go_rl.costs.models.cost_model import Kernels


def calibrate(
    kernels: Kernels, device: Device, measured: Float64[np.ndarray, "K"], rounds: int = 4
) -> Efficiency:
    """Fit a device's efficiencies to measured seconds by coordinate search on the log error.

    Args:
        kernels: what was run.
        device: where it was run.
        measured: [K] seconds, each > 0.
        rounds: sweeps over the parameters, each on a grid twice as fine.

    Raises:
        HardwareError: a time is not a number > 0, or the lengths differ.
    """
    if measured.shape != kernels.flops.shape:
        raise HardwareError(f"calibrate: {len(measured)} times for {len(kernels.flops)} kernels")
    if not (np.isfinite(measured) & (measured > 0)).all():
        raise HardwareError("calibrate: every measured time must be a number > 0")
    best = Efficiency()
    step = 2.0
    for _ in range(rounds):
        for name in [f.name for f in fields(Efficiency)]:
            best = _line_search(best, name, step, kernels, device, measured)
        step = step**0.5
    return best


def _line_search(
    start: Efficiency,
    name: str,
    step: float,
    kernels: Kernels,
    device: Device,
    measured: np.ndarray,
) -> Efficiency:
    def error(candidate: Efficiency) -> float:
        seconds = Analytical({device.kind: candidate}).seconds(kernels, device)
        busy = seconds > 0
        return float(np.abs(np.log(seconds[busy] / measured[busy])).mean()) if busy.any() else 0.0

    shares = np.clip(getattr(start, name) * step ** np.arange(-4.0, 5.0), 1e-4, 1.0)
    return min((replace(start, **{name: float(s)}) for s in shares), key=error)
