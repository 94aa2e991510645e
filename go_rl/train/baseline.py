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

    decay: float = 0.5
    """Weight of what was known when a batch comes in. A problem of a large zoo comes up rarely, and
    the policy has moved on by then."""
    mean: dict[str, float] = field(default_factory=dict)
    variance: dict[str, float] = field(default_factory=dict)

    def advantage(self, key: str, reward: Float64[np.ndarray, "B"]) -> Float64[np.ndarray, "B"]:
        """Return [B] advantages against the running mean, in running standard deviations.

        Both have learned from the batch already; the first batch of a key starts them.
        """
        known = self.mean.get(key, float(reward.mean()))
        mean = self.decay * known + (1 - self.decay) * float(reward.mean())
        fresh = float(np.square(reward - mean).mean())
        variance = self.decay * self.variance.get(key, fresh) + (1 - self.decay) * fresh
        self.mean[key], self.variance[key] = mean, variance
        deviation = max(np.sqrt(variance), LEAST_DEVIATION)
        return np.clip((reward - mean) / deviation, -LARGEST, LARGEST)

    def deviation(self, key: str) -> float:
        """Return the running standard deviation of a key's rewards; inf before the first batch."""
        return float(np.sqrt(self.variance.get(key, np.inf)))
