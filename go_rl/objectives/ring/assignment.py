"""`RingAssignment`: a partition decided node by node, with the solver's domains behind it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int64

from go_rl.core import Evaluation, Status
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import failed
from go_rl.solvers import DomainStore, RingInstance


class RingAssignment:
    """`Assignment` of a ring problem: each decision is propagated."""

    def __init__(self, instance: RingInstance) -> None:
        self._store = DomainStore(instance)
        self._fastest: Float64[np.ndarray, "N"] = instance.problem.seconds.min(axis=0)
        self._possible: dict[int, Bool[np.ndarray, "k"]] = {}
        self.nodes: Int64[np.ndarray, "M"] = np.flatnonzero(~instance.replicated)

    @property
    def device(self) -> Int16[np.ndarray, "N"]:
        """[N] the chip of each node that has one left."""
        return self._store.placement()

    @property
    def infeasible(self) -> Evaluation | None:
        """Failure that propagation alone has proved; None while it has proved none."""
        if self._store.feasible:
            return None
        chips = self._store.problem.hardware.num_devices
        return failed(Status.INFEASIBLE, chips, self._store.clash)

    def reset(self) -> None:
        self._store.reset()
        self._possible.clear()

    def possible(self, node: int) -> Bool[np.ndarray, "k"]:
        """Return [k] the chips that propagation does not refute."""
        if node not in self._possible:
            self._possible[node] = self._store.possible(node)
        return self._possible[node]

    def assign(self, node: int, device: int) -> str:
        self._possible.clear()
        if not self._store.set(node, device):
            return self._store.clash
        following = self.nodes[np.searchsorted(self.nodes, node) + 1 :]
        if not len(following) or self.possible(int(following[0])).any():
            return ""
        name = self._store.problem.graph.names[int(following[0])]
        return f"no legal chip is left for node {name!r}: the partition has no completion"

    def bound(self, least: int = 0) -> float:
        """Return a lower bound in seconds on the busiest chip's work, given the decisions so far.

        The work that must lie within chips a..b, on the fastest chips, over b - a + 1; the largest
        such mean.

        Args:
            least: no node that is still open goes below this chip, unless it must.
        """
        domains = self._store.domains()
        chips = domains.shape[1]
        low, high = domains.argmax(axis=1), chips - 1 - domains[:, ::-1].argmax(axis=1)
        low = np.where(low < high, np.clip(least, low, high), low)
        work = np.zeros((chips, chips))
        np.add.at(work, (low, high), self._fastest)
        within = work[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)  # [a, b]: low >= a, high <= b
        width = np.arange(chips) - np.arange(chips)[:, None] + 1
        return float((within / np.maximum(width, 1))[width > 0].max())

    def decisions(
        self, priority: Int64[np.ndarray, "N"], fusion: Int64[np.ndarray, "N"]
    ) -> Decisions:
        """Return the partition; a ring has no use for priorities."""
        return Decisions(self._store.assignment()[None])
