"""What drawn programs compute: split schedules, and epilogues. They need TVM."""

from math import erf

import numpy as np
import pytest

tvm = pytest.importorskip("tvm", reason="pip install 'go_rl[tvm]'")

from go_rl.costs.programs.workloads import TensorTask, task_module  # noqa: E402
from go_rl.costs.programs.workloads.drawn_programs import Drawing, codegen_target, draw_programs  # noqa: E402
from go_rl.costs.programs.workloads.split_schedules import split_schedules  # noqa: E402

TASKS = [
    TensorTask("elementwise", (96,), ("subtract", "exp", "maximum")),
    TensorTask("reduce_sum", (12, 40)),
    TensorTask("max_pool", (1, 6, 6, 8, 3, 3, 2, 1)),
    TensorTask("average_pool", (1, 4, 4, 8, 2, 2, 1, 0)),
]


def computed(module: object, arrays: list[np.ndarray]) -> np.ndarray:
    """The last operand after a run of a module's function."""
    kernel = tvm.compile(module, target=codegen_target("x86-64-v2")).jit()
    held = [tvm.runtime.tensor(array, tvm.cpu()) for array in arrays]
    kernel["main"](*held)
    return held[-1].numpy()


def test_a_task_without_a_schedule_is_drawn_as_its_loops_are():
    (found,) = draw_programs(Drawing.plain(TASKS[0], "x86-64-v3"))
    tvm.ir.assert_structural_equal(found.sch.mod, task_module(TASKS[0]))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.op)
def test_every_schedule_computes_what_the_task_says(task):
    rng = np.random.default_rng(0)
    drawn = split_schedules(task, 6, 0)
    shapes = [tuple(map(int, each.shape)) for each in drawn[0].args_info]
    arrays = [rng.random(shape, np.float32) for shape in shapes]
    expected = computed(task_module(task), arrays)
    for each in drawn:
        np.testing.assert_allclose(computed(each.sch.mod, arrays), expected, rtol=1e-5)


EPILOGUES = {
    ("bias", "relu"): lambda x: np.maximum(x, 0),
    ("bias", "gelu"): lambda x: 0.5 * x * (1 + np.vectorize(erf)(x / 2**0.5)),
    ("bias", "gelu_tanh"): lambda x: (
        0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    ),
    ("bias", "elu"): lambda x: np.where(x > 0, x, np.expm1(x)),
    ("bias", "silu"): lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("steps", EPILOGUES, ids="+".join)
def test_an_epilogue_is_computed_behind_its_product(steps):
    rng = np.random.default_rng(0)
    left, right, bias = (rng.normal(size=size).astype(np.float32) for size in ((4, 8), (8, 6), 6))
    task = TensorTask("matmul", (1, 4, 6, 8), steps)
    found = computed(task_module(task), [left, right, bias, np.zeros((4, 6), np.float32)])
    np.testing.assert_allclose(found, EPILOGUES[steps](left @ right + bias), rtol=1e-4, atol=1e-5)


def test_an_epilogue_may_add_an_array():
    rng = np.random.default_rng(0)
    left, right, other = (rng.random(size, np.float32) for size in ((4, 8), (8, 6), (4, 6)))
    module = task_module(TensorTask("matmul", (1, 4, 6, 8), ("add",)))
    found = computed(module, [left, right, other, np.zeros((4, 6), np.float32)])
    np.testing.assert_allclose(found, left @ right + other, rtol=1e-5)
