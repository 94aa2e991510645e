"""Pipeline throughput on a ring: T_max, the slowest chip or link (analytical model of
"Partitioning ML Models on Multi-Chip Modules", MLSys 2022).

- A chip is busy for the seconds of all nodes present on it, copies included.
- A tensor whose home is chip a and whose furthest consumer sits on chip b crosses the links
  a..b-1 once each, whatever lies between; a consumer that finds a copy on its own chip needs none.
- A chip's peak bytes are its resident weights (a tied array once), plus the largest sum of live
  tensors while it runs its nodes in topological order, plus, under the relay rule, the tensors it
  forwards. A received tensor lives from the start of the iteration to its last local consumer; a
  sent tensor, or a result of the model, from its making to the end of the iteration.
"""

from __future__ import annotations

import os
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int16, Int64

from go_rl.core import Evaluation, Problem, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.objectives.ring.simulate.compiled_pricing import (
    RingScratch,
    price_range,
    price_whole,
    ring_arrays,
    ring_scratch,
)
from go_rl.runtime.threads import on_threads
from go_rl.solvers.replication import presence, replicas_of


class RingPricer:
    """Prices of plans by the analytical model, and where copies go; build once, then price batches.

    Static rules other than acyclicity are not checked: plans come from the solver, and
    `go_rl.verify.check_plan` verifies what is reported.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.arrays = ring_arrays(problem)
        self._idle: list[RingScratch] = []

    @property
    def replicated(self) -> Bool[np.ndarray, "N"]:
        """[N] nodes copied to each consumer's chip."""
        return self.arrays.replicated

    def price(
        self, devices: Int16[np.ndarray, "B N"]
    ) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
        """Return [B] seconds an iteration (inf: a failure) and [B] indices into `STATUS_CODES`.

        Copied nodes are placed where their consumers are, whatever ``devices`` says of them.
        """
        values, codes = np.empty(len(devices)), np.zeros(len(devices), np.int8)
        devices = np.ascontiguousarray(devices)

        def price(rows: range) -> None:
            scratch = self._borrow()
            price_range(self.arrays, scratch, devices, rows.start, rows.step, values, codes)
            self._idle.append(scratch)

        few = min(os.cpu_count() or 1, max(1, len(devices) // 4))
        on_threads(price, len(devices), few)
        return values, codes

    def place(
        self, device: Int16[np.ndarray, "N"]
    ) -> tuple[Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
        """Return [N] home chips and [N] sets of chips where each node is present."""
        home, present = device.astype(np.int16), np.zeros(len(device), np.int64)
        presence(self.arrays.succ_ptr, self.arrays.succ, self.replicated, home, present)
        return home, present

    def evaluate(self, device: Int16[np.ndarray, "N"]) -> Evaluation:
        """Price one plan in full."""
        scratch = self._borrow()
        scratch.device[:] = device
        code, slowest = price_whole(self.arrays, scratch)
        found = (scratch.busy, scratch.traffic, scratch.held, scratch.streamed, scratch.peak)
        busy, traffic, held, streamed, peak = (array.copy() for array in found)
        self._idle.append(scratch)
        links = self.problem.hardware.links
        link_seconds = np.where(traffic > 0, traffic / links.bandwidth + links.latency_seconds, 0)
        status = STATUS_CODES[code]
        return Evaluation(
            status=status,
            seconds=slowest if status.ok else float("inf"),
            device_seconds=busy,
            link_seconds=link_seconds,
            link_bytes=traffic,
            weight_bytes=held,
            streamed_bytes=streamed,
            peak_bytes=peak,
            detail="" if status.ok else self._explain(status, busy, peak),
        )

    def replicas(self, device: Int16[np.ndarray, "N"]) -> dict[int, tuple[int, ...]]:
        """Return the ``replicas`` of the plan that `evaluate` prices."""
        return replicas_of(*self.place(device))

    @cached_property
    def _events(self) -> int:
        """Events of any plan whose copies are those of `replicated`."""
        copies = np.where(self.replicated, len(self.arrays.kind), 1)
        return int(copies[self.arrays.user].sum())

    def _borrow(self) -> RingScratch:
        """Return scratch that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return ring_scratch(self.arrays, self._events)

    def _explain(self, status: Status, busy: np.ndarray, peak: np.ndarray) -> str:
        if status is Status.OUT_OF_MEMORY:
            c = int(np.argmax(peak - self.arrays.capacity))
            return (
                f"chip {c} needs {peak[c] / 1e6:.3f} MB at its peak; "
                f"it has {self.arrays.capacity[c] / 1e6:.3f} MB"
            )
        if status is Status.UNSUPPORTED:
            return f"chip {int(np.argmax(~np.isfinite(busy)))} cannot run one of its nodes"
        return "a tensor would flow to a lower chip"
