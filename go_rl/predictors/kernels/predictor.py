"""Predicting seconds of kernels with learned weights: how sure, and how like the training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import ProblemError
from go_rl.kernels import KernelSet
from go_rl.predictors.kernels.features import KernelFeatures, kernel_features
from go_rl.predictors.kernels.opcodes import UNKNOWN, opcode
from go_rl.predictors.kernels.weights import KernelWeights
from go_rl.predictors.losses import LARGEST_DEVIATION, LEAST_DEVIATION

MARGIN = 1.0
"""How far a feature may lie outside what was seen, in powers of two, before a kernel is flagged."""


@dataclass(frozen=True, eq=False)
class KernelPredictions:
    """What an ensemble says of ``K`` kernels."""

    seconds: Float64[np.ndarray, "K"]
    """[K] the mean of the members' logarithms."""
    deviation: Float64[np.ndarray, "K"]
    """[K] of the logarithm: what the members doubt, and what they disagree on."""
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
        kernels: of which it is asked.
        which: [J] numbers of kernels; one may be there several times.
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
