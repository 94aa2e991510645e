"""`KernelPredictor`: seconds of kernels by an ensemble, with its uncertainty, and whether the
kernels are unlike its training data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from go_rl.core import ProblemError, TrainingError
from go_rl.costs.kernels.ensemble import Ensemble, TrainedNetwork
from go_rl.costs.kernels.features import (
    KERNEL_FEATURES,
    NODE_FEATURES,
    KernelFeatures,
    kernel_features,
)
from go_rl.costs.kernels.measure.data import KernelData, absolute_rows, plain_seconds
from go_rl.costs.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.costs.kernels.training import KernelTrainConfig, train_absolute
from go_rl.costs.learning.losses import LARGEST_DEVIATION, LEAST_DEVIATION
from go_rl.costs.learning.training import MEMBERS, MemberReport, Report, train_members
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import UNKNOWN, opcode, vocabulary_of

SHIPPED = Path(__file__).parent / "pretrained"
PROCESSOR = "processor"
"""Field of the card that names the processor."""
MARGIN = 1.0
"""Margin around the features seen, in powers of two; beyond it a kernel is flagged."""


@dataclass(frozen=True, eq=False)
class KernelPredictions:
    """Predictions of an ensemble for ``K`` kernels."""

    seconds: Float64[np.ndarray, "K"]
    """[K] the mean of the members' logarithms."""
    deviation: Float64[np.ndarray, "K"]
    """[K] of the logarithm: the members' own estimates of it, and their disagreement."""
    unfamiliar: Bool[np.ndarray, "K"]
    """[K] unlike the training data: an opcode never seen, or a size far outside."""
    unseen: tuple[str, ...]
    """Opcodes never seen, sorted."""


@dataclass(frozen=True, eq=False)
class KernelPredictor(Ensemble[KernelData, KernelSet]):
    """Learned cost model: an ensemble that predicts the seconds of kernels, and the sizes of those
    that it has seen."""

    low: Float32[np.ndarray, "W"]
    high: Float32[np.ndarray, "W"]
    """[W] least and largest `KERNEL_FEATURES`."""

    what = "kernel cost weights"
    unit = "seconds"
    format = "go_rl-kernel-cost"
    interface = 1
    shipped = SHIPPED
    beside = ("low", "high")

    @property
    def processor(self) -> str:
        """Processor on which the kernels were measured (`processor_name`); "": unknown."""
        return str(self.card.get(PROCESSOR, ""))

    @classmethod
    def fit(
        cls,
        examples: KernelData,
        config: KernelTrainConfig | None = None,
        members: int = MEMBERS,
        report: Report | None = None,
    ) -> KernelPredictor:
        """Return networks that learned from all kernels of a data set, under `absolute_rows`.

        Args:
            examples: with a time for each kernel; see `KernelData.take` for some of them.
            config: of each member; its opcodes and seed are set here.
            members: networks.
            report: receives the network, every hundredth update, and its loss.

        Raises:
            TrainingError: a kernel has no time, or the loss became NaN.
        """
        config = config or KernelTrainConfig()
        count = examples.kernels.num_kernels
        missing = int(np.isnan(plain_seconds(examples)).sum())
        if missing or not count:
            raise TrainingError(f"{examples.name}: {missing} of {count} kernels have no time")
        vocabulary = vocabulary_of(examples.kernels.graph.op_type)
        features, seconds = measured_features(examples, vocabulary)
        network = replace(config.network, opcodes=len(vocabulary), outputs=2)

        def train_one(seed: int, member: MemberReport) -> TrainedNetwork:
            run = replace(config, network=network, seed=seed)
            return train_absolute(features, seconds, run, member)

        card = {
            "data": examples.name, PROCESSOR: examples.processor,
            "kernels": count, "measurements": len(seconds), "models": len(set(examples.models)),
            "training": asdict(config),
        }  # fmt: skip
        return cls(
            networks=train_members(train_one, config.seed, members, report),
            vocabulary=vocabulary,
            low=features.whole.min(axis=0),
            high=features.whole.max(axis=0),
            target=examples.target,
            name=examples.name,
            card=card,
        )

    def predict(self, inputs: KernelSet) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds of kernels as they come."""
        return predict_kernels(self, inputs).seconds

    @classmethod
    def columns(cls) -> list[list[str]]:
        return [list(NODE_FEATURES), list(KERNEL_FEATURES)]

    @classmethod
    def network_of(cls, config: Mapping[str, Any]) -> KernelNetwork:
        return KernelNetwork(KernelNetworkConfig(**config))


def latest_weights(kind: str) -> str:
    """Return the name of the latest weights for a kind of device, whether or not any ship:
    ``kernels-KIND-v3`` is later than ``kernels-KIND``."""
    pattern = re.compile(rf"kernels-{re.escape(kind)}(?:-v(\d+))?")
    found = [(int(m[1] or 1), path.stem) for path in SHIPPED.glob("kernels-*.npz")
             if (m := pattern.fullmatch(path.stem))]  # fmt: skip
    return max(found, default=(0, f"kernels-{kind}"))[1]


def measured_features(
    examples: KernelData, vocabulary: Sequence[str]
) -> tuple[KernelFeatures, Float64[np.ndarray, "R"]]:
    """Return features and seconds of the measurements under `absolute_rows`."""
    rows = absolute_rows(examples)
    features = kernel_features(examples.kernels, vocabulary).take(examples.kernel[rows])
    settings = [examples.settings[i] for i in examples.setting[rows]]
    return features.with_layouts(settings), examples.seconds[rows]


def predict_kernels(predictor: KernelPredictor, kernels: KernelSet) -> KernelPredictions:
    """Return what an ensemble predicts for kernels."""
    return _predicted(predictor, kernels, kernel_features(kernels, predictor.vocabulary))


def predict_layouts(
    predictor: KernelPredictor,
    kernels: KernelSet,
    which: Int64[np.ndarray, "J"],
    settings: Sequence[str],
) -> KernelPredictions:
    """Return what an ensemble predicts for kernels under layouts of their operands.

    Args:
        predictor: the ensemble.
        kernels: from which these are chosen.
        which: [J] numbers of kernels; one may be there several times.
        settings: [J] as records carry them (`go_rl.costs.kernels.measure.settings`), "" for row by
            row.

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
    features = kernel_features(some, predictor.vocabulary).take(place).with_layouts(settings)
    return _predicted(predictor, some, features)


def _predicted(
    predictor: KernelPredictor, kernels: KernelSet, features: KernelFeatures
) -> KernelPredictions:
    found = np.stack([network.predict(features) for network in predictor.networks])  # [M, K, 2]
    variance = np.exp(2.0 * np.clip(found[:, :, 1], LEAST_DEVIATION, LARGEST_DEVIATION)).mean(
        axis=0
    )
    known = set(predictor.vocabulary)
    names = {opcode(name) for name in kernels.graph.op_type} - {"input"}
    return KernelPredictions(
        seconds=np.exp(found[:, :, 0].mean(axis=0)),
        deviation=np.sqrt(variance + found[:, :, 0].var(axis=0)),
        unfamiliar=_unfamiliar(predictor, features),
        unseen=tuple(sorted(names - known)),
    )


def _unfamiliar(predictor: KernelPredictor, features: KernelFeatures) -> Bool[np.ndarray, "K"]:
    outside = (features.whole < predictor.low - MARGIN) | (features.whole > predictor.high + MARGIN)
    count = features.num_kernels
    owner = np.repeat(np.arange(count), np.diff(features.first_node))
    unseen = np.bincount(owner[features.opcode == UNKNOWN], minlength=count) > 0
    return np.asarray(outside.any(axis=1) | unseen)
