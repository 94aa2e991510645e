"""The distinct tasks of a network: its traced program, operator by operator.

Convolutions, products and pooling windows are taken as they are. A softmax is recognised by its
exponential beside a maximum along the last axis, a layer norm by a reciprocal root beside sums
along it. Element-wise operators on the same number of elements, each the next one's operand, are
one group. What remains (layout, gathers, training's scatters) is no task.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from go_rl.programs.tasks.task import TaskError, TensorTask

STEP_OF = {
    "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide",
    "max": "maximum", "exp": "exp", "logistic": "logistic", "rsqrt": "rsqrt", "tanh": "tanh",
    "erf": "erf", "pow": "power",
}  # fmt: skip
"""JAX's primitives as steps of an element-wise group."""
LONGEST_GROUP = 6
LEAST_ELEMENTS = 1024
"""Element-wise groups and reductions on fewer elements are left out."""


def network_tasks(jaxpr: Any) -> tuple[TensorTask, ...]:
    """Return the distinct tasks of a traced program (`jax.make_jaxpr`), in order."""
    found: dict[TensorTask, None] = {}
    for body in _bodies(jaxpr):
        for task in (*_heavy(body), *_rows(body), *_groups(body)):
            found.setdefault(task)
    return tuple(found)


def _bodies(jaxpr: Any) -> Iterator[Any]:
    """Yield a program and those that it calls."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    yield body
    for equation in body.eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, list | tuple) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _bodies(inner)


def _heavy(body: Any) -> Iterator[TensorTask]:
    makers = {
        "conv_general_dilated": _convolution, "dot_general": _product,
        "reduce_window_max": _window, "reduce_window_sum": _window,
    }  # fmt: skip
    for equation in body.eqns:
        maker = makers.get(equation.primitive.name)
        if maker is not None and str(equation.outvars[0].aval.dtype) == "float32":
            try:
                task = maker(equation)
            except TaskError:  # a window with another stride or padding in each dimension
                continue
            if task is not None:
                yield task


def _convolution(equation: Any) -> TensorTask | None:
    image, weight = (x.aval.shape for x in equation.invars)
    said = equation.params
    numbers = said["dimension_numbers"]
    plain = max((*said["lhs_dilation"], *said["rhs_dilation"]), default=1) == 1
    if len(image) != 4 or not plain or said["batch_group_count"] > 1:
        return None
    batch, channels, high, wide = (image[d] for d in numbers.lhs_spec)
    filters, _, kernel_high, kernel_wide = (weight[d] for d in numbers.rhs_spec)
    groups = said["feature_group_count"]
    stride, padding = said["window_strides"][0], _frame(said["padding"])
    window = (kernel_high, kernel_wide, stride)
    if groups == channels == filters and groups > 1:
        sizes = (batch, high, wide, channels, *window, padding)
        return TensorTask("depthwise_conv2d", sizes)
    if kernel_high == kernel_wide == stride == 1 and groups == 1 and not padding:
        return TensorTask("matmul", (1, batch * high * wide, filters, channels))
    sizes = (batch, high, wide, channels, filters, *window, padding, groups)
    return TensorTask("conv2d", sizes)


def _frame(padding: Any) -> int:
    """Return the padding of each side: the larger one where two differ by rounding."""
    return max((side for pair in padding for side in pair), default=0)


def _product(equation: Any) -> TensorTask:
    left, right = (x.aval.shape for x in equation.invars)
    (left_depth, _), (left_batch, _) = equation.params["dimension_numbers"]
    batch, depth = prod(left[d] for d in left_batch), prod(left[d] for d in left_depth)
    rows = prod(left) // (batch * depth)
    return TensorTask("matmul", (batch, rows, prod(right) // (batch * depth), depth))


def _window(equation: Any) -> TensorTask | None:
    image, said = equation.invars[0].aval.shape, equation.params
    window, strides = said["window_dimensions"], said["window_strides"]
    if len(image) != 4 or window[0] != 1 or window[3] != 1:
        return None
    op = "max_pool" if equation.primitive.name.endswith("max") else "average_pool"
    return TensorTask(op, (*image, *window[1:3], strides[1], _frame(said["padding"])))


def _rows(body: Any) -> Iterator[TensorTask]:
    """Yield softmax, layer norm and sums along the last axis."""
    maxima, sums = _along_last(body, "reduce_max"), _along_last(body, "reduce_sum")
    names = {e.primitive.name for e in body.eqns}
    exponents = {e.outvars[0].aval.shape for e in body.eqns if e.primitive.name == "exp"}
    for shape in sums:
        if prod(shape) < LEAST_ELEMENTS:
            continue
        sizes = (prod(shape[:-1]), shape[-1])
        if shape in maxima and shape in exponents:
            yield TensorTask("softmax", sizes)
        elif "rsqrt" in names and len(shape) > 1:
            yield TensorTask("layer_norm", sizes)
        else:
            yield TensorTask("reduce_sum", sizes)


def _along_last(body: Any, name: str) -> dict[tuple[int, ...], None]:
    """Return the shapes that are reduced along their last axis, in order."""
    return {
        e.invars[0].aval.shape: None
        for e in body.eqns
        if e.primitive.name == name
        and tuple(e.params["axes"]) == (len(e.invars[0].aval.shape) - 1,)
        and str(e.invars[0].aval.dtype) == "float32"
    }


def _groups(body: Any) -> Iterator[TensorTask]:
    """Yield chains of element-wise operators."""
    uses: dict[Any, int] = {}
    for equation in body.eqns:
        for operand in equation.invars:
            if hasattr(operand, "count") or not hasattr(operand, "val"):
                uses[operand] = uses.get(operand, 0) + 1
    chains: dict[Any, list[str]] = {}
    for equation in body.eqns:
        step, result = STEP_OF.get(equation.primitive.name), equation.outvars[0]
        if step is None or str(result.aval.dtype) != "float32":
            continue
        before = next((x for x in equation.invars if not hasattr(x, "val") and x in chains), None)
        chain: list[str] = []
        if before is not None and uses.get(before) == 1 and before.aval.shape == result.aval.shape:
            chain = chains.pop(before)
            if len(chain) == LONGEST_GROUP:
                yield _group(chain, before)
                chain = []
        chains[result] = [*chain, step]
    for result, chain in chains.items():
        if prod(result.aval.shape) >= LEAST_ELEMENTS:
            yield _group(chain, result)


def _group(chain: list[str], result: Any) -> TensorTask:
    return TensorTask("elementwise", (max(1, prod(result.aval.shape)),), tuple(chain))
