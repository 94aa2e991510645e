"""`Samples`: what SAMPLE and FIX made of a batch of proposals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int8, Int16, Int32, Int64

from go_rl.core import Status
from go_rl.core.evaluation import STATUS_CODES

CODE = {status: i for i, status in enumerate(STATUS_CODES)}
"""Small integer of each `Status`, as compiled functions and `Samples.status` hold it."""


@dataclass(frozen=True, eq=False)
class Samples:
    """``B`` proposals made legal."""

    device: Int16[np.ndarray, "B N"]
    """[B, N] chip of each node (home chip of a copied node); zeros where the status is not OK."""
    mask: Int64[np.ndarray, "B N"]
    """[B, N] chips among which the node's was drawn, as the bits of a word. One bit: the node was
    decided by others and has probability one."""
    means: Int8[np.ndarray, "B"]
    """[B] `go_rl.core.Means`."""
    order: Int32[np.ndarray, "B M"]
    """[B, M] blocks in the order that was cut; arbitrary unless `means` is CUTS."""
    log_prob: Float64[np.ndarray, "B"]
    """[B] log-probability of each sample among those that its means could have drawn: chips
    renormalised over `mask`, or cuts over all legal cuts of the order; by FIX, of the blocks that
    were drawn."""
    status: Int8[np.ndarray, "B"]
    """[B] index into `STATUS_CODES`."""
    detail: str
    """Reason why there is no plan, when every sample failed."""

    @property
    def ok(self) -> np.ndarray:
        """[B] samples that are legal partitions."""
        return self.status == CODE[Status.OK]


def no_samples(batch: int, nodes: int, blocks: int, status: Status, detail: str = "") -> Samples:
    """Return ``batch`` failures with one status."""
    return Samples(
        device=np.zeros((batch, nodes), np.int16),
        mask=np.zeros((batch, nodes), np.int64),
        means=np.zeros(batch, np.int8),
        order=np.zeros((batch, blocks), np.int32),
        log_prob=np.full(batch, -np.inf),
        status=np.full(batch, CODE[status], np.int8),
        detail=detail,
    )
