"""FLOP of reductions, pooling, normalisation and losses, as sums over their decomposition."""

from __future__ import annotations

import math

from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost_rules import (
    Costs,
    Formula,
    arg_reduction,
    per_element,
    per_input,
    reduction,
    sort,
)
from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.readers.torch.costs.elementwise import larger
from go_rl.graphs.readers.torch.costs.products import spread


def _rows(call: TorchCall) -> int:
    """Number of rows along the axis that is reduced."""
    shape, axis = call.operand().shape, call.get("dim", -1)
    width = shape[axis] if shape and isinstance(axis, int) else 1
    return call.operand().size // max(1, width)


def softmax(call: TorchCall) -> float:
    """Maximum, subtract, exp (a transcendental), sum, divide: ``4n`` less a reduction's start."""
    return 4.0 * call.operand().size - _rows(call)


def top_k(call: TorchCall) -> float:
    """`decompositions.top_k` along the axis."""
    k = call.get("k", 1)
    return dense.top_k(call.operand().size, k if isinstance(k, int) else 1)


def pool(each: int, once: int, rank: int) -> Formula:
    """``each`` FLOP an element of the window, padding included as in XLA's reduce-window, and
    ``once`` a result."""

    def flops(call: TorchCall) -> float:
        window = math.prod(spread(call.get("kernel_size", 1), rank, 1))
        return float((each * window + once) * call.result.size)

    return flops


def layer_norm(call: TorchCall) -> float:
    """Mean, centre, square, mean, divide, scale, bias: ``7n`` (6 without bias) and epsilon."""
    x = call.operand("input")
    width = math.prod(call.get("normalized_shape", [1]))
    return (5.0 + call.has("weight") + call.has("bias")) * x.size + x.size // max(1, width)


def rms_norm(call: TorchCall) -> float:
    """Square, mean, divide, scale: ``4n`` and epsilon."""
    x = call.operand("input")
    width = math.prod(call.get("normalized_shape", [1]))
    return (3.0 + call.has("weight")) * x.size + x.size // max(1, width)


def batch_norm(call: TorchCall) -> float:
    """Subtract mean, multiply by ``scale * rsqrt(variance + epsilon)``, add bias: ``3n + 2C``; the
    moments of a batch: ``4n``."""
    x = call.operand("input", "self")
    channels = x.shape[1] if len(x.shape) > 1 else 1
    training = call.get("training", "legit" in call.op and "no_training" not in call.op)
    return 3.0 * x.size + 2.0 * channels + 4.0 * bool(training) * x.size


def resized_sum(call: TorchCall) -> float:
    """Each element of the larger side once."""
    return float(max(call.operand().size, call.result.size))


def resize(per_axis: int, axes: int) -> Formula:
    """``per_axis`` FLOP for each axis that changes and each element of the larger side."""

    def flops(call: TorchCall) -> float:
        before, after = call.operand().shape[-axes:], call.result.shape[-axes:]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        return float(per_axis * changed * max(call.operand().size, call.result.size))

    return flops


def _resizes(kind: str, per_axis: int, axes: int) -> dict[str, Costs]:
    ops = f"upsample_{kind} upsample_{kind}_backward"
    return {ops: resize(per_axis, axes)}


REDUCTION: dict[str, Costs] = {
    "adaptive_avg_pool1d _adaptive_avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool3d"
    " adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d":
        resized_sum,
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward"
    " adaptive_max_pool2d_backward adaptive_max_pool3d_backward":
        resized_sum,
    "all amax amin aminmax any hash_tensor prod sum trace": reduction(),
    "nansum": reduction(before=1),
    "argmax argmin": arg_reduction,
    "avg_pool1d": pool(1, 0, 1),
    "avg_pool2d": pool(1, 0, 2),
    "avg_pool3d": pool(1, 0, 3),
    "avg_pool2d_backward": pool(1, 0, 2),
    "avg_pool3d_backward": pool(1, 0, 3),
    "max_pool1d max_pool1d_with_indices": pool(1, -1, 1),
    "fractional_max_pool2d max_pool2d max_pool2d_with_indices mkldnn_max_pool2d": pool(1, -1, 2),
    "max_pool3d max_pool3d_with_indices": pool(1, -1, 3),
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward": per_input(1),
    "batch_norm _batch_norm_impl_index _batch_norm_no_update _batch_norm_with_update"
    " _batch_norm_with_update_functional cudnn_batch_norm miopen_batch_norm native_batch_norm"
    " _native_batch_norm_legit _native_batch_norm_legit_functional"
    " _native_batch_norm_legit_no_training": batch_norm,
    "batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward"
    " native_batch_norm_backward": per_input(12, "input"),
    "cosine_similarity": per_input(6),
    "count_nonzero": reduction(before=1),
    "cross_entropy_loss": per_input(5),
    # XLA's naive lowering of these to reduce-window would count n an element.
    "cummax _cummax_helper cummin _cummin_helper cumprod cumsum logcumsumexp": per_element(1),
    "_ctc_loss ctc_loss": per_input(8),
    "diff": per_element(1),
    "embedding_renorm": per_input(2),
    "group_norm instance_norm native_group_norm": per_input(7, "input"),
    "native_group_norm_backward": per_input(12, "input"),
    "cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss"
    " mse_loss multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward"
    " poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss": per_input(4),
    "bincount histc histogram": per_input(2),
    "argsort kthvalue median mode msort nanmedian nanquantile quantile sort _unique2"
    " unique_consecutive unique_dim": sort,
    "layer_norm native_layer_norm": layer_norm,
    "native_layer_norm_backward": per_input(12, "input"),
    "dist frobenius_norm linalg_matrix_norm linalg_norm linalg_vector_norm native_norm norm"
    " norm_except_dim nuclear_norm":
        reduction(before=1),
    "_log_softmax log_softmax _masked_softmax _safe_softmax _softmax softmax special_log_softmax"
    " special_softmax": softmax,
    "_log_softmax_backward_data _masked_softmax_backward _softmax_backward_data": per_input(4),
    "logsumexp special_logsumexp": reduction(before=2, after=3),
    "max min": larger,
    "mean nanmean": reduction(after=1),
    "nll_loss nll_loss2d nll_loss2d_forward nll_loss_forward"
    " nll_loss_nd": per_input(3, "target"),
    "nll_loss2d_backward nll_loss_backward": per_element(1),
    "renorm _weight_norm _weight_norm_interface": per_input(3),
    "_weight_norm_interface_backward": per_input(6),
    "_fused_rms_norm rms_norm": rms_norm,
    "_fused_rms_norm_backward": per_input(10, "input"),
    "searchsorted": per_element(1),
    "std std_mean var var_mean": reduction(before=3, after=2),
    "topk": top_k,
}  # fmt: skip
"""FLOP of each reduction."""
RESIZING: dict[str, Costs] = {
    **_resizes("nearest1d", 0, 1),
    **_resizes("nearest2d", 0, 2),
    **_resizes("nearest3d", 0, 3),
    **_resizes("linear1d", 3, 1),
    **_resizes("bilinear2d", 3, 2),
    **_resizes("trilinear3d", 3, 3),
    **_resizes("bicubic2d", 7, 2),
    "_upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d"
    " _upsample_nearest_exact2d_backward _upsample_nearest_exact3d"
    " _upsample_nearest_exact3d_backward": resize(0, 1),
    "_upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_lanczos2d_aa": resize(3, 2),
    "_upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward": resize(7, 2),
}
"""FLOP of resampling."""
