"""FLOP and bytes of indexed reads and writes: only what is read or written counts."""

from __future__ import annotations

from go_rl.graphs.readers import cost_rules
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost_rules import Costs, no_flops, per_element, per_input, sampled
from go_rl.graphs.readers.torch.call import TorchCall


def gather_bytes(call: TorchCall) -> float:
    """Only the elements gathered are read: twice the result, and the indices."""
    operands = list(call.tensors)
    indices = sum(t.nbytes for t in operands[1:])
    return 2.0 * call.result.nbytes + indices


def updates(call: TorchCall) -> float:
    """Elements that are written."""
    written = call.get("src", call.get("source", call.get("values", call.get("value"))))
    if hasattr(written, "size"):
        return float(written.size)
    return float(call.operand("index", "mask").size if call.has("index") else call.result.size)


def update_bytes(call: TorchCall) -> float:
    """XLA's scatter in place: updates read, written and read back; indices read."""
    operands = list(call.tensors)
    indices = sum(t.nbytes for t in operands[1:])
    return 3.0 * updates(call) * call.result.itemsize + indices


def combined(call: TorchCall) -> float:
    """One FLOP an update when updates are combined, none when they replace."""
    combining = call.get("accumulate", False) or call.has("reduce")
    return updates(call) if combining else 0.0


def embedding_bag(call: TorchCall) -> float:
    """One FLOP an element of each row that is added, one more where rows are weighted."""
    rows, width = call.operand("indices").size, call.operand("weight").shape[-1]
    return float(rows * width * (1 + call.has("per_sample_weights")))


def embedding_bag_bytes(call: TorchCall) -> float:
    """The rows that are added, the indices and the result."""
    weight, indices = call.operand("weight"), call.operand("indices")
    rows = indices.size * weight.shape[-1] * weight.itemsize
    return rows + indices.nbytes + call.result.nbytes


def grid_sampler(call: TorchCall) -> float:
    """`sampled` at the points of a grid."""
    per_axis = {0: 3, 1: 0, 2: 7}.get(call.get("interpolation_mode", 0), 3)
    return sampled(call.operand("grid"), call.result, per_axis)


def non_max_suppression(call: TorchCall) -> float:
    """A sort of the scores and 12 FLOP for each pair of boxes that may be compared."""
    boxes = call.operand("scores").size
    return dense.sort(boxes) + 12.0 * boxes * min(boxes, call.result.size)


def deformable_convolution(call: TorchCall) -> float:
    """`cost_rules.deformable_convolution`, and the bias."""
    arrays = call.operand("input"), call.operand("weight"), call.result
    masked = bool(call.get("use_mask"))
    return cost_rules.deformable_convolution(*arrays, masked) + call.result.size


GATHER: dict[str, Costs] = {
    "embedding gather index index_select masked_select take take_along_dim _unsafe_index"
    " _unsafe_masked_index": (no_flops, gather_bytes),
    "col2im im2col": per_element(1),
    "embedding_backward embedding_dense_backward": per_input(1, "grad_output", "grad"),
    "_embedding_bag embedding_bag _embedding_bag_forward_only": (
        embedding_bag,
        embedding_bag_bytes,
    ),
    "_embedding_bag_backward _embedding_bag_dense_backward": per_input(1, "grad"),
    "_embedding_bag_per_sample_weights_backward": per_input(2, "grad"),
    "grid_sampler grid_sampler_2d grid_sampler_3d": grid_sampler,
    "grid_sampler_2d_backward grid_sampler_3d_backward": per_input(12),
    "index_put _index_put_impl index_reduce put scatter scatter_reduce _unsafe_index_put"
    " _unsafe_masked_index_put_accumulate": (combined, update_bytes),
    "index_add scatter_add": (updates, update_bytes),
    "as_strided_scatter diagonal_scatter index_copy index_fill masked_scatter"
    " masked_scatter_backward select_scatter slice_scatter": (no_flops, update_bytes),
    "max_unpool2d max_unpool3d": no_flops,
    "argwhere nonzero nonzero_static one_hot": per_input(1),
}
"""FLOP and bytes of each indexed operator."""
