"""Random split schedules: what they compute, and how many there are. They need TVM."""

import numpy as np
import pytest

tvm = pytest.importorskip("tvm", reason="pip install 'go_rl[tvm]'")

from go_rl.costs.programs.workloads import TensorTask, task_module  # noqa: E402
from go_rl.costs.programs.workloads.drawn_programs import (  # noqa: E402
    Drawing,
    codegen_target,
    draw_programs,
)
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
