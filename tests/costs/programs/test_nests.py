"""Loop nests, and tasks of tensor programs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.api.measure import tensor_tasks
from go_rl.core import ZooError
from go_rl.costs.programs.measure.collect import listed_drawings
from go_rl.costs.programs.nests import (
    MOST_LEAVES,
    OPERATION_NAMES,
    Access,
    ForLoop,
    IndexOperation,
    LoopNest,
    LoopVariable,
    NestBuffer,
    NestError,
    Statement,
    check_nest,
    nest_from_json,
    nest_to_json,
    parallel_launches,
)
from go_rl.costs.programs.nests.index import index_from_json, index_to_json
from go_rl.costs.programs.workloads import TaskError, TensorTask
from go_rl.costs.timing.config import ProgramsConfig

I0, I1, I2 = map(LoopVariable, range(3))
MULTIPLY_ADD = tuple(int(n in ("float_mul", "float_add_sub")) for n in OPERATION_NAMES)


def matmul() -> LoopNest:
    """C[4, 8] = A[4, 16] B[16, 8], its first loop parallel and its last a vector."""
    a, b, c = NestBuffer("A", (4, 16)), NestBuffer("B", (16, 8)), NestBuffer("C", (4, 8))
    clear = Statement(Access(2, (I0, I1)), constant=True)
    write, k = Access(2, (I0, I1)), I2
    add = Statement(
        write, (write, Access(0, (I0, k)), Access(1, (k, I1))), MULTIPLY_ADD
    )  # fmt: skip
    inner = ForLoop(16, "unrolled", (add,))
    return LoopNest((a, b, c), (ForLoop(4, "parallel", (ForLoop(8, "serial", (clear, inner)),)),))


def test_json_brings_the_nest_back():
    local = NestBuffer("T", (), "local", inside=1)
    nest = replace(matmul(), buffers=(*matmul().buffers, local), gpu=True)
    assert nest_from_json(nest_to_json(nest)) == nest


def test_parallel_loops_are_entered_as_often_as_the_loops_around_them_say():
    inner = matmul().body[0]
    assert isinstance(inner, ForLoop)
    once = ForLoop(1, "parallel", inner.body)
    nested = ForLoop(2, "parallel", (inner,))
    for body, count in ((inner,), 1), ((inner, inner), 2), ((ForLoop(3, "serial", (inner,)),), 3), (
        (once, nested, inner), 2
    ), ((once,), 0):  # fmt: skip
        assert parallel_launches(nest_to_json(replace(matmul(), body=body))) == count


def indices() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.integers(-9, 9), st.builds(LoopVariable, st.integers(0, 3)))
    kinds = st.sampled_from(("+", "-", "*", "min", "max"))
    divisions = st.sampled_from(("//", "%"))

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        divided = st.builds(IndexOperation, divisions, inner, st.integers(1, 9))
        return st.one_of(st.builds(IndexOperation, kinds, inner, inner), divided)

    return st.recursive(leaves, deeper, max_leaves=8)


@given(indices())
def test_json_brings_an_index_back(index):
    assert index_from_json(json.loads(json.dumps(index_to_json(index)))) == index


def changed(**fields: Any) -> LoopNest:
    return replace(matmul(), **fields)


BODY = matmul().body
A_LOOP = ForLoop(2, body=(Statement(Access(2, (0, 0))),))


@pytest.mark.parametrize(
    ("nest", "said"),
    [
        (changed(body=()), "a loop nest without a statement"),
        (changed(body=(replace(A_LOOP, extent=-2),)), "loop 0: extent .* >= 1, not -2"),
        (changed(body=(replace(A_LOOP, annotation="unroled"),)), "did you mean 'unrolled'"),
        (changed(body=(replace(A_LOOP, auto_unroll=-1),)), "auto_unroll must be"),
        (changed(body=(*BODY, ForLoop(2))), "loop 3 repeats nothing"),
        (changed(body=A_LOOP.body * (MOST_LEAVES + 1)), "65 leaves; at most 64"),
        (changed(buffers=(NestBuffer("A", (4, 16), dtype="float16"),)), "type is float16; only"),
        (changed(buffers=(NestBuffer("A", (4, 0)),)), r"'A': a shape has .* not \(4, 0\)"),
        (changed(buffers=(NestBuffer("A", (4,), inside=3),)), "inside of loop 3; there are 3"),
        (changed(body=(Statement(Access(3, ())),)), "statement 0: buffer 3 of 3"),
        (changed(body=(Statement(Access(0, (0,))),)), "1 indices into buffer 'A' of 2"),
        (changed(body=(Statement(Access(0, (I0, 0))),)), "loop 0 is not around it"),
        (
            changed(body=(Statement(Access(0, (IndexOperation("%", 3, 0), 0))),)),
            "divisor of '%' must be a whole number above 0",
        ),
        (changed(body=(Statement(Access(0, (0, 0)), operations=(1,)),)), "must be 16 whole"),
    ],
)
def test_a_broken_nest_is_refused(nest, said):
    with pytest.raises(NestError, match=said):
        check_nest(nest)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "of version 2; this version of go_rl reads 1"),
        ({"gpu": 1}, "'gpu' must be true or false"),
        ({"nodes": [[0, 4, 99, 0]]}, "annotation 99"),
        ({"nodes": [[1, 4, 0, 0]]}, "a node of depth 1 behind 0 open loops"),
        ({"nodes": [[0, 4]]}, "a loop is"),
        ({"nodes": [{"d": 0}]}, "a statement is"),
        ({"nodes": [{"d": 0, "w": [0, "j"], "r": [], "o": {}}]}, "an index is"),
        ({"nodes": [{"d": 0, "w": [], "r": [], "o": {}}]}, "an access is"),
        ({"nodes": [{"d": 0, "w": [0], "r": [], "o": {"float_sin": 1}}]}, "operations have"),
        ({"buffers": [["A", [2], "global"]]}, "a buffer is"),
        ({"buffers": 3}, "buffers must be a list"),
        ({"more": 3}, "a loop nest is an object of"),
    ],
)
def test_json_that_is_no_nest_is_refused(change, said):
    document = json.loads(nest_to_json(matmul())) | change
    with pytest.raises(NestError, match=said):
        nest_from_json(json.dumps(document))


def test_what_is_no_json_is_refused():
    with pytest.raises(NestError, match="a loop nest is not JSON"):
        nest_from_json("{")


CONVOLUTION = TensorTask("conv2d", (1, 56, 56, 64, 128, 3, 3, 2, 1, 1))


def test_flop_by_hand():
    assert CONVOLUTION.output_side == (28, 28)
    assert CONVOLUTION.flops == 2 * 28 * 28 * 128 * 64 * 9
    assert TensorTask("matmul", (2, 3, 5, 7)).flops == 2 * 2 * 3 * 5 * 7
    assert TensorTask("depthwise_conv2d", (1, 8, 8, 4, 3, 3, 1, 1)).flops == 2 * 64 * 4 * 9
    assert TensorTask("elementwise", (10,), ("add", "tanh")).flops == 20


def test_json_brings_a_task_back():
    fused = replace(CONVOLUTION, steps=("bias", "relu"))
    for task in (CONVOLUTION, fused, TensorTask("elementwise", (10,), ("add",))):
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
        (
            lambda: TensorTask("softmax", (3, 4), ("bias",)),
            "an elementwise group, and nothing else but .* has steps",
        ),
        (lambda: replace(CONVOLUTION, steps=("biased",)), "conv2d: unknown step.*'bias'"),
        (lambda: TensorTask("max_pool", (1, 2, 2, 1, 3, 3, 1, 0)).flops, "larger than the image"),
        (lambda: TensorTask.from_json("{}"), "not a task"),
    ],
)
def test_tasks_that_cannot_be_are_refused(make, said):
    with pytest.raises(TaskError, match=said):
        make()


def test_bad_configurations_are_named():
    with pytest.raises(TaskError, match="did you mean 'x86-64-v3'"):
        listed_drawings(ProgramsConfig(codegen=("x86-64v3",)), ())
    with pytest.raises(ZooError):
        tensor_tasks(ProgramsConfig(networks=("resnet17",)))
