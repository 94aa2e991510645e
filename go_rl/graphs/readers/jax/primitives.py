"""JAX primitives by class: XLA's cost of an element, and the `OpKind` of each."""

from __future__ import annotations

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.tables import names

ONE_FLOP = names(
    "abs add add_any and bitcast_convert_type ceil clamp clz div eq floor ge gt is_finite le lt "
    "max min mul ne neg not or population_count reduce_precision rem round select_n shift_left "
    "shift_right_arithmetic shift_right_logical sign sub xor"
)
"""Element-wise primitives of one FLOP an element (XLA counts comparisons and selects too)."""
TRANSCENDENTAL = names("atan2 cbrt cos erf exp expm1 log log1p pow rsqrt sin sqrt tan tanh")
"""Element-wise primitives that XLA counts as transcendentals, not FLOP."""
_COMPOSITE = names(
    "acos acosh asin asinh atan atanh complex conj convert_element_type cosh digamma erf_inv erfc "
    "exp2 imag integer_pow le_to lgamma logistic lt_to nextafter real sinh square threefry2x32"
)
ELEMENTWISE = ONE_FLOP | TRANSCENDENTAL | _COMPOSITE
IDENTITY = names(
    "copy copy_p device_put layout_constraint mesh_cast name optimization_barrier pbroadcast "
    "preduced pvary random_clone reduced_vary_cast_p reshard sharding_constraint stage "
    "stop_gradient vary_unreduced_cast_p"
)
"""Primitives that XLA's program does not contain or charges nothing for: results are aliases."""
LAYOUT = names(
    "broadcast_in_dim concatenate expand_dims pad reshape rev slice split squeeze tile transpose"
)
MATMULS = names(
    "cholesky cholesky_update dot_general dot_product_attention_bwd "
    "dot_product_attention_bwd_wrapper dot_product_attention_fp8_bwd "
    "dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd "
    "dot_product_attention_fp8_fwd_wrapper dot_product_attention_fwd "
    "dot_product_attention_fwd_wrapper eig eigh geqp3 geqrf hessenberg householder_product lu "
    "ormqr qr ragged_dot ragged_dot_general scaled_dot scaled_matmul scaled_matmul_wrapper schur "
    "svd symmetric_product triangular_solve tridiagonal tridiagonal_solve"
)
"""Products and the library's decompositions of matrices."""
INDEXED = names("dynamic_slice dynamic_update_slice gather")
REDUCTIONS = names("reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor")
OTHER_REDUCTIONS = names(
    "approx_top_k argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce reduce_window "
    "reduce_window_max reduce_window_min reduce_window_sum sort top_k"
)
_REASONS = {
    "it calls code outside of XLA, whose work JAX cannot see": (
        "custom_partitioning ffi_call io_callback pallas_call pure_callback tpu_custom_call"
    ),
    "it works across devices; trace the model without shard_map and pmap, and let the plan "
    "divide it": (
        "all_gather all_gather_done all_gather_invariant all_gather_reduced "
        "all_gather_reduced_start all_gather_start all_to_all all_to_all_done all_to_all_start "
        "axis_index pbroadcast_done pbroadcast_start pmax pmin ppermute ppermute_done "
        "ppermute_start precv psend psum psum_done psum_invariant psum_invariant_start "
        "psum_start ragged_all_to_all reduce_scatter reduce_scatter_done reduce_scatter_start "
        "shard_map unreduced_psum unreduced_psum_start unreduced_reduce_scatter "
        "unreduced_reduce_scatter_start xla_pmap"
    ),
    "it works on a mutable reference, and a graph has none": (
        "accum_grad_in_ref addupdate box_get box_set broadcast_to create_linear empty_ref free_ref "
        "freeze get get_global masked_load masked_swap new_box new_ref pin run_state swap unpin"
    ),
    "only a kernel of Pallas has it": (
        "core_map delay mpmd_map multiple_of num_programs program_id reciprocal run_scoped "
        "semaphore_read semaphore_signal semaphore_wait with_memory_space_constraint"
    ),
    "it stops the function where a check fails; give checkify.checkify(function)": "check",
    "it keeps a log while the function runs": "log_extend log_read new_log",
    "it holds an exported program; write exported.mlir_module() to a file and read that": (
        "call_exported"
    ),
    "a sparse factorisation costs what its data let it": "spsolve",
    "it is a size that is not known while tracing; give the arguments sizes": (
        "dim_as_value dimension_size shape_assertion"
    ),
    "JAX leaves it behind where a function cannot be run": (
        "call_hi_primitive call_hi_primitive_linearized custom_jvp_call_jaxpr custom_lin "
        "eval_jaxpr jaxpr_call unreachable zeros_like"
    ),
}
REFUSED = {name: reason for reason, rows in _REASONS.items() for name in rows.split()}
"""Primitives without a cost, and why."""


def kind_of(op_type: str, has_operands: bool) -> OpKind:
    """Return the `OpKind` of a primitive."""
    if op_type in MATMULS:
        return OpKind.MATMUL
    if op_type == "conv_general_dilated":
        return OpKind.CONVOLUTION
    if op_type in ELEMENTWISE:
        return OpKind.ELEMENTWISE
    if op_type in REDUCTIONS or op_type in OTHER_REDUCTIONS or op_type.startswith("select_and_"):
        return OpKind.REDUCTION
    if op_type in LAYOUT or op_type in IDENTITY:
        return OpKind.MOVEMENT if has_operands else OpKind.CONSTANT
    if op_type in INDEXED or op_type.startswith("scatter"):
        return OpKind.GATHER
    return OpKind.OTHER if has_operands else OpKind.CONSTANT
