"""`Geometry` of PyTorch's operators, from their settings and the shapes of their operands."""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core.graph.geometry import Geometry, window_geometry
from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.readers.torch.costs.products import paddings, spread
from go_rl.graphs.tables import by_name

Rule = Callable[[TorchCall], Geometry]


def torch_geometry(call: TorchCall) -> Geometry:
    """Return the geometry of an operator; what nothing is known of has the plain one."""
    domain, _, name = call.op.partition(".")
    rule = _RULES.get(name) if domain == "aten" and call.results else None
    return Geometry() if rule is None else rule(call)


def _convolution(call: TorchCall) -> Geometry:
    kernel = call.operand("weight").shape[2:]
    rank = len(kernel)
    strides = spread(call.get("stride", 1), rank, 1)
    dilations = spread(call.get("dilation", 1), rank, 1)
    padding = 2.0 * sum(max(0, pad) for pad in paddings(call, kernel, dilations))
    transposed = "transpose" in call.op or bool(call.get("transposed", False))
    by_side = ((), strides) if transposed else (strides, ())
    groups = max(1, call.get("groups", 1))
    return window_geometry(kernel, by_side[0], padding, dilations, by_side[1], groups)


def _pool(rank: int) -> Rule:
    def rule(call: TorchCall) -> Geometry:
        kernel = spread(call.get("kernel_size", 1), rank, 1)
        strides = spread(call.get("stride", None) or kernel, rank, 1)
        padding = 2.0 * sum(spread(call.get("padding", 0), rank, 0))
        dilations = spread(call.get("dilation", 1), rank, 1)
        return window_geometry(kernel, strides, padding, dilations, minor=kernel[-1] > 1)

    return rule


def _along(default: int) -> Rule:
    """Operators along one axis, or several: whether the last is among them."""

    def rule(call: TorchCall) -> Geometry:
        rank = len(call.operand().shape)
        found = call.get("dim", default)
        axes = found if isinstance(found, list) else [found]
        last = any(isinstance(a, int) and rank and a % rank == rank - 1 for a in axes)
        return Geometry(minor=float(last or not axes))

    return rule


def _resized(call: TorchCall) -> Geometry:
    """Whether the result differs in the last dimension."""
    return Geometry(minor=float(call.operand().shape[-1:] != call.result.shape[-1:]))


_RULES: dict[str, Rule] = by_name(
    {
        "_convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
        " convolution convolution_backward": _convolution,
        "avg_pool1d max_pool1d": _pool(1),
        "avg_pool2d max_pool2d max_pool2d_with_indices": _pool(2),
        "avg_pool3d max_pool3d max_pool3d_with_indices": _pool(3),
        "_log_softmax _softmax argmax argmin cumsum log_softmax softmax topk": _along(-1),
        "amax amin any mean prod sum var": _along(-1),
        "cat embedding gather index_select split stack": _along(0),
        "constant_pad_nd expand pad repeat slice": _resized,
        "linear": lambda call: Geometry(minor=3.0),
        "addmm baddbmm bmm dot einsum matmul mm mv": lambda call: Geometry(minor=1.0),
    }
)
