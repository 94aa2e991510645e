"""Kernels as padded arrays of a few sizes, so that a new number of them costs no compilation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.costs.kernels.features import KernelFeatures, ranges
from go_rl.costs.learning.training import TrainRun, scale_of

LONGEST = 160
"""Nodes of a kernel in a batch: a fused one has at most 64 operators and 96 tensors beside them."""
LENGTHS = (8, 24, 64, LONGEST)
NODES_AT_ONCE = 16_384
"""Nodes of a batch for pricing; kernels of equal length bucket go together."""


class KernelBatch(NamedTuple):
    """``B`` kernels, some of them padding, as rows of ``L`` nodes, some of them padding."""

    opcode: Any
    """[B, L] 0 for padding; like all of these a NumPy array that JAX turns into one of its own."""
    nodes: Any
    """[B, L, F] `go_rl.costs.kernels.features.NODE_FEATURES`."""
    real: Any
    """[B, L] 1 for nodes, 0 for padding."""
    whole: Any
    """[B, W] `go_rl.costs.kernels.features.KERNEL_FEATURES`."""
    adjacent: Any
    """[B, L, L] 1 where row v reads column u."""


def batch_of(
    features: KernelFeatures, which: Int64[np.ndarray, "J"], size: int, length: int
) -> KernelBatch:
    """Return some kernels as a batch of ``size`` rows of ``length`` nodes, padding last.

    Of a kernel with more nodes only the last are in the batch: what is left out are operands, for
    they come first, and the features of the whole kernel count them.
    """
    last = features.first_node[which + 1]
    first = np.maximum(features.first_node[which], last - length)
    at = first[:, None] + np.arange(length)
    there = at < last[:, None]
    at = np.where(there, at, 0)
    rows = slice(0, len(which))
    opcode = np.zeros((size, length), np.int32)
    opcode[rows] = np.where(there, features.opcode[at], 0)
    nodes = np.zeros((size, length, features.nodes.shape[1]), np.float32)
    nodes[rows] = np.where(there[:, :, None], features.nodes[at], 0.0)
    real = np.zeros((size, length), np.float32)
    real[rows] = there
    whole = np.zeros((size, features.whole.shape[1]), np.float32)
    whole[rows] = features.whole[which]
    return KernelBatch(opcode, nodes, real, whole, _adjacent(features, which, first, size, length))


def _adjacent(
    features: KernelFeatures,
    which: Int64[np.ndarray, "J"],
    first: Int64[np.ndarray, "J"],
    size: int,
    length: int,
) -> Float32[np.ndarray, "B L L"]:
    found = np.zeros((size, length, length), np.float32)
    edge, start = ranges(features.first_edge, which)
    row = np.repeat(np.arange(len(which)), np.diff(start))
    reader, read = features.receivers[edge] - first[row], features.senders[edge] - first[row]
    there = read >= 0
    found[row[there], reader[there], read[there]] = 1.0
    return found


def lengths(features: KernelFeatures) -> Int64[np.ndarray, "K"]:
    """Return [K] the length bucket of each kernel; the largest for all beyond."""
    count = np.minimum(np.diff(features.first_node), LONGEST)
    return np.array(LENGTHS)[np.searchsorted(LENGTHS, count)]


def all_batches(features: KernelFeatures) -> Iterator[tuple[Int64[np.ndarray, "J"], KernelBatch]]:
    """Return all kernels in batches for pricing, and which they are."""
    bucket = lengths(features)
    for length in LENGTHS:
        which, size = np.flatnonzero(bucket == length), NODES_AT_ONCE // length
        for start in range(0, len(which), size):
            part = which[start : start + size]
            rows = size if len(part) > size // 8 else max(size // 8, 1)
            yield part, batch_of(features, part, rows, length)


def over_batches(
    features: KernelFeatures, columns: int, compute: Callable[[KernelBatch], Any]
) -> Float32[np.ndarray, "K C"]:
    """Return [K, C] what is computed for all kernels, from [B, C] for each batch."""
    found = np.zeros((features.num_kernels, columns), np.float32)
    for which, batch in all_batches(features):
        found[which] = np.asarray(compute(batch))[: len(which)]
    return found


@dataclass(frozen=True, kw_only=True)
class KernelRun(TrainRun):
    """Abstract: one training run on kernels."""

    forget: float = 0.02
    """Share of the opcodes that an update replaces by the unknown one, so that it is learned."""

    def check(self) -> None:
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


def set_kernel_scales(scale: dict[str, Any], features: KernelFeatures) -> None:
    """Set what standardises the inputs of a `KernelNetwork`, from all kernels learned from."""
    scale["node_scale"] = scale_of(features.nodes)
    scale["whole_scale"] = scale_of(features.whole)
