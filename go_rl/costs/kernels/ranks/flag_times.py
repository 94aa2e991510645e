"""`FlagTimes`: what a ranking network learns from, kernels timed under several settings of flags.

The columns of all arrays [K, S] are `go_rl.costs.kernels.measure.settings.flag_settings`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from go_rl.core import TrainingError
from go_rl.costs.kernels.measure.data import KernelData
from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.graphs.cutting.kernel_set import KernelSet

CONFIDENT = 0.2
"""Largest relative half-width of the 95 % interval of a time that takes part in a choice: one that
is known less well may look the fastest, and then every other choice seems to lose."""


@dataclass(frozen=True, eq=False)
class FlagTimes:
    """``K`` kernels, each timed under two of ``S`` settings of flags or more."""

    data: str
    """Name of the data set."""
    target: str
    """Kind of device that they were measured on."""
    number: Int64[np.ndarray, "K"]
    """[K] place of each kernel in its data set, ascending."""
    kernels: KernelSet
    seconds: Float64[np.ndarray, "K S"]
    """[K, S] NaN where there is no time."""

    @property
    def known(self) -> Bool[np.ndarray, "K S"]:
        """[K, S] whether there is a time."""
        return np.isfinite(self.seconds)

    def take(self, which: Int[np.ndarray, "J"]) -> FlagTimes:
        """Return some of the kernels, each at most once, in this order."""
        return replace(
            self,
            number=self.number[which],
            kernels=self.kernels.take(which),
            seconds=self.seconds[which],
        )


def flag_times(data: KernelData) -> FlagTimes:
    """Return the kernels of a data set that were timed under several settings of flags.

    Args:
        data: of kernels; times of the first round count, if they are known to within `CONFIDENT`.

    Raises:
        TrainingError: there is no such kernel.
    """
    seconds = np.full((data.kernels.num_kernels, len(flag_settings())), np.nan)
    usable = (data.round == 0) & (data.spread <= CONFIDENT)
    for column, setting in enumerate(flag_settings()):
        if setting in data.settings:
            rows = np.flatnonzero(usable & (data.setting == data.settings.index(setting)))
            seconds[data.kernel[rows], column] = data.seconds[rows]
    number = np.flatnonzero(np.isfinite(seconds).sum(axis=1) > 1)
    if not len(number):
        raise TrainingError(
            f"{data.name}: no kernel was measured under two settings of flags; measure some "
            "(go-rl measure kernels --vary flags)"
        )
    return FlagTimes(data.name, data.target, number, data.kernels.take(number), seconds[number])
