"""`Learned`: the cost model that predicts kernels from their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import Chip, ProblemError
from go_rl.cost.cost_model import Kernels
from go_rl.cost.kernel_cache import KernelCache, check_shapes, check_target, with_streaming
from go_rl.kernels import KernelSet
from go_rl.predictors.kernels.features import KernelFeatures, kernel_features
from go_rl.predictors.kernels.opcodes import UNKNOWN, opcode
from go_rl.predictors.kernels.weights import KernelWeights
from go_rl.predictors.losses import LARGEST_DEVIATION, LEAST_DEVIATION

MARGIN = 1.0
"""How far a feature may lie outside the training data, in powers of two, before a kernel is
flagged."""


@dataclass(frozen=True, eq=False)
class KernelPredictions:
    """Predictions of an ensemble for ``K`` kernels."""

    seconds: Float64[np.ndarray, "K"]
    """[K] the mean of the members' logarithms."""
    deviation: Float64[np.ndarray, "K"]
    """[K] deviation of the logarithm: the members' own uncertainty and their disagreement."""
    unfamiliar: Bool[np.ndarray, "K"]
    """[K] unlike the training data: an opcode never seen, or a size far outside."""
    unseen: tuple[str, ...]
    """Opcodes never seen, sorted."""


def predict_kernels(weights: KernelWeights, kernels: KernelSet) -> KernelPredictions:
    """Return what an ensemble predicts for kernels."""
    return _predicted(weights, kernels, kernel_features(kernels, weights.vocabulary))


def predict_layouts(
    weights: KernelWeights,
    kernels: KernelSet,
    which: Int64[np.ndarray, "J"],
    settings: Sequence[str],
) -> KernelPredictions:
    """Return what an ensemble predicts for kernels under layouts of their operands.

    Args:
        weights: of the ensemble.
        kernels: whose seconds are predicted.
        which: [J] indices of kernels, repetitions allowed.
        settings: [J] as records carry them (`go_rl.measure.kernels.settings`), "" for row by row.

    Raises:
        ProblemError: not one setting for each number, or there is no such kernel.
        RecordError: a setting is malformed.
    """
    if len(which) != len(settings):
        raise ProblemError(f"layouts: {len(which)} kernels and {len(settings)} settings")
    if outside := [k for k in which.tolist() if not 0 <= k < kernels.num_kernels]:
        raise ProblemError(
            f"layouts: there is no kernel {outside[0]}, only 0 to {kernels.num_kernels - 1}"
        )
    asked, place = np.unique(which, return_inverse=True)
    some = kernels.take(asked)
    features = kernel_features(some, weights.vocabulary).take(place).with_layouts(settings)
    return _predicted(weights, some, features)


def _predicted(
    weights: KernelWeights, kernels: KernelSet, features: KernelFeatures
) -> KernelPredictions:
    told = np.stack([network.predict(features) for network in weights.networks])  # [M, K, 2]
    doubt = np.exp(2.0 * np.clip(told[:, :, 1], LEAST_DEVIATION, LARGEST_DEVIATION)).mean(axis=0)
    known = set(weights.vocabulary)
    names = {opcode(name) for name in kernels.graph.op_type} - {"input"}
    return KernelPredictions(
        seconds=np.exp(told[:, :, 0].mean(axis=0)),
        deviation=np.sqrt(doubt + told[:, :, 0].var(axis=0)),
        unfamiliar=_unfamiliar(weights, features),
        unseen=tuple(sorted(names - known)),
    )


def _unfamiliar(weights: KernelWeights, features: KernelFeatures) -> Bool[np.ndarray, "K"]:
    outside = (features.whole < weights.low - MARGIN) | (features.whole > weights.high + MARGIN)
    count = features.num_kernels
    owner = np.repeat(np.arange(count), np.diff(features.first_node))
    unseen = np.bincount(owner[features.opcode == UNKNOWN], minlength=count) > 0
    return np.asarray(outside.any(axis=1) | unseen)


@dataclass(frozen=True, eq=False)
class Learned:
    """`CostModel`: an ensemble of kernel networks, valid on the target that it was measured on."""

    weights: KernelWeights
    name: str = "learned"
    _cache: KernelCache = field(default_factory=KernelCache, repr=False)
    _unfamiliar: set[str] = field(default_factory=set, repr=False)
    """Hashes of kernels unlike the training data."""

    def seconds(self, kernels: Kernels, chip: Chip) -> Float64[np.ndarray, "K"]:
        """Return [K] predicted seconds.

        Raises:
            HardwareError: the chip is of another kind than the kernels that were measured.
            ProblemError: the graph's operators have no shapes.
        """
        check_target(self.name, self.weights.target, chip)
        check_shapes(self.name, kernels.graph)
        return with_streaming(self._cache.seconds(kernels, self._predict), kernels, chip)

    def notes(self, kernels: Kernels, chip: Chip) -> tuple[str, ...]:
        """Return notes: the cost model, and how many of these kernels are unlike the training
        data."""
        on = f" ({self.weights.processor})" if self.weights.processor else ""
        said = f"Operator times are predicted by {self.name}, which learned on {chip.kind}{on}."
        priced = [hash_ for hash_ in self._cache.hashes(kernels) if hash_ is not None]
        strange = sum(hash_ in self._unfamiliar for hash_ in priced)
        if not strange:
            return (said,)
        unseen = self._unseen(kernels)
        why = f" (operators never seen: {', '.join(unseen)})" if unseen else ""
        return said, (
            f"{strange:,} of {len(priced):,} operators are unlike all that {self.name} learned "
            f"from{why}; their times are guesses."
        )

    def _predict(self, new: KernelSet) -> Float64[np.ndarray, "K"]:
        found = predict_kernels(self.weights, new)
        self._unfamiliar.update(h for h, f in zip(new.hashes, found.unfamiliar, strict=True) if f)
        return found.seconds

    def _unseen(self, kernels: Kernels) -> list[str]:
        graph = kernels.graph
        named = {opcode(graph.op_type[i]) for i in np.flatnonzero(~graph.is_fed).tolist()}
        return sorted(named - set(self.weights.vocabulary))
