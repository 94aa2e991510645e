"""Tasks as tensor expressions of TVM. Needs TVM: ``pip install 'go_rl[tvm]'``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from go_rl.costs.programs.workloads.task import FUSED_OPS, TensorTask
from go_rl.costs.timing.tvm_calls import import_tvm

EPSILON = 1e-5
"""Epsilon added to a variance."""


def task_module(task: TensorTask) -> Any:
    """Return a TVM module whose function ``main`` takes the operands and then the result.

    Raises:
        MissingDependencyError: TVM is not installed.
        TaskError: a window is larger than its image.
    """
    tvm = import_tvm()
    tensors = _TENSORS[task.op](tvm, task)
    if task.op in FUSED_OPS:
        tensors = _with_epilogue(tvm, task.steps, tensors)
    function = tvm.te.create_prim_func(list(tensors))
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def _with_epilogue(tvm: Any, steps: Sequence[str], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands and the result with these steps behind it."""
    te, (*operands, result) = tvm.te, tensors
    for number, step in enumerate(steps):
        if step in ACTIVATIONS:
            result = ACTIVATIONS[step](tvm.topi, result)
            continue
        shape = result.shape if step == "add" else result.shape[-1:]
        other = te.placeholder(shape, "float32", f"operand{number}")
        result = tvm.topi.add(result, other)
        operands.append(other)
    return (*operands, result)


def _gelu(topi: Any, x: Any) -> Any:
    return topi.multiply(topi.multiply(x, 0.5), topi.add(topi.erf(topi.multiply(x, 0.5**0.5)), 1.0))


def _gelu_tanh(topi: Any, x: Any) -> Any:
    cube = topi.multiply(topi.multiply(topi.multiply(x, x), x), 0.044715)
    bent = topi.fast_tanh(topi.multiply(topi.add(x, cube), 0.7978846))
    return topi.multiply(topi.multiply(x, 0.5), topi.add(bent, 1.0))


def _elu(topi: Any, x: Any) -> Any:
    below = topi.subtract(topi.fast_exp(x), 1.0)
    return topi.add(topi.nn.relu(x), topi.minimum(below, 0.0))


ACTIVATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "relu": lambda topi, x: topi.nn.relu(x), "gelu": _gelu, "gelu_tanh": _gelu_tanh, "elu": _elu,
    "silu": lambda topi, x: topi.multiply(x, topi.sigmoid(x)),
})  # fmt: skip
"""Steps of an epilogue that take no operand, as TVM's operators and their fast approximations."""


def _conv2d(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    size, te = task.named, tvm.te
    inside, outside = size["channels"] // size["groups"], size["filters"] // size["groups"]
    image, padded = _image(tvm, task)
    window = (size["kernel_height"], size["kernel_width"], inside)
    weight = te.placeholder((*window, size["filters"]), "float32", "weight")
    y, x, c = (te.reduce_axis((0, n), name) for n, name in zip(window, "yxc", strict=True))
    stride = size["stride"]
    result = te.compute(
        (size["batch"], *task.output_side, size["filters"]),
        lambda n, i, j, f: te.sum(
            padded[n, i * stride + y, j * stride + x, _group(f, outside, size) * inside + c]
            * weight[y, x, c, f],
            axis=[y, x, c],
        ),
        "conv2d",
    )
    return image, weight, result


def _group(filter_: Any, outside: int, size: dict[str, int]) -> Any:
    return 0 if size["groups"] == 1 else filter_ // outside


def _depthwise(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    size, te = task.named, tvm.te
    image, padded = _image(tvm, task)
    window = (size["kernel_height"], size["kernel_width"])
    weight = te.placeholder((*window, size["channels"]), "float32", "weight")
    y, x = (te.reduce_axis((0, n), name) for n, name in zip(window, "yx", strict=True))
    stride = size["stride"]
    result = te.compute(
        (size["batch"], *task.output_side, size["channels"]),
        lambda n, i, j, c: te.sum(
            padded[n, i * stride + y, j * stride + x, c] * weight[y, x, c], axis=[y, x]
        ),
        "depthwise_conv2d",
    )
    return image, weight, result


def _pool(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    size, te = task.named, tvm.te
    most = task.op == "max_pool"
    image, padded = _image(tvm, task, -3.4e38 if most else 0.0)
    window = (size["kernel_height"], size["kernel_width"])
    y, x = (te.reduce_axis((0, n), name) for n, name in zip(window, "yx", strict=True))
    combine, stride = te.max if most else te.sum, size["stride"]
    shape = (size["batch"], *task.output_side, size["channels"])
    pooled = te.compute(
        shape,
        lambda n, i, j, c: combine(padded[n, i * stride + y, j * stride + x, c], axis=[y, x]),
        task.op,
    )
    if most:
        return image, pooled
    share = 1.0 / (window[0] * window[1])
    return image, te.compute(shape, lambda *at: pooled(*at) * share, "mean")


def _image(tvm: Any, task: TensorTask, around: float = 0.0) -> tuple[Any, Any]:
    """Return the image and a copy of it within a frame; no copy where there is none."""
    size, te, tirx = task.named, tvm.te, tvm.tirx
    high, wide, frame = size["height"], size["width"], size["padding"]
    shape = (size["batch"], high, wide, size["channels"])
    image = te.placeholder(shape, "float32", "image")
    if not frame:
        return image, image
    padded = te.compute(
        (size["batch"], high + 2 * frame, wide + 2 * frame, size["channels"]),
        lambda n, y, x, c: tirx.if_then_else(
            tirx.all(y >= frame, y < high + frame, x >= frame, x < wide + frame),
            image[n, y - frame, x - frame, c],
            tirx.const(around, "float32"),
        ),
        "padded",
    )
    return image, padded


def _matmul(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    size, te = task.named, tvm.te
    batch, rows, columns, depth = task.sizes
    k = te.reduce_axis((0, depth), "k")
    if size["batch"] == 1:
        left = te.placeholder((rows, depth), "float32", "left")
        right = te.placeholder((depth, columns), "float32", "right")
        product = lambda i, j: te.sum(left[i, k] * right[k, j], axis=k)  # noqa: E731
        return left, right, te.compute((rows, columns), product, "matmul")
    left = te.placeholder((batch, rows, depth), "float32", "left")
    right = te.placeholder((batch, depth, columns), "float32", "right")
    result = te.compute(
        (batch, rows, columns),
        lambda b, i, j: te.sum(left[b, i, k] * right[b, k, j], axis=k),
        "batch_matmul",
    )
    return left, right, result


def _softmax(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    te, tirx = tvm.te, tvm.tirx
    rows, columns = task.sizes
    given = te.placeholder((rows, columns), "float32", "given")
    j, k = te.reduce_axis((0, columns), "j"), te.reduce_axis((0, columns), "k")
    most = te.compute((rows,), lambda i: te.max(given[i, j], axis=j), "most")
    power = te.compute((rows, columns), lambda i, c: tirx.exp(given[i, c] - most[i]), "power")
    total = te.compute((rows,), lambda i: te.sum(power[i, k], axis=k), "total")
    result = te.compute((rows, columns), lambda i, c: power[i, c] / total[i], "softmax")
    return given, result


def _layer_norm(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    te, tirx = tvm.te, tvm.tirx
    rows, columns = task.sizes
    given = te.placeholder((rows, columns), "float32", "given")
    j, k = te.reduce_axis((0, columns), "j"), te.reduce_axis((0, columns), "k")
    share = 1.0 / columns
    total = te.compute((rows,), lambda i: te.sum(given[i, j], axis=j), "total")
    square = te.compute((rows,), lambda i: te.sum(given[i, k] * given[i, k], axis=k), "square")
    result = te.compute(
        (rows, columns),
        lambda i, c: (
            (given[i, c] - total[i] * share)
            * tirx.rsqrt(square[i] * share - total[i] * share * total[i] * share + EPSILON)
        ),
        "layer_norm",
    )
    return given, result


def _reduce_sum(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    te = tvm.te
    rows, columns = task.sizes
    given = te.placeholder((rows, columns), "float32", "given")
    j = te.reduce_axis((0, columns), "j")
    return given, te.compute((rows,), lambda i: te.sum(given[i, j], axis=j), "reduce_sum")


def _elementwise(tvm: Any, task: TensorTask) -> tuple[Any, ...]:
    te, tirx, (elements,) = tvm.te, tvm.tirx, task.sizes
    given = te.placeholder((elements,), "float32", "given")
    other = te.placeholder((elements,), "float32", "other")
    joined = {
        "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y, "maximum": tirx.max, "power": tirx.power,
    }  # fmt: skip
    alone = {"exp": tirx.exp, "logistic": tirx.sigmoid, "rsqrt": tirx.rsqrt, "tanh": tirx.tanh,
             "erf": tirx.erf}  # fmt: skip

    def applied(step: str, last: Any, name: str) -> Any:
        if step in joined:
            return te.compute((elements,), lambda i: joined[step](last[i], other[i]), name)
        return te.compute((elements,), lambda i: alone[step](last[i]), name)

    value: Any = given
    for number, step in enumerate(task.steps):
        value = applied(step, value, f"{step}{number}")
    binary = any(step in joined for step in task.steps)
    return (given, other, value) if binary else (given, value)


_TENSORS = {
    "conv2d": _conv2d, "depthwise_conv2d": _depthwise, "matmul": _matmul, "max_pool": _pool,
    "average_pool": _pool, "softmax": _softmax, "layer_norm": _layer_norm,
    "reduce_sum": _reduce_sum, "elementwise": _elementwise,
}  # fmt: skip
