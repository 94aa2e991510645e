"""Launches of matrix products and convolutions, their sizes read off FLOP, shapes and weights.

A result of C elements that sums over N has 2·C·N FLOP; of operands with X and Y elements,
X·Y / (C·N²) products were batched. What PyTorch adds: a linear layer adds its bias in the same
launch, and a batched product first copies an operand whose batch dimensions do not lie together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isqrt, prod

from go_rl.core import OpKind
from go_rl.costs.operator_sizes import FLOAT_BYTES, window_reach
from go_rl.costs.operators.launches.launch import Launch, moved, stream
from go_rl.costs.operators.launches.operator_view import OperatorView

NAMED = re.compile("matmul|gemm|einsum|fully_connected|dot|inner|linear$|m[mv]$|mm_v2$|activation$")
"""Part of the names of products of two matrices, besides those that `opcode` calls dot_general."""
OTHER = re.compile("attention|grouped|ragged|multi|chain|bilinear|nbits|bnb4|_bwd|_fwd")
"""Part of names that have a part of `NAMED`, too, and are none."""
DEPTHWISE = "depthwise convolution"
"""Description of a depthwise convolution: a library has a kernel for it, priced by its bytes."""


def product_launches(view: OperatorView, node: int, bias: tuple[int, ...]) -> Iterator[Launch]:
    """Yield the launches of a product: copies of its operands, then itself.

    Args:
        view: of the graph.
        node: of kind MATMUL or CONVOLUTION.
        bias: nodes that add its bias, and the views between.
    """
    if view.graph.kind[node] == OpKind.CONVOLUTION:
        yield _convolution(view, node)
        return
    batch, rows, columns, depth = product_sizes(view, node)
    if batch > 1:
        yield from _copies(view, node, batch)
    op = "bmm" if batch > 1 else "linear"
    sizes = {"batch": batch, "rows": rows, "depth": depth, "columns": columns}
    what = "linear and bias" if bias else ("batched product" if batch > 1 else "linear")
    if not _is_product(view, node):
        yield Launch(op, sizes, (node, *bias), f"{view.op[node]} by its FLOP", unlike=True)
        return
    yield Launch(op, sizes, (node, *bias), what)


def _is_product(view: OperatorView, node: int) -> bool:
    """Whether a node of kind MATMUL is one product of two matrices, or of a batch of them, and its
    sizes fit its operands; weights may have a bias beside the matrix."""
    if view.op[node] != "dot_general":
        name = view.graph.op_type[node].lower().rpartition(".")[2]
        if not NAMED.search(name) or OTHER.search(name):
            return False
    batch, rows, columns, depth = product_sizes(view, node)
    left, right = batch * rows * depth, batch * depth * columns
    one, two = _operand_elements(view, node)
    if not view.weights[node]:
        return sorted((one, two)) == sorted((left, right))
    return (one == left and two in (right, right + columns)) or (
        one == right and two in (left, left + rows)
    )


def product_sizes(view: OperatorView, node: int) -> tuple[int, int, int, int]:
    """Return batch, rows, columns and depth."""
    made = view.elements[node]
    depth = max(1, int(float(view.graph.flops[node]) / (2.0 * made)))
    one, two = _operand_elements(view, node)
    batch = 1
    if view.graph.op_type[node] != "Gemm":
        batch = max(1, round(one * two / (made * depth**2)))
    rows, columns = one // (batch * depth), two // (batch * depth)
    if batch * rows * columns != made:
        # Operands that are read in part, or more than two: the last dimension is the columns.
        batch, columns = 1, view.shape[node][-1] if view.shape[node] else 1
        return batch, made // columns, columns, depth
    if not _ends_in(_result_shape(view, node), columns) and _ends_in(
        _result_shape(view, node), rows
    ):
        rows, columns = columns, rows
    return batch, rows, columns, depth


def _operand_elements(view: OperatorView, node: int) -> tuple[int, int]:
    """Elements of the two operands, weights as the second."""
    read = [view.elements[o] for o in view.operands[node]] or [view.weights[node]]
    if view.weights[node]:
        return read[0], view.weights[node]
    if len(read) > 2:
        read = sorted(read, reverse=True)
    return read[0], read[min(1, len(read) - 1)]


def _result_shape(view: OperatorView, node: int) -> tuple[int, ...]:
    """Shape of the result, after the transposition that is its only user, if there is one."""
    users = view.users[node]
    if len(users) == 1 and view.op[users[0]] == "transpose" and not view.backward[node]:
        return view.shape[users[0]]
    return view.shape[node]


def _ends_in(shape: tuple[int, ...], size: int) -> bool:
    """Whether the product of the last dimensions, of some number of them, is a size."""
    return any(prod(shape[start:]) == size for start in range(len(shape)))


def _copies(view: OperatorView, node: int, batch: int) -> Iterator[Launch]:
    """Copies of operands whose batch dimensions do not come first, as `torch.matmul` makes them;
    with a batch of one they need none."""
    shape = view.shape[node]
    if not shape or shape[0] == 1 or view.backward[node]:
        return
    lead = next((n for n in range(1, len(shape)) if prod(shape[:n]) == batch), 0)
    for operand in view.operands[node]:
        given = view.shape[operand]
        if lead > 1 and given[:lead] != shape[:lead] and view.op[operand] != "transpose":
            yield stream("copy", given, (), "copy of an operand")


def _convolution(view: OperatorView, node: int) -> Launch:
    kernel, groups = (max(1, _whole(view.geometry(node, name))) for name in ("window", "groups"))
    shape = list(view.shape[node]) or [1]
    weights = view.weights[node]
    last = view.geometry(node, "minor") == 1
    filters = shape[1] if len(shape) > 2 and not last else shape[-1]
    made = view.elements[node]
    weights -= filters * (weights % (kernel * filters) == filters)  # the bias
    if not weights or len(shape) < 3 or weights % (kernel * filters):
        return _unfolded(view, node, max(shape[-1], shape[min(1, len(shape) - 1)]))
    channels = weights // (kernel * filters) * groups
    dilated = _is_dilated(view, node, kernel)
    if kernel == 1 and not dilated:  # without padding, so that FLOP tell it, with a bias or not
        channels = int(float(view.graph.flops[node]) / (2.0 * made)) * groups
    spatial = shape[1:-1] if last else shape[2:]
    square = len(spatial) == 2 and len(set(spatial)) == 1
    if kernel == 1 and groups == 1 and not (square or dilated):
        sizes = {"batch": 1, "rows": made // filters, "depth": channels, "columns": filters}
        return Launch("linear", sizes, (node,), "1 × 1 convolution")
    even = square and not dilated and _is_even(view, node, channels, last)
    if groups == channels == filters and even and not last:
        size = _square(view, node, channels, filters, last).sizes
        return Launch("depthwise", size, (node,), DEPTHWISE)
    if groups == channels:
        num_bytes = FLOAT_BYTES * (sum(view.elements[o] for o in view.operands[node]) + made)
        return moved(num_bytes, shape[-1], (node,), DEPTHWISE, unlike=True)
    if not even:
        return _unfolded(view, node, filters)
    found = _square(view, node, channels, filters, last)
    if groups == 1:
        return found
    sizes = {**found.sizes, "groups": groups}
    return Launch("grouped", sizes, (node,), f"{found.what} in {groups} groups")


def _is_dilated(view: OperatorView, node: int, kernel: int) -> bool:
    """Whether holes lie between the taps of a kernel of several, or between the elements of the
    image: the convolution is transposed, or the gradient of one with a stride."""
    spread = _whole(view.geometry(node, "input_dilation")) != 1
    return spread or (kernel > 1 and _whole(view.geometry(node, "window_dilation")) != 1)


def _is_even(view: OperatorView, node: int, channels: int, last: bool) -> bool:
    """Whether a kernel and stride of equal sides make a square result of the image.

    A geometry has the products of both sides, and the sum of the padding. Where the image is known
    (an operand with its channels in their place), its side and that of the result must fit the
    roots of these and equal padding. Kernels and strides of unequal sides that round to the same
    sizes cannot be told from these.
    """
    kernel, stride = (max(1, _whole(view.geometry(node, name))) for name in ("window", "stride"))
    side, step = isqrt(kernel), isqrt(stride)
    if side**2 != kernel or step**2 != stride:
        return False
    given = view.shape[view.operands[node][0]]
    if len(given) != 4 or given[3 if last else 1] != channels:
        return True
    padding = max(0, _whole(view.geometry(node, "padding")))
    height, width = given[1:3] if last else given[2:]
    out = view.shape[node][1 if last else 2]
    fits = (height + padding // 2 - side) // step + 1 == out
    return height == width and padding % 2 == 0 and fits


def _square(view: OperatorView, node: int, channels: int, filters: int, last: bool) -> Launch:
    """A convolution of square images and kernels, as the table has it."""
    kernel = isqrt(_whole(view.geometry(node, "window")))
    stride = isqrt(_whole(view.geometry(node, "stride")))
    padding = -(-max(0, _whole(view.geometry(node, "padding"))) // 4)
    out = view.shape[node][1 if last else 2]
    given = view.shape[view.operands[node][0]]
    side = (
        given[1 if last else 2] if len(given) == 4 else window_reach(out, kernel, stride, padding)
    )
    sizes = {
        "batch": view.elements[node] // (filters * out * out), "input_channel": channels,
        "output_channel": filters, "kernel_size": kernel, "input_size": side, "stride": stride,
        "padding": padding,
    }  # fmt: skip
    return Launch("conv", sizes, (node,), f"{kernel} × {kernel} convolution")


def _unfolded(view: OperatorView, node: int, filters: int) -> Launch:
    """Any other convolution: the product of its unfolded image, by its FLOP."""
    made = view.elements[node]
    depth = max(1, round(float(view.graph.flops[node]) / (2 * made)))
    sizes = {"batch": 1, "rows": max(1, made // filters), "depth": depth, "columns": filters}
    return Launch("linear", sizes, (node,), "convolution by its FLOP", unlike=True)


def _whole(number: float) -> int:
    return round(number) if number == number else 1
