"""Operators that only move data, make constants, or cost nothing at all."""

from __future__ import annotations

from go_rl.graphs.readers.tables import names

WHOLE_VIEWS = names(
    "_conj _neg_view _reshape_alias _unsafe_view adjoint alias broadcast_to cast conj contiguous"
    " data detach dropout expand expand_as flatten lift lift_fresh matrix_H moveaxis movedim mH"
    " mT numpy_T permute ravel refine_names rename reshape reshape_as resolve_conj resolve_neg"
    " squeeze swapaxes swapdims t to transpose unflatten unsqueeze view view_as view_as_complex"
    " view_as_real feature_dropout alpha_dropout feature_alpha_dropout rrelu_eval"
    " atleast_1d atleast_2d atleast_3d requires_grad_ _make_dep_token _functional_sym_constrain"
)
"""Operators whose result is their operand by another shape: no work, no node."""
COPYING_VIEWS = names("contiguous flatten ravel reshape reshape_as")
"""Views of `WHOLE_VIEWS` that copy an operand whose strides do not allow a view."""
IDLE_DROPOUT = names("alpha_dropout dropout feature_alpha_dropout feature_dropout native_dropout")
"""Views of `WHOLE_VIEWS` outside of training only."""
PARTIAL_VIEWS = names(
    "as_strided chunk diagonal dsplit hsplit imag linalg_diagonal narrow real select slice"
    " split split_with_sizes tensor_split unbind unfold unsafe_chunk unsafe_split"
    " unsafe_split_with_sizes vsplit values indices"
)
"""Views of a part: a node without work, so that only the part is sent to other devices."""
SILENT = names(
    "_assert_async _assert_scalar _assert_tensor_metadata _functional_assert_async"
    " _functional_assert_scalar _local_scalar_dense _nested_tensor_size _print _shape_as_tensor"
    " dim is_contiguous is_floating_point is_pinned is_same_size item numel record_stream size"
    " stride sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size"
    " sym_storage_offset sym_stride _record_function_enter_new _record_function_exit"
)
"""Operators that read or check sizes and single numbers."""
CONSTANTS = names(
    "_efficientzerotensor arange bartlett_window blackman_window empty empty_like"
    " empty_permuted empty_strided eye full full_like hamming_window hann_window kaiser_window"
    " linspace logspace new_empty new_empty_strided new_full new_ones new_zeros ones ones_like"
    " range scalar_tensor tensor tril_indices triu_indices vander zeros zeros_like"
)
"""Operators whose results are known before the first step when their inputs are."""
MOVEMENT = names(
    "_pad_circular _pad_enum _reshape_copy _nested_view_from_buffer alias_copy affine_grid_generator"
    " block_diag bitcast broadcast_tensors cat channel_shuffle clone column_stack combinations"
    " complex concat concatenate constant_pad_nd copy copysign_view cartesian_prod"
    " detach_copy diag diag_embed diagonal_copy dstack expand_copy fill fill_diagonal flip fliplr"
    " flipud glu_split hstack lift_fresh_copy meshgrid native_channel_shuffle pad pad_sequence"
    " permute_copy pixel_shuffle pixel_unshuffle polar reflection_pad1d reflection_pad2d"
    " reflection_pad3d reflection_pad1d_backward reflection_pad2d_backward repeat"
    " repeat_interleave replication_pad1d replication_pad2d replication_pad3d"
    " replication_pad2d_backward resize roll rot90 row_stack select_backward select_copy set"
    " slice_backward slice_copy split_copy split_with_sizes_copy squeeze_copy stack t_copy"
    " tile to_dense to_sparse transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy"
    " vstack zero diagonal_backward unfold_backward constant_pad new_tensor _cast_Float _cast_Half"
    " value_selecting_reduction_backward view_as_real_copy as_strided_copy expand_backward"
)
"""Operators that only move data."""
COLLECTIVE_SUMS = names("all_reduce all_reduce_coalesced reduce_scatter_tensor"
                        " reduce_scatter_tensor_coalesced all_reduce_")  # fmt: skip
"""Collectives that add: 1 FLOP an element that a device holds."""
COLLECTIVES = names(
    "all_gather_into_tensor all_gather_into_tensor_coalesced all_gather_into_tensor_out"
    " all_to_all_single broadcast broadcast_ isend irecv recv send permute_tensor scatter"
)
"""Collectives that move data."""
COLLECTIVE_DOMAINS = ("_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "c10d")
"""Libraries of collectives."""
