"""Advantages of a batch: against a running baseline of the problem, or of the best of the batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from go_rl.envs.rewards import ROOT

LEAST_DEVIATION = 1e-3
"""Rewards nearer to each other than this count as equal."""
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


def top_advantage(reward: Float64[np.ndarray, "B"], top: float) -> Float64[np.ndarray, "B"]:
    """Return [B] advantages of a risk-seeking policy gradient (Petersen et al. 2021, equation 4).

    A search keeps the best plan it sees, so it is the best that must get better, not the mean:
    learned from the mean, a policy soon leaves everything on one device, the safest plan of all.
    What lies below the (1 - ``top``) quantile earns nothing; the rest is measured from there, in
    standard deviations of the batch. With all of a batch (``top`` 1) it is GO's plain advantage:
    from the mean, and what cannot run counts as well.
    """
    if top == 1.0:
        deviation = max(float(reward.std()), LEAST_DEVIATION)
        return np.clip((reward - reward.mean()) / deviation, -LARGEST, LARGEST)
    least = np.quantile(reward, 1.0 - top)
    usable = reward[reward > ROOT.failure]
    deviation = max(float(usable.std()) if usable.size else 0.0, LEAST_DEVIATION)
    return np.clip(np.maximum(reward - least, 0.0) / deviation, 0.0, LARGEST)
