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
from go_rl.costs.programs.nests import nest_to_json
from go_rl.costs.programs.nests.nest import Access, ForLoop, LoopNest, NestBuffer, Statement
from go_rl.costs.programs.workloads import TensorTask

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


def with_nests_and_traces(programs: int = 8, tasks: int = 4) -> ProgramExamples:
    """Return programs of one or two leaves: a loop around the first, and, of programs of two, a
    loop in it around the second; schedules differ by a tile size."""
    examples = made_up_programs(programs, tasks)
    inputs = examples.inputs
    # `made_up_programs` has leaves at 1 and 3: a loop (0), leaf, -1, leaf.
    nests = tuple(nest_to_json(nest_of(count)) for count in inputs.leaves.tolist())
    traces = tuple(trace_of(number) for number in range(programs))
    known = tuple(TensorTask("matmul", (1, 2 + i, 8, 8)) for i in range(tasks))
    return replace(examples, inputs=replace(inputs, nests=nests, traces=traces, tasks=known))


def nest_of(statements: int) -> LoopNest:
    """Return a loop around so many statements, in a row."""
    buffers = tuple(NestBuffer(f"b{i}", (4,)) for i in range(statements))
    body = tuple(Statement(Access(i, (0,))) for i in range(statements))
    return LoopNest(buffers, (ForLoop(4, "serial", body),))


def trace_of(tile: int) -> str:
    """Return a schedule that tiles and vectorises."""
    return (
        "# from tvm import s_tir\n"
        "def apply_trace(sch: s_tir.Schedule) -> None:\n"
        '  b0 = sch.get_sblock(name="matmul", func_name="main")\n'
        f"  v1, v2 = sch.sample_perfect_tile(loop=l0, n=2, max_innermost_factor=64, "
        f"decision=[{2**tile}, 4])\n"
        "  l3, l4 = sch.split(loop=l0, factors=[v1, v2], preserve_unit_iters=True)\n"
        "  sch.vectorize(loop=l4)\n"
    )
