"""`AttentionMemory`: measured schedules of tuned operators, which schedules of others attend to.

The attention of matching networks (Vinyals et al. 2016, equations 1 and 2), whose head the tuner
has: the relative throughput of a program is the mean of those in memory, weighted by a softmax over
the cosine similarity of the head's states. So schedules that were found for some operators are
reused for operators that are not tuned (Verma et al. 2023, section 4.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import TrainingError

TEMPERATURE = 0.05
"""Temperature of the softmax: a similarity that is less by so much weighs 1/e as much."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class AttentionMemory:
    """``M`` measured programs."""

    states: Float32[np.ndarray, "M W"]
    """[M, W] of the attention head (`TransferTuner.states`)."""
    throughput: Float64[np.ndarray, "M"]
    """[M] seconds of the operator's fastest over its own; 0: it failed."""

    @classmethod
    def of(
        cls,
        states: Sequence[Float32[np.ndarray, "S W"]],
        seconds: Sequence[Float64[np.ndarray, "S"]],
        numbers: Sequence[int],
    ) -> AttentionMemory:
        """Return the memory of operators.

        Args:
            states: [S, W] of the measured schedules of each operator.
            seconds: [S] of these; NaN or infinite: it failed.
            numbers: of the operators.

        Raises:
            TrainingError: there is no operator, or one without a time.
        """
        if not numbers:
            raise TrainingError("attention: no operator was tuned, and there is nothing to reuse")
        shares = []
        for number, some in zip(numbers, seconds, strict=True):
            known = np.where(np.isfinite(some) & (some > 0), some, np.inf)
            if not np.isfinite(known).any():
                raise TrainingError(f"attention: no schedule of operator {number} has a time")
            shares.append(known.min() / known)
        return cls(np.concatenate(states), np.concatenate(shares))

    def attention(
        self, states: Float32[np.ndarray, "Q W"], temperature: float = TEMPERATURE
    ) -> Float64[np.ndarray, "Q M"]:
        """Return [Q, M] weights of what is in memory, of sum 1 for each program."""
        logits = _unit(states) @ _unit(self.states).T / temperature
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def throughputs(
        self, states: Float32[np.ndarray, "Q W"], temperature: float = TEMPERATURE
    ) -> Float64[np.ndarray, "Q"]:
        """Return [Q] the relative throughput that programs are expected to have."""
        return self.attention(states, temperature) @ self.throughput


def _unit(states: Float32[np.ndarray, "N W"]) -> Float64[np.ndarray, "N W"]:
    wide = states.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), TINY)
