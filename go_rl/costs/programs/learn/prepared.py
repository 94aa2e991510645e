"""Inputs of a `ProgramNetwork`: standardised arrays, and batches of one leaf count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.programs.features import positional_encoding
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.network import ProgramBatch

FARTHEST = 8.0
"""Standardised numbers are cut off there: a rare number would else decide alone."""
LEAST_DEVIATION = 1e-3
SIZES = (32, 128, 512)
"""Programs of a batch for predicting: few, as each is compiled for each leaf count."""
LEAF_SIZES = (4, 16, 64)
"""Numbers to which the statements of a program are filled up, where they share a batch with
others."""
MOST_FILL = 1.6
"""Size of a batch, by the programs in it, up to which it is filled up with repetitions."""


@dataclass(frozen=True, eq=False)
class InputScale:
    """Scale that standardises leaf vectors and numbers of targets."""

    mean: Float32[np.ndarray, "numbers"]
    deviation: Float32[np.ndarray, "numbers"]
    device_mean: Float32[np.ndarray, "D"]
    device_deviation: Float32[np.ndarray, "D"]

    @classmethod
    def fit(cls, inputs: ProgramInputs) -> InputScale:
        """Return mean and deviation over all leaves, and over the targets that have a number."""
        leaves = inputs.asts.vectors.astype(np.float64)
        devices = inputs.devices[np.unique(inputs.target)]
        scale = column_scale(devices)
        return cls(
            leaves.mean(0).astype(np.float32), _deviation(leaves.std(0)),
            scale["mean"], scale["deviation"],
        )  # fmt: skip

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields by name."""
        return {
            "mean": self.mean, "deviation": self.deviation, "device_mean": self.device_mean,
            "device_deviation": self.device_deviation,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class PreparedPrograms:
    """``P`` programs as networks read them."""

    leaves: Float32[np.ndarray, "S numbers"]
    """[S, N] standardised leaf vectors, the positional encoding added."""
    first_leaf: Int64[np.ndarray, "starts"]
    devices: Float32[np.ndarray, "G D"]
    known: Float32[np.ndarray, "G D"]
    target: Int64[np.ndarray, "P"]
    by_count: Mapping[int, Int64[np.ndarray, "J"]]
    """Programs of each leaf count."""

    def batch(self, which: Int64[np.ndarray, "J"], count: int) -> ProgramBatch:
        """Return programs of ``count`` leaves as a batch."""
        rows = self.first_leaf[which][:, None] + np.arange(count)
        target = self.target[which]
        return ProgramBatch(self.leaves[rows], self.devices[target], self.known[target])

    def batches(self) -> Iterator[tuple[Int64[np.ndarray, "J"], ProgramBatch]]:
        """Return all programs in batches of `SIZES`, and which they are. A batch is filled up by
        repeating its last program, so that few shapes are compiled."""
        for count, members in self.by_count.items():
            start = 0
            for size in batch_sizes(len(members)):
                which = members[start : start + size]
                start += size
                filled = np.concatenate([which, np.full(size - len(which), which[-1])])
                yield which, self.batch(filled, count)


def prepare(
    inputs: ProgramInputs, scale: InputScale, leaf_counts: Sequence[int], positional: bool = True
) -> PreparedPrograms:
    """Return what a network with layers for some leaf counts reads.

    Args:
        inputs: programs.
        scale: of the network.
        leaf_counts: that have layers.
        positional: whether the positional encoding is added.

    Raises:
        TrainingError: a program has another number of leaves.
    """
    leaves = inputs.leaves
    strange = np.setdiff1d(leaves, leaf_counts)
    if len(strange):
        known = ", ".join(map(str, leaf_counts))
        raise TrainingError(
            f"a program has {strange[-1]} leaves, and these weights know programs of {known} "
            "leaves; train on records that have such programs"
        )
    vectors = (inputs.asts.vectors - scale.mean) / scale.deviation
    vectors = np.clip(vectors, -FARTHEST, FARTHEST)
    if positional:
        ordering = inputs.asts.ordering  # few numbers: each is encoded once
        table = positional_encoding(np.arange(ordering.max(initial=0) + 1), vectors.shape[1])
        vectors = vectors + table.astype(np.float32)[ordering]
    known = np.isfinite(inputs.devices)
    devices = np.where(known, inputs.devices, 0.0) - scale.device_mean
    return PreparedPrograms(
        leaves=vectors.astype(np.float32),
        first_leaf=inputs.asts.first_leaf,
        devices=np.where(known, devices / scale.device_deviation, 0.0).astype(np.float32),
        known=known.astype(np.float32),
        target=inputs.target,
        by_count={int(n): np.flatnonzero(leaves == n) for n in np.unique(leaves)},
    )


def batch_sizes(count: int) -> Iterator[int]:
    """Yield sizes of batches that hold this many programs: the size that holds all that are left
    where they fill most of it, else the largest that they fill."""
    while count > 0:
        holds = next((size for size in SIZES if size >= count), SIZES[-1])
        filled = max((size for size in SIZES if size <= count), default=SIZES[0])
        size = holds if holds <= MOST_FILL * count else filled
        yield size
        count -= size


def column_scale(features: Float[np.ndarray, "P F"]) -> dict[str, np.ndarray]:
    """Return mean and deviation of each column, over rows in which it is known."""
    known = np.isfinite(features)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, features, 0.0).sum(0, dtype=np.float64) / count
    spread = np.sqrt(np.where(known, np.square(features - mean), 0.0).sum(0) / count)
    return {"mean": mean.astype(np.float32), "deviation": _deviation(spread)}


def masked_rows(
    features: Float32[np.ndarray, "P F"], scale: Mapping[str, np.ndarray]
) -> Float32[np.ndarray, "P N"]:
    """Return [P, 2 F] standardised features, 0 where unknown, and 1 for each that is known."""
    known = np.isfinite(features)
    rows = (np.where(known, features, scale["mean"]) - scale["mean"]) / scale["deviation"]
    rows = np.clip(rows, -FARTHEST, FARTHEST)
    return np.concatenate([rows, known], axis=1).astype(np.float32)


def filled_size(count: int, sizes: tuple[int, ...], what: str) -> int:
    """Return the smallest size that holds this many.

    Raises:
        TrainingError: there is none.
    """
    for size in sizes:
        if size >= count:
            return size
    raise TrainingError(f"a loop nest has {count} {what}; at most {sizes[-1]} are read")


def _deviation(spread: Float64[np.ndarray, "N"]) -> Float32[np.ndarray, "N"]:
    return np.where(spread > LEAST_DEVIATION, spread, 1.0).astype(np.float32)
