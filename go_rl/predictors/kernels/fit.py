"""From a data set to the weights of a learned cost model: an ensemble, and what it has seen."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float64, Int, Int64

from go_rl.core import TrainingError
from go_rl.measure.kernels.data import KernelData
from go_rl.measure.kernels.settings import LAYOUTS
from go_rl.predictors.kernels.features import kernel_features
from go_rl.predictors.kernels.opcodes import vocabulary_of
from go_rl.predictors.kernels.training import KernelTrainConfig, TrainedNetwork, train_absolute
from go_rl.predictors.kernels.weights import PROCESSOR, KernelWeights
from go_rl.predictors.training import MEMBERS, MemberReport, Report, train_members
from go_rl.records import AS_IT_COMES


def plain_seconds(data: KernelData) -> Float64[np.ndarray, "K"]:
    """Return [K] seconds of kernels as they come, of the first round; NaN where there are none."""
    seconds = np.full(data.kernels.num_kernels, np.nan)
    seconds[data.kernel[data.plain]] = data.seconds[data.plain]
    return seconds


def absolute_rows(data: KernelData, which: Int[np.ndarray, "T"]) -> Int64[np.ndarray, "R"]:
    """Return the measurements of the first round of some kernels that an absolute model learns
    from: as they come, and under layouts of their operands (flags change the compiler)."""
    told = np.array([s == AS_IT_COMES or LAYOUTS in json.loads(s) for s in data.settings])
    asked = np.zeros(data.kernels.num_kernels, bool)
    asked[which] = True
    return np.flatnonzero(told[data.setting] & (data.round == 0) & asked[data.kernel])


def fit_kernel_weights(
    data: KernelData,
    which: Int[np.ndarray, "T"],
    config: KernelTrainConfig | None = None,
    members: int = MEMBERS,
    report: Report | None = None,
) -> KernelWeights:
    """Return weights that learned from some kernels of a data set.

    Args:
        data: with a time for each of these kernels.
        which: the kernels that are learned from.
        config: of each member; its opcodes and seed are set here.
        members: networks.
        report: receives the network, every hundredth update, and its loss.

    Raises:
        TrainingError: a kernel has no time, or the loss became NaN.
    """
    config = config or KernelTrainConfig()
    missing = int(np.isnan(plain_seconds(data)[which]).sum())
    if missing or not len(which):
        raise TrainingError(f"{data.name}: {missing} of {len(which)} kernels have no time")
    rows = absolute_rows(data, which)
    vocabulary = vocabulary_of(data.kernels.take(which).graph.op_type)
    every = kernel_features(data.kernels, vocabulary)
    features = every.take(data.kernel[rows])
    features = features.with_layouts([data.settings[i] for i in data.setting[rows]])
    seconds = data.seconds[rows]
    network = replace(config.network, opcodes=len(vocabulary), outputs=2)

    def train_one(seed: int, told: MemberReport) -> TrainedNetwork:
        return train_absolute(features, seconds, replace(config, network=network, seed=seed), told)

    trained = train_members(train_one, config.seed, members, report)
    card = {
        "data": data.name, PROCESSOR: data.processor,
        "kernels": len(which), "measurements": len(rows),
        "models": len({data.models[k] for k in which}),
        "training": asdict(config),
    }  # fmt: skip
    return KernelWeights(
        networks=trained,
        vocabulary=vocabulary,
        low=features.whole.min(axis=0),
        high=features.whole.max(axis=0),
        target=data.target,
        name=data.name,
        card=card,
    )
