"""The distinct tasks of a network's graph, operator by operator.

Convolutions, products and pooling windows follow from shapes, FLOP, weights and geometry; windows
and images that are no squares are left out, as are larger paddings on one side. A softmax is
recognised by its exponential that is summed, a layer norm by the reciprocal root of one number a
row. Element-wise operators on the same shape, each the next one's only user, are one group. What
remains (layout, gathers, sums along other axes) is no task. Products are priced in float32, rows
and columns as the result has them: `go_rl.costs.operators.launches` reads those that PyTorch runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isqrt, prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from go_rl.core.graph.geometry import GEOMETRY
from go_rl.costs.operator_sizes import window_reach
from go_rl.costs.programs.workloads.task import STEPS, TaskError, TensorTask
from go_rl.graphs.cutting.opcode_names import opcode

if TYPE_CHECKING:
    from go_rl.core import OpGraph

STEP_OF = MappingProxyType({opcode(step): step for step in STEPS} | {"add_any": "add"})
"""JAX's primitives as steps of an element-wise group."""
LONGEST_GROUP = 6
LEAST_ELEMENTS = 1024
"""Element-wise groups and reductions on fewer elements are left out."""


def network_tasks(graph: OpGraph) -> tuple[TensorTask, ...]:
    """Return the distinct tasks of a graph read from JAX, as the zoo's are, in order."""
    return tuple(task_uses(graph))


def task_uses(graph: OpGraph) -> dict[TensorTask, int]:
    """Return the distinct tasks, each with the number of operators (or groups) that are it."""
    return dict(Counter((*_single(graph), *_groups(graph))))


def _single(graph: OpGraph) -> Iterator[TensorTask]:
    makers = {
        "conv_general_dilated": _convolution, "dot_general": _product, "reduce_sum": _sum,
        "reduce_window_max": _window, "reduce_window_sum": _window, "exp": _softmax,
        "rsqrt": _layer_norm,
    }  # fmt: skip
    for node, op in enumerate(graph.op_type):
        maker = makers.get(op)
        if maker is None or graph.is_backward[node]:
            continue
        try:
            task = maker(graph, node)
            if task is not None and task.flops > 0:
                yield task
        except TaskError:  # sizes that make no such operator, such as a window of one row
            continue


def _shape(graph: OpGraph, node: int) -> tuple[int, ...]:
    return tuple(int(size) for size in graph.output_shape[node] if size >= 0)


def _users(graph: OpGraph, node: int) -> list[int]:
    offsets, edges = graph.successors
    return graph.receivers[edges[offsets[node] : offsets[node + 1]]].tolist()


def _operands(graph: OpGraph, node: int) -> list[int]:
    offsets, edges = graph.predecessors
    return graph.senders[edges[offsets[node] : offsets[node + 1]]].tolist()


def _geometry(graph: OpGraph, node: int, name: str) -> float:
    assert graph.geometry is not None
    return float(graph.geometry[node, GEOMETRY.index(name)])


def _square(number: float) -> int:
    side = isqrt(int(number))
    if side * side != number:
        raise TaskError(f"{number:g} is no square")
    return side


def _windowed(graph: OpGraph, node: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return batch, input side twice and channels out; kernel side twice and stride; padding."""
    shape = _shape(graph, node)
    if len(shape) != 4 or shape[1] != shape[2]:
        raise TaskError(f"a result of shape {shape} is no square image")
    kernel, stride = (_square(_geometry(graph, node, n)) for n in ("window", "stride"))
    if _geometry(graph, node, "window_dilation") * _geometry(graph, node, "input_dilation") != 1:
        raise TaskError("a dilated window")
    padding = -(-int(_geometry(graph, node, "padding")) // 4)
    side = max(window_reach(shape[1], kernel, stride, padding), 1)
    return (shape[0], side, side, shape[3]), (kernel, kernel, stride), padding


def _convolution(graph: OpGraph, node: int) -> TensorTask | None:
    (batch, side, _, filters), window, padding = _windowed(graph, node)
    itemsize = graph.weight_itemsize[node]
    if itemsize == 0 or _geometry(graph, node, "minor") != 1:
        return None
    groups = int(_geometry(graph, node, "groups"))
    kept = window[0] * window[1] * filters
    channels = round(float(graph.weight_bytes[node] / itemsize)) // kept * groups
    if groups == channels == filters and groups > 1:
        return TensorTask("depthwise_conv2d", (batch, side, side, filters, *window, padding))
    if window == (1, 1, 1) and groups == 1:
        return TensorTask("matmul", (1, batch * side * side, filters, channels))
    sizes = (batch, side, side, channels, filters, *window, padding, groups)
    return TensorTask("conv2d", sizes)


def _product(graph: OpGraph, node: int) -> TensorTask | None:
    shape = _shape(graph, node)
    depth = round(float(graph.flops[node]) / (2 * prod(shape)))
    if graph.weight_itemsize[node] > 0:
        columns = round(float(graph.weight_bytes[node] / graph.weight_itemsize[node])) // depth
        return TensorTask("matmul", (1, prod(shape) // max(columns, 1), columns, depth))
    if len(shape) < 2:
        return None
    return TensorTask("matmul", (prod(shape[:-2]), *shape[-2:], depth))


def _window(graph: OpGraph, node: int) -> TensorTask | None:
    image, window, padding = _windowed(graph, node)
    op = "max_pool" if graph.op_type[node].endswith("max") else "average_pool"
    return TensorTask(op, (*image, *window, padding))


def _softmax(graph: OpGraph, node: int) -> TensorTask | None:
    shape = _shape(graph, node)
    summed = any(graph.op_type[user] == "reduce_sum" for user in _users(graph, node))
    if not summed or prod(shape) < LEAST_ELEMENTS:
        return None
    return TensorTask("softmax", (prod(shape[:-1]), shape[-1]))


def _layer_norm(graph: OpGraph, node: int) -> TensorTask | None:
    rows = prod(_shape(graph, node))
    for user in _users(graph, node):
        shape = _shape(graph, user)
        if rows > 1 and prod(shape) >= LEAST_ELEMENTS and prod(shape[:-1]) == rows:
            return TensorTask("layer_norm", (rows, shape[-1])) if shape[-1] > 1 else None
    return None


def _sum(graph: OpGraph, node: int) -> TensorTask | None:
    before = [_shape(graph, operand) for operand in _operands(graph, node)]
    if len(before) != 1 or not _geometry(graph, node, "minor"):
        return None
    (shape,) = before
    along_last = prod(_shape(graph, node)) == prod(shape[:-1])
    if not along_last or prod(shape) < LEAST_ELEMENTS:
        return None
    return TensorTask("reduce_sum", (prod(shape[:-1]), shape[-1]))


def _groups(graph: OpGraph) -> Iterator[TensorTask]:
    """Yield chains of element-wise operators."""
    chains: dict[int, list[str]] = {}
    for node, op in enumerate(graph.op_type):
        if op not in STEP_OF or graph.is_backward[node]:
            continue
        chains[node] = [*_continued(graph, node, chains), STEP_OF[op]]
    for node, chain in chains.items():
        if prod(_shape(graph, node)) >= LEAST_ELEMENTS:
            yield TensorTask("elementwise", (prod(_shape(graph, node)),), tuple(chain))


def _continued(graph: OpGraph, node: int, chains: dict[int, list[str]]) -> list[str]:
    """Take the chain that a node prolongs, if there is one."""
    for operand in _operands(graph, node):
        short = operand in chains and len(chains[operand]) < LONGEST_GROUP
        alone = len(_users(graph, operand)) == 1
        if short and alone and _shape(graph, operand) == _shape(graph, node):
            return chains.pop(operand)
    return []
