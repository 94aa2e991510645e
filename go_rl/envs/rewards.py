"""Rewards of plans by name, for environments and for the learners of `go_rl.policy.learn`.

``speed-up`` and ``log-speed-up`` compare with the reference plan of a pipeline as "Partitioning ML
models on multi-chip modules" (MLSys 2022) does, ``root`` with that of an iteration as "Transferable
graph optimizers for ML compilers" (NeurIPS 2020) does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

LEAST = 1e-300
"""Seconds below which logarithms are not taken."""
Worth = Callable[[Float64[np.ndarray, "B"], float], Float64[np.ndarray, "B"]]


@dataclass(frozen=True)
class Reward:
    """A function of seconds, and what a plan earns that cannot run."""

    worth: Worth
    """Reward of [B] finite seconds, given those of the reference plan."""
    failure: float
    """Reward of a failure, unless another one is given."""

    def __call__(
        self, seconds: Float64[np.ndarray, "B"], reference: float, failure: float | None = None
    ) -> Float64[np.ndarray, "B"]:
        """Return [B] rewards.

        Args:
            seconds: [B] an iteration; inf: not usable.
            reference: seconds of the reference plan.
            failure: what an unusable plan earns; None: the reward's own.
        """
        lost = self.failure if failure is None else failure
        usable = np.isfinite(seconds)
        worth = self.worth(np.where(usable, seconds, reference), reference)
        if reference == 0:  # nothing costs anything: no worse than a failure
            worth = np.maximum(worth, lost)
        return np.where(usable, worth, lost)


def _speed_up(seconds: Float64[np.ndarray, "B"], reference: float) -> Float64[np.ndarray, "B"]:
    positive = seconds > 0
    return np.where(positive, reference / np.where(positive, seconds, 1.0), 1.0)


def _log_speed_up(seconds: Float64[np.ndarray, "B"], reference: float) -> Float64[np.ndarray, "B"]:
    return np.log(max(reference, LEAST)) - np.log(np.maximum(seconds, LEAST))


def _root(seconds: Float64[np.ndarray, "B"], reference: float) -> Float64[np.ndarray, "B"]:
    return -np.sqrt(seconds / max(reference, LEAST))


SPEED_UP = Reward(_speed_up, -10.0)
"""Throughput over the reference's; 2: twice as fast."""
LOG_SPEED_UP = Reward(_log_speed_up, -2.0)
"""Logarithm of the speed-up; a failure is as if it were e^2 times slower."""
ROOT = Reward(_root, -10.0)
"""-sqrt(seconds / reference); -1: as fast as the reference."""
REWARDS = {"speed-up": SPEED_UP, "log-speed-up": LOG_SPEED_UP, "root": ROOT}
"""Rewards by the name that environments take."""
SHAPED = {"shaped-speed-up": "speed-up"}
"""Rewards that pay a part of another one at every decision, by the name that environments of a ring
take: potential-based shaping (Ng, Harada and Russell, "Policy invariance under reward
transformations", ICML 1999, with a discount of 1). The potential is what a plan as fast as the
bound on all completions would earn, 0 after the end."""
