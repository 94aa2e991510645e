"""Batches of kernels in training: one length bucket each, opcodes forgotten at random."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from go_rl.costs.kernels.batch import LENGTHS, KernelBatch, batch_of, lengths
from go_rl.costs.kernels.features import KernelFeatures
from go_rl.costs.learning.training import TrainRun, scale_of


@dataclass(frozen=True, kw_only=True)
class KernelRun(TrainRun):
    """Abstract: one training run on kernels."""

    forget: float = 0.02
    """Share of the opcodes that an update replaces by the unknown one, so that it is learned."""

    def check(self) -> None:
        """Raise a `TrainingError` for fields that no run can have."""
        if not 0 <= self.forget < 1:
            self.refuse(f"forget must lie in [0, 1), not {self.forget}")
        self.check_run()

    @abstractmethod
    def check_run(self) -> None:
        """Raise a `TrainingError` for fields of its own that no run can have."""


class RandomKernels:
    """Draws kernels of one length bucket, a bucket by how many batches it fills.

    Args:
        features: of the kernels.
        rows: of a batch of kernels of this length; the integer part is taken.
        forget: share of the opcodes that are replaced by the unknown one.
    """

    def __init__(
        self, features: KernelFeatures, rows: Callable[[int], float], forget: float
    ) -> None:
        self.features = features
        self._rows, self._forget = rows, forget
        bucket = lengths(features)
        self._buckets = [(n, np.flatnonzero(bucket == n)) for n in LENGTHS if n in bucket]
        batches = np.array([len(members) / rows(n) for n, members in self._buckets])
        self._chance = batches / batches.sum()

    def draw(self, rng: np.random.Generator) -> tuple[Int64[np.ndarray, "J"], KernelBatch]:
        """Return which kernels were drawn, and their batch."""
        length, members = self._buckets[int(rng.choice(len(self._buckets), p=self._chance))]
        size = int(self._rows(length))
        which = rng.choice(members, min(size, len(members)), replace=False)
        batch = batch_of(self.features, which, size, length)
        lost = rng.random(batch.opcode.shape) < self._forget
        return which, batch._replace(opcode=np.where(lost, 0, batch.opcode).astype(np.int32))


def set_kernel_scales(scale: dict[str, Any], features: Iterable[KernelFeatures]) -> None:
    """Set what standardises the inputs of a `KernelNetwork`, from all kernels learned from."""
    every = list(features)
    scale["node_scale"] = scale_of(np.concatenate([each.nodes for each in every]))
    scale["whole_scale"] = scale_of(np.concatenate([each.whole for each in every]))
