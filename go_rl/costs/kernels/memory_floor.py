"""`MemoryFloor`: the least time of kernels whose weights come from memory, by the working set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

SCATTER = 1.25
"""Factor by which the speed of memory differs between products and moments, either way; assumed."""


@dataclass(frozen=True, eq=False)
class MemoryFloor:
    """Seconds a byte of programs that read all their weights once, measured."""

    working_set: Float64[np.ndarray, "P"]
    """[P] bytes of weights, rising."""
    per_byte: Float64[np.ndarray, "P"]
    """[P] seconds a byte."""

    def seconds(
        self, weight_bytes: Float64[np.ndarray, "K"]
    ) -> tuple[Float64[np.ndarray, "K"], Float64[np.ndarray, "K"], Float64[np.ndarray, "K"]]:
        """Return [K] the least seconds of a network's K kernels, and bounds of them.

        Weights that the cache holds from one iteration to the next cost what the smallest program
        took a byte; between two programs the seconds a byte are interpolated in the logarithm of
        the working set. What else the network keeps in the cache is not known, so the bounds are
        those of half and twice the working set.

        Args:
            weight_bytes: [K] of each kernel.
        """
        if not len(self.working_set):
            nothing = np.zeros_like(weight_bytes)
            return nothing, nothing, nothing
        whole = max(float(weight_bytes.sum()), 1.0)
        usual, low, high = (
            np.interp(np.log(whole * share), np.log(self.working_set), self.per_byte)
            for share in (1.0, 0.5, 2.0)
        )
        rates = usual, min(usual, low) / SCATTER, max(usual, high) * SCATTER
        return tuple(weight_bytes * rate for rate in rates)  # pyright: ignore[reportReturnType]


NO_FLOOR = MemoryFloor(np.zeros(0), np.zeros(0))
"""Nothing was measured of memory."""
