"""Views: results that are their operand by another shape, and when a reshape must copy."""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.readers.torch.costs.movement import COPYING_VIEWS, IDLE_DROPOUT, WHOLE_VIEWS

Strides = tuple[int, ...] | None


def is_whole_view(call: TorchCall, strides: Strides, result_strides: Strides) -> bool:
    """Return whether an operator's result is its first operand by another shape.

    Args:
        strides: of that operand; None: contiguous.
        result_strides: of the result.
    """
    domain, _, op = call.op.partition(".")
    if domain != "aten" or op not in WHOLE_VIEWS or not call.results:
        return False
    if op in IDLE_DROPOUT and (call.get("train", True) or len(call.results) > 1):
        return False
    if op == "contiguous":
        return strides is None or strides == result_strides
    if op in COPYING_VIEWS and call.result.size == call.tensor().size:
        return strides is None or is_viewable(call.tensor().shape, strides, call.result.shape)
    return True


def is_viewable(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether an array can have another shape without a copy (``computeStride`` of ATen):
    neighbouring axes that are joined or divided must lie in memory as one."""
    axis, size, wanted = len(target) - 1, 1, 1
    base = strides[-1] if strides else 1
    for d in range(len(shape) - 1, -1, -1):
        size *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == size * base):
            continue
        while axis >= 0 and (wanted < size or target[axis] == 1):
            wanted *= target[axis]
            axis -= 1
        if wanted != size:
            return not size
        size, wanted, base = 1, 1, strides[d - 1]
    return all(extent == 1 for extent in target[: axis + 1])
