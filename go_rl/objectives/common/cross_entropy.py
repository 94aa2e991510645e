"""`CrossEntropy`: a search over vectors of weights (Rubinstein 1999).

Batches come from a Gaussian with a deviation for each weight, around the best weights so far; the
first ones are given, such as what a policy draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

BATCH = 32
"""Rollouts of a batch."""
KEPT = 12
"""Weights that are kept."""
ELITES = 8
"""Weights around which a search draws."""
MEAN_RATE, SPREAD_RATE = 0.7, 0.5
"""Share by which a batch moves mean and deviations."""
NARROWEST = 0.15
"""Least deviation over that at the start."""
PATIENCE = 12
"""Batches without a better plan after which a search has come to its end."""


@dataclass(frozen=True, eq=False)
class Finds:
    """The best weights of one problem."""

    deviations: Float32[np.ndarray, "K W"]
    """[K, W] weights, the best first."""
    seconds: Float64[np.ndarray, "K"]
    """[K] seconds of their plans."""

    def best(self, kept: int) -> Finds:
        """Return the best; the earlier of equals."""
        order = np.argsort(self.seconds, kind="stable")[:kept]
        return Finds(self.deviations[order], self.seconds[order])

    def with_(self, other: Finds) -> Finds:
        """Return the weights of both."""
        return Finds(
            np.concatenate([self.deviations, other.deviations]),
            np.concatenate([self.seconds, other.seconds]),
        )


class CrossEntropy:
    """State of one search: ask for what is to be tried, tell what its plans take. A batch that is
    told in pieces, in turns of ``auto``, moves the search once it is whole."""

    def __init__(self, first: Float32[np.ndarray, "B W"], seed: int) -> None:
        """``first`` [B, W]: weights of the first batch, whose spread is that of the search."""
        self._rng = np.random.default_rng(seed)
        self._widest = first.std(axis=0)
        self._begin(first)

    def _begin(self, first: Float32[np.ndarray, "B W"]) -> None:
        self._left = first
        self._mean, self._spread = first.mean(axis=0), self._widest.copy()
        self._since, self._better = 0, False
        self.finds = Finds(np.zeros((0, first.shape[1]), np.float32), np.zeros(0))

    @property
    def settled(self) -> bool:
        """Whether the last `PATIENCE` batches held no better plan."""
        return self._since >= PATIENCE

    def begin_anew(self) -> None:
        """Draw around the best weights as widely as at the start, and forget all others."""
        drawn = self._rng.standard_normal((BATCH, len(self._mean)))
        drawn[0] = 0.0
        self._begin((self.finds.deviations[0] + self._widest * drawn).astype(np.float32))

    def ask(self) -> Float32[np.ndarray, "B W"]:
        """Return the weights of the batch that are still to be tried; of the next once all are."""
        if not len(self._left):
            drawn = self._rng.standard_normal((BATCH, len(self._mean)))
            self._left = (self._mean + self._spread * drawn).astype(np.float32)
        return self._left

    def tell(self, seconds: Float64[np.ndarray, "N"]) -> None:
        """Take in [N] seconds of the plans of the first N that `ask` returns, inf where there is
        no plan."""
        tried, self._left = self._left[: len(seconds)], self._left[len(seconds) :]
        before = self.finds.seconds.min(initial=np.inf)
        self.finds = self.finds.with_(Finds(tried, seconds)).best(KEPT)
        self._better |= bool(self.finds.seconds[0] < before * (1 - 1e-9))
        if not len(self._left):
            self._move()

    def _move(self) -> None:
        """Move mean and deviations towards the best weights: a batch has been tried."""
        self._since = 0 if self._better else self._since + 1
        self._better = False
        best = self.finds.deviations[:ELITES]
        self._mean = (1 - MEAN_RATE) * self._mean + MEAN_RATE * best.mean(axis=0)
        least = np.maximum(best.std(axis=0), NARROWEST * self._widest)
        self._spread = (1 - SPREAD_RATE) * self._spread + SPREAD_RATE * least
