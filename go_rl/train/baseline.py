"""Running baseline of rewards, one for each problem and task."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

LEAST_DEVIATION = 1e-3
"""Rewards (logarithms of throughput) nearer to each other than this count as equal."""
LARGEST = 4.0
"""Advantages are cut at this many standard deviations."""


@dataclass
class RunningBaseline:
    """Exponential means and mean squared deviations by key."""

    decay: float = 0.8
    """Weight of what was known when a batch comes in."""
    mean: dict[str, float] = field(default_factory=dict)
    variance: dict[str, float] = field(default_factory=dict)

    def advantage(self, key: str, reward: Float64[np.ndarray, "B"]) -> Float64[np.ndarray, "B"]:
        """Return [B] standardised advantages against what was known before, then learn from them.

        The first batch of a key is compared with its own mean.
        """
        mean, variance = float(reward.mean()), float(reward.var())
        known = self.mean.get(key, mean)
        spread = self.variance.get(key, variance)
        self.mean[key] = self.decay * known + (1 - self.decay) * mean
        fresh = float(np.square(reward - known).mean())
        self.variance[key] = self.decay * spread + (1 - self.decay) * fresh
        deviation = max(np.sqrt(self.variance[key]), LEAST_DEVIATION)
        return np.clip((reward - known) / deviation, -LARGEST, LARGEST)
