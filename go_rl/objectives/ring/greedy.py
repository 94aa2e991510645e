"""The compiler heuristic on a ring: topological fills balanced by compute, then by weights too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float64, Int16

from go_rl.core import Problem
from go_rl.objectives.common.units import slowest_seconds

MIXES = (0.0, 0.5, 0.8, 1.0)
"""Shares of weight bytes in what is balanced; tried in turn until the memory suffices."""


def greedy_fills(
    problem: Problem, replicated: Bool[np.ndarray, "N"]
) -> Iterator[Int16[np.ndarray, "N"]]:
    """Yield [N] chips for each of `MIXES`, not yet legal."""
    work = work_share(problem, replicated)
    weight = problem.weight_bytes / max(problem.weight_bytes.sum(), 1.0)
    for mix in MIXES:
        share = (1 - mix) * work + mix * weight
        total = share.sum()
        if total > 0:
            yield topological_fill(share / total, problem.hardware.num_devices)


def topological_fill(share: Float64[np.ndarray, "N"], chips: int) -> Int16[np.ndarray, "N"]:
    """Return [N] chips: nodes in topological order, a new chip whenever 1/k is reached."""
    middle = np.cumsum(share) - 0.5 * share
    return np.clip((middle * chips).astype(np.int16), 0, chips - 1)


def work_share(problem: Problem, replicated: Bool[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
    """Return [N] each node's share of the work; copied nodes none."""
    work = np.where(replicated, 0.0, slowest_seconds(problem))
    total = work.sum()
    return work / total if total > 0 else np.full(len(work), 1.0 / len(work))
