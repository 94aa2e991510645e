"""Small made-up programs for tests: their seconds follow from their features."""

from dataclasses import replace
from functools import cache

import numpy as np

from go_rl.costs.programs.features import LEAF_NUMBERS, CompactAst, pack_asts
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.network import ProgramNetworkConfig
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.measure.data import ProgramTarget

TINY = ProgramNetworkConfig(
    input_units=8, encoder_layers=1, heads=2, feedforward_units=8, embedding_layers=(8,),
    embedding=4, device_layers=(4,), decoder_layers=(8,),
)  # fmt: skip
TINY_RUN = ProgramTrainConfig(TINY, updates=150, batch=16, learning_rate=1e-2)
NETWORKS = ("red", "green", "blue")


def made_up_programs(programs: int = 160, tasks: int = 20, seed: int = 0) -> ProgramExamples:
    """Return programs of one or two leaves on two targets, equally many of each task; seconds are
    2^(first number of the leaves), half on the second target."""
    rng = np.random.default_rng(seed)
    task = np.arange(programs) % tasks
    asts, seconds = [], []
    target = (np.arange(programs) // tasks) % 2
    for number, where in zip(task.tolist(), target.tolist(), strict=True):
        leaves = 1 + number % 2
        vectors = np.zeros((leaves, LEAF_NUMBERS), np.float32)
        vectors[:, 0] = number / 4 + rng.random(leaves)
        vectors[:, 1] = rng.random(leaves)
        asts.append(CompactAst(vectors, np.arange(leaves) * 2 + 1))
        seconds.append(1e-5 * np.exp2(vectors[:, 0]).sum() / (1 + where))
    devices = np.full((2, len(TARGET_FEATURES)), np.nan)
    devices[:, -1] = (5.0, 6.0)
    inputs = ProgramInputs(
        asts=pack_asts(asts), task=task, target=target, tasks=(None,) * tasks,
        networks=tuple((NETWORKS[i % 3],) for i in range(tasks)),
        targets=(ProgramTarget("cpu", "x86-64-v3"), ProgramTarget("cpu", "x86-64-v4")),
        devices=devices, nest=np.arange(programs), trace=np.arange(programs),
    )  # fmt: skip
    return ProgramExamples(inputs, np.array(seconds, np.float64), np.full(programs, 0.01))


def with_leaves(examples: ProgramExamples, leaves: int) -> ProgramInputs:
    """Return one program that has another number of leaves."""
    ast = CompactAst(np.zeros((leaves, LEAF_NUMBERS), np.float32), np.arange(leaves))
    one = examples.inputs.take(np.array([0]))
    return replace(one, asts=pack_asts([ast]))


@cache
def learned_programs() -> ProgramPredictor:
    """Return two networks that learned `made_up_programs`, for all tests that look at some."""
    return ProgramPredictor.fit(made_up_programs(), TINY_RUN, members=2)
