"""From a data set to the weights of a learned cost model: an ensemble, and what it has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
from jaxtyping import Float64, Int

from go_rl.core import TrainingError
from go_rl.cost.kernel_data import KernelData
from go_rl.cost.learned.kernel_features import kernel_features
from go_rl.cost.learned.kernel_training import KernelTrainConfig, train_absolute
from go_rl.cost.learned.kernel_weights import KernelWeights
from go_rl.cost.learned.opcodes import vocabulary_of

MEMBERS = 3
"""Networks of an ensemble; they differ by their seed."""


def plain_seconds(data: KernelData) -> Float64[np.ndarray, "K"]:
    """Return [K] seconds of kernels as they come, of the first round; NaN where there are none."""
    seconds = np.full(data.kernels.num_kernels, np.nan)
    seconds[data.kernel[data.plain]] = data.seconds[data.plain]
    return seconds


def fit_kernel_weights(
    data: KernelData,
    which: Int[np.ndarray, "T"],
    config: KernelTrainConfig | None = None,
    members: int = MEMBERS,
    report: Callable[[str], None] | None = None,
) -> KernelWeights:
    """Return weights that learned from some kernels of a data set.

    Args:
        data: with a time for each of these kernels.
        which: the kernels that are learned from.
        config: of each member; its opcodes and seed are set here.
        members: networks.
        report: is told a sentence now and then.

    Raises:
        TrainingError: a kernel has no time, or the loss became NaN.
    """
    config = config or KernelTrainConfig()
    kernels, seconds = data.kernels.take(which), plain_seconds(data)[which]
    if not np.isfinite(seconds).all():
        raise TrainingError(f"{data.name}: {int(np.isnan(seconds).sum())} kernels have no time")
    vocabulary = vocabulary_of(kernels.graph.op_type)
    features = kernel_features(kernels, vocabulary)
    network = replace(config.network, opcodes=len(vocabulary), outputs=2)
    trained = []
    for i in range(members):

        def told(step: int, loss: float, member: int = i) -> None:
            if report is not None:
                report(f"member {member + 1}/{members}, update {step}, loss {loss:.4f}")

        one = replace(config, network=network, seed=config.seed + i)
        trained.append(train_absolute(features, seconds, one, told))
    card = {
        "data": data.name, "kernels": len(which), "models": len(set(data.models)),
        "training": asdict(config),
    }  # fmt: skip
    return KernelWeights(
        networks=tuple(trained),
        vocabulary=vocabulary,
        low=features.whole.min(axis=0),
        high=features.whole.max(axis=0),
        target=data.target,
        name=data.name,
        card=card,
    )
