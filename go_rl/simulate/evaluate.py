"""One door to the three objectives: a `Pricer` for whatever the problem asks."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int16, Int64

from go_rl.core import Evaluation, Objective, Problem
from go_rl.simulate.host.latency import evaluate_latency, latency_batch
from go_rl.simulate.host.max_load import evaluate_max_load, max_load_batch
from go_rl.simulate.ring.pricing import RingPricer


@runtime_checkable
class Pricer(Protocol):
    """Prices plans of one problem."""

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """Return [B] seconds a step (inf for a failure) and [B] indices into `STATUS_CODES`."""
        ...

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """Price one plan in full."""
        ...

    def replicas(self, device: Int16[np.ndarray, "N"]) -> dict[int, tuple[int, ...]]:
        """Return further chips that hold copies, by node."""
        ...


@runtime_checkable
class CopyingPricer(Pricer, Protocol):
    """A `Pricer` that also decides where copies go; a ring's."""

    @property
    def replicated(self) -> Bool[np.ndarray, "N"]:
        """[N] nodes copied to each consumer's chip."""
        ...

    def place(
        self, device: Int16[np.ndarray, "N"]
    ) -> tuple[Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
        """Return [N] home chips and [N] sets of chips where each node is present."""
        ...


class DevicePricer:
    """`Pricer` of max-load and latency, where nothing is copied."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """See `Pricer`."""
        latency = self.problem.objective is Objective.LATENCY
        return (latency_batch if latency else max_load_batch)(self.problem, devices)

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """See `Pricer`."""
        latency = self.problem.objective is Objective.LATENCY
        return (evaluate_latency if latency else evaluate_max_load)(self.problem, device)

    def replicas(self, device: Int16[np.ndarray, "N"]) -> dict[int, tuple[int, ...]]:
        """See `Pricer`."""
        return {}


def pricer(problem: Problem) -> Pricer:
    """Return the pricer of the problem's objective."""
    if problem.objective is Objective.RING:
        return RingPricer(problem)
    return DevicePricer(problem)
