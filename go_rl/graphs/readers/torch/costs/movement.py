"""Operators that only move data, make constants, or cost nothing at all."""

from __future__ import annotations

from go_rl.graphs.readers.arithmetic.closed_forms import Strides, view_strides
from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.tables import names

WHOLE_VIEWS = names(
    "adjoint alias alpha_dropout atleast_1d atleast_2d atleast_3d broadcast_to _conj conj"
    " contiguous cpu cuda data detach dropout expand expand_as feature_alpha_dropout"
    " feature_dropout flatten lift lift_fresh mH mT _make_dep_token matrix_H moveaxis movedim"
    " _neg_view numpy_T permute ravel requires_grad_ reshape _reshape_alias reshape_as"
    " resolve_conj resolve_neg squeeze swapaxes swapdims t to transpose unflatten _unsafe_view"
    " unsqueeze view view_as view_as_complex view_as_real"
)
"""Operators whose result is their operand by another shape: no work, no node."""
COPYING_VIEWS = names("contiguous flatten ravel reshape reshape_as")
"""Views of `WHOLE_VIEWS` that copy an operand whose strides do not allow a view."""
IDLE_DROPOUT = names("alpha_dropout dropout feature_alpha_dropout feature_dropout native_dropout")
"""Views of `WHOLE_VIEWS` outside of training only."""
PARTIAL_VIEWS = names(
    "as_strided chunk diagonal dsplit hsplit imag indices linalg_diagonal narrow real select"
    " slice split split_with_sizes tensor_split unbind unfold unsafe_chunk unsafe_split"
    " unsafe_split_with_sizes values vsplit"
)
"""Views of a part: a node without work, so that only the part is sent to other devices."""
SILENT = names(
    "_assert_async _assert_scalar _assert_tensor_metadata dim _functional_assert_async"
    " _functional_assert_scalar is_contiguous is_floating_point is_pinned is_same_size item"
    " _linalg_check_errors _local_scalar_dense numel _print record_stream size stride"
    " sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size"
    " sym_storage_offset sym_stride"
)
"""Operators that read or check sizes and single numbers."""
CONSTANTS = names(
    "arange bartlett_window blackman_window _efficientzerotensor empty empty_like empty_permuted"
    " empty_strided eye fft_fftfreq fft_rfftfreq full full_like hamming_window hann_window"
    " kaiser_window linspace logspace new_empty new_empty_strided new_full new_ones new_zeros"
    " ones ones_like range scalar_tensor tensor tril_indices triu_indices vander zeros"
    " zeros_like"
)
"""Operators whose results are known before the first step when their inputs are."""
LIKE = names(
    "empty_like full_like new_empty new_empty_strided new_full new_ones new_zeros ones_like"
    " rand_like randint_like randn_like zeros_like"
)
"""Operators that read the shape of a tensor only, not what it holds."""
MOVEMENT = names(
    "affine_grid_generator alias_copy as_strided_copy block_diag broadcast_tensors"
    " cartesian_prod cat channel_shuffle clone column_stack combinations complex concat"
    " concatenate constant_pad_nd copy detach_copy diag diag_embed diagflat diagonal_backward"
    " diagonal_copy dstack expand_copy fft_fftshift fft_ifftshift fill fill_diagonal flip fliplr"
    " flipud hstack lift_fresh_copy lu_unpack meshgrid native_channel_shuffle"
    " _nested_tensor_size _nested_view_from_buffer _pack_padded_sequence pad _pad_circular"
    " _pad_enum _pad_packed_sequence pad_sequence permute_copy _pin_memory pin_memory"
    " pixel_shuffle pixel_unshuffle polar reflection_pad1d reflection_pad1d_backward"
    " reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward"
    " repeat repeat_interleave replication_pad1d replication_pad1d_backward replication_pad2d"
    " replication_pad2d_backward replication_pad3d replication_pad3d_backward _reshape_copy"
    " resize resize_as roll rot90 row_stack segment_reduce select_backward select_copy set"
    " _shape_as_tensor slice_backward slice_copy split_copy split_with_sizes_copy squeeze_copy"
    " stack t_copy tile to_dense to_sparse transpose_copy unbind_copy unfold_backward"
    " unfold_copy unsqueeze_copy value_selecting_reduction_backward view_as_real_copy view_copy"
    " vstack zero"
)
"""Operators that only move data."""
COLLECTIVE_SUMS = names("all_reduce all_reduce_ all_reduce_coalesced reduce_scatter_tensor"
                        " reduce_scatter_tensor_coalesced")  # fmt: skip
"""Collectives that add: 1 FLOP an element that a device holds."""
COLLECTIVES = names(
    "all_gather_into_tensor all_gather_into_tensor_coalesced all_gather_into_tensor_out"
    " all_to_all_single broadcast broadcast_ irecv isend permute_tensor recv scatter send"
)
"""Collectives that move data."""
COLLECTIVE_DOMAINS = ("_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "c10d")
"""Libraries of collectives."""


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
    if op in COPYING_VIEWS and call.result.size == call.operand().size:
        return strides is None or (
            view_strides(call.operand().shape, strides, call.result.shape) is not None
        )
    return True
