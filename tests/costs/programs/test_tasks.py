"""Tasks of networks: sizes, FLOP, JSON, and what a graph of the zoo holds."""

from typing import Any

import pytest

from go_rl.api.measure import tensor_tasks
from go_rl.core import TrainingError, ZooError
from go_rl.costs.programs.measure.collect import listed_drawings
from go_rl.costs.programs.workloads import TaskError, TensorTask
from go_rl.costs.timing.config import ProgramsConfig

CONVOLUTION = TensorTask("conv2d", (1, 56, 56, 64, 128, 3, 3, 2, 1, 1))


def test_flop_by_hand():
    assert CONVOLUTION.output_side == (28, 28)
    assert CONVOLUTION.flops == 2 * 28 * 28 * 128 * 64 * 9
    assert TensorTask("matmul", (2, 3, 5, 7)).flops == 2 * 2 * 3 * 5 * 7
    assert TensorTask("depthwise_conv2d", (1, 8, 8, 4, 3, 3, 1, 1)).flops == 2 * 64 * 4 * 9
    assert TensorTask("elementwise", (10,), ("add", "tanh")).flops == 20


def test_json_brings_a_task_back():
    for task in (CONVOLUTION, TensorTask("elementwise", (10,), ("add",))):
        assert TensorTask.from_json(task.to_json()) == task
    assert CONVOLUTION.workload != TensorTask("matmul", (1, 2, 3, 4)).workload


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TensorTask("conv3d", ()), "did you mean 'conv2d'"),
        (lambda: TensorTask("softmax", (3,)), "softmax has the sizes rows, columns"),
        (lambda: TensorTask("softmax", (3, -1)), "columns must be a whole number"),
        (lambda: TensorTask("elementwise", (3,)), "has steps"),
        (lambda: TensorTask("elementwise", (3,), ("sinh",)), "unknown step"),
        (lambda: TensorTask("max_pool", (1, 2, 2, 1, 3, 3, 1, 0)).flops, "larger than the image"),
        (lambda: TensorTask.from_json("{}"), "not a task"),
    ],
)
def test_tasks_that_cannot_be_are_refused(make: Any, said: str):
    with pytest.raises(TaskError, match=said):
        make()


def test_bad_configurations_are_named():
    with pytest.raises(TrainingError, match="candidates must be >= 1"):
        ProgramsConfig(candidates=0)
    with pytest.raises(TaskError, match="did you mean 'x86-64-v3'"):
        listed_drawings(ProgramsConfig(codegen=("x86-64v3",)), ())
    with pytest.raises(ZooError):
        tensor_tasks(ProgramsConfig(networks=("resnet17",)))
