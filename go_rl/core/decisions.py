"""`Proposals` become legal `Decisions`, and these `Scored`: their seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int8, Int16, Int64

from go_rl.core.evaluation import OK, Fidelity


@dataclass(frozen=True, eq=False)
class Proposals:
    """``B`` plans of ``N`` nodes on ``D`` devices as an agent or a method wants them."""

    device: Int[np.ndarray, "B N"] | None = None
    """[B, N] device of each node; None: drawn from `log_probs`."""
    log_probs: Float[np.ndarray, "B N D"] | None = None
    """[B, N, D] log-probabilities of the devices that are drawn, not necessarily normalised."""
    priority: Int[np.ndarray, "B N"] | None = None
    """[B, N] scheduling priority, larger first; None: topological order."""
    fusion: Int[np.ndarray, "B N"] | None = None
    """[B, N] fusion priority; None: nothing is fused."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """``B`` plans of ``N`` nodes."""

    device: Int16[np.ndarray, "B N"]
    """[B, N] device of each node; that of inputs and constants does not matter for makespan."""
    priority: Int64[np.ndarray, "B N"] | None = None
    """[B, N] larger first; None: topological order."""
    kernel_leader: Int64[np.ndarray, "B N"] | None = None
    """[B, N] lowest node of each node's kernel; None: nothing is fused."""
    present: Int64[np.ndarray, "B N"] | None = None
    """[B, N] bit set of the devices that hold a copy of each node, its own included; None: where
    the objective's rules put copies."""

    def __len__(self) -> int:
        return len(self.device)

    def row(self, i: int) -> Decisions:
        """Return one plan of the batch, as a batch of one."""
        rows = slice(i, i + 1)
        return Decisions(
            self.device[rows],
            None if self.priority is None else self.priority[rows],
            None if self.kernel_leader is None else self.kernel_leader[rows],
            None if self.present is None else self.present[rows],
        )

    @staticmethod
    def stack(plans: Sequence[Decisions]) -> Decisions:
        """Return the plans of several batches of one problem as one batch."""

        def rows(name: str) -> Any:
            each = [getattr(plan, name) for plan in plans]
            return None if each[0] is None else np.concatenate(each)

        return Decisions(*(rows(f.name) for f in fields(Decisions)))


@dataclass(frozen=True, eq=False)
class Legalized:
    """``B`` proposals made legal."""

    decisions: Decisions
    """[B] legal decisions; arbitrary where the status is a failure."""
    status: Int8[np.ndarray, "B"]
    """[B] indices into `STATUS_CODES`."""
    detail: str = ""
    """Why there is no plan, where every proposal failed."""
    fidelity: tuple[Fidelity, ...] = ()
    """Fidelity of each to its proposal, where a solver repairs them."""


@dataclass(frozen=True, eq=False)
class Scored:
    """``B`` evaluated plans."""

    decisions: Decisions
    """[B] decisions; of a failure the plan that failed, arbitrary where the solver found no legal
    one."""
    seconds: Float64[np.ndarray, "B"]
    """[B] seconds an iteration; inf for a failure."""
    status: Int8[np.ndarray, "B"]
    """[B] indices into `STATUS_CODES`."""
    fidelity: tuple[Fidelity, ...] = ()
    """Fidelity of each plan to its proposal, where a solver repaired them."""

    @property
    def ok(self) -> Bool[np.ndarray, "B"]:
        """[B] plans that are legal and fit."""
        return self.status == OK
