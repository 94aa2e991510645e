"""Learned cost models and ranks: one small lesson of each, and what the shipped weights predict."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from typing import get_args

import numpy as np

from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data, plain_seconds
from go_rl.costs.kernels.measure.settings import LAYOUTS
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.predictor import SHIPPED as KERNEL_MODELS
from go_rl.costs.kernels.predictor import (
    KernelPredictions,
    KernelPredictor,
    predict_kernels,
    predict_layouts,
)
from go_rl.costs.kernels.ranks.flag_times import flag_times
from go_rl.costs.kernels.ranks.network import RankNetworkConfig
from go_rl.costs.kernels.ranks.predictor import SHIPPED as RANKS
from go_rl.costs.kernels.ranks.predictor import FlagRanks
from go_rl.costs.kernels.ranks.training import RankTrainConfig
from go_rl.costs.kernels.residuals import ResidualExamples, Residuals, compared_features
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.costs.learning.losses import RankLoss
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels, summed_features
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.graphs.cutting.opcode_names import vocabulary_of

from ..fingerprint import Facts, digest, moments, short
from .learners import _weights
from .problems import graph

KERNEL_SETS = ("zoo:vae-3-layers", "zoo:gcn-3-layers", "zoo:wavenet-1x10", "zoo:bert-tiny")
"""Models whose kernels are predicted."""
LEARNED_FROM = 48
"""Kernels of a small lesson."""
SMALL = KernelNetworkConfig(width=16, layers=1, head=16, opcode_width=8)


@cache
def kernels_of(model: str) -> KernelSet:
    """Return the kernels of a model: its single operators, and those when all is fused."""
    found = graph(model)
    size = (1, found.num_nodes)
    fused = Fuser(found).leaders(np.ones(size, np.int64), np.zeros(size, np.int64))[0]
    return join_kernels([cut_kernels(found, np.arange(size[1]))[0], cut_kernels(found, fused)[0]])


def kernel_set_facts(model: str) -> Facts:
    """Return the kernels of a model, by their hashes."""
    kernels = kernels_of(model)
    return {"kernels": kernels.num_kernels, "hashes": digest(kernels.hashes)}


def kernel_predictions(name: str, model: str) -> Facts:
    """Return what shipped weights predict for a model's kernels."""
    return _predicted(predict_kernels(KernelPredictor.load(name), kernels_of(model)))


def layout_predictions(name: str) -> Facts:
    """Return what shipped weights predict for measured kernels under layouts of their operands."""
    data = _kernel_data()
    told = [i for i in range(len(data.seconds)) if LAYOUTS in data.settings[data.setting[i]]]
    rows = np.array(told[:: max(1, len(told) // LEARNED_FROM)], np.int64)
    settings = [data.settings[i] for i in data.setting[rows]]
    weights = KernelPredictor.load(name)
    return _predicted(predict_layouts(weights, data.kernels, data.kernel[rows], settings))


def _predicted(found: KernelPredictions) -> Facts:
    return {
        "seconds": moments([found.seconds]),
        "log seconds": moments([np.log(found.seconds)]),
        "deviation": moments([found.deviation]),
        "unfamiliar": digest(found.unfamiliar),
        "unseen": digest(found.unseen),
    }


def flag_predictions(name: str) -> Facts:
    """Return the scores that shipped ranks give to settings of kernels."""
    scores = FlagRanks.load(name).order(kernels_of(KERNEL_SETS[0]))
    return {"scores": moments([scores])}


@cache
def _kernel_data() -> KernelData:
    return load_kernel_data("kernels-cpu-1")


@cache
def _some() -> KernelData:
    """Kernels that have a time, spread over the data set, as a data set of its own."""
    data = _kernel_data()
    timed = np.flatnonzero(~np.isnan(plain_seconds(data)))
    return data.take(timed[:: max(1, len(timed) // LEARNED_FROM)][:LEARNED_FROM])


def kernel_model_training() -> Facts:
    """A small network learns the seconds of a few measured kernels; and what it then predicts."""
    some, losses = _some(), []
    config = KernelTrainConfig(SMALL, updates=100, nodes=640)
    weights = KernelPredictor.fit(
        some, config, members=1, report=lambda member, step, loss: losses.append(loss)
    )
    return (
        _weights(None, weights.networks[0].params)
        | _predicted(predict_kernels(weights, kernels_of(KERNEL_SETS[0])))
        | {"losses": [short(x) for x in losses]}
    )


def rank_training(loss: RankLoss) -> Facts:
    """A small network learns to rank the settings of kernels."""
    losses = []
    embedding = replace(SMALL, outputs=8)
    config = RankTrainConfig(RankNetworkConfig(embedding, head=16), loss=loss, updates=30, batch=8)
    weights = FlagRanks.fit(
        flag_times(_some()), config, members=1,
        report=lambda member, step, value: losses.append(value),
    )  # fmt: skip
    scores = weights.order(kernels_of(KERNEL_SETS[0]))
    return _weights(None, weights.networks[0].params) | {
        "scores": moments([scores]),
        "losses": [short(x) for x in losses],
    }


def boosted_training() -> Facts:
    """Boosted trees learn the seconds of a few measured kernels."""
    some = _some()
    seconds = plain_seconds(some)
    vocabulary = vocabulary_of(some.kernels.graph.op_type)
    summed = summed_features(kernel_features(some.kernels, vocabulary), len(vocabulary))
    trees = BoostedTrees.fit(SummedKernels(summed, seconds), BoostedConfig(trees=50))
    found = trees.predict(summed)
    return {"features": moments([summed]), "log seconds": moments([np.log(found)])}


def residual_learning() -> Facts:
    """A Gaussian process learns how far predictions are off on a few measured kernels."""
    some = _some()
    features = compared_features(some.kernels)
    predicted = predict_kernels(KernelPredictor.load(kernel_models()[0]), some.kernels).seconds
    residual = np.log(plain_seconds(some) / predicted)
    learned = Residuals.fit(ResidualExamples(features, residual))
    return {
        "length": learned.length,
        "noise": learned.noise,
        "residuals": moments([learned.predict(compared_features(kernels_of(KERNEL_SETS[0])))]),
    }


def kernel_models() -> tuple[str, ...]:
    """Return the names of the learned cost models that ship."""
    return tuple(sorted(path.stem for path in KERNEL_MODELS.glob("*.npz")))


def ranks() -> tuple[str, ...]:
    """Return the names of the ranks that ship."""
    return tuple(sorted(path.stem for path in RANKS.glob("*.npz")))


HAS_TREES = find_spec("lightgbm") is not None
"""Whether the optional extra is here."""
LEARNERS: Sequence[tuple[str, Callable[[], Facts]]] = (
    ("kernel-model", kernel_model_training),
    *((f"ranks/{loss}", partial(rank_training, loss)) for loss in get_args(RankLoss)),
    *((("boosted-trees", boosted_training),) if HAS_TREES else ()),
    ("residuals", residual_learning),
)
"""Every learner of seconds and ranks."""
