"""Views: results that are their operand by another shape."""

from __future__ import annotations

from go_rl.graphs.readers.arithmetic.view_strides import Strides, view_strides
from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.readers.torch.costs.movement import COPYING_VIEWS, IDLE_DROPOUT, WHOLE_VIEWS


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
        return strides is None or (
            view_strides(call.tensor().shape, strides, call.result.shape) is not None
        )
    return True
