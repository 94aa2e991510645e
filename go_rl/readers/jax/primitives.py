"""JAX primitives by class: XLA's cost of an element, and the `OpKind` of each."""

from __future__ import annotations

from go_rl.core.graph.op_kind import OpKind
from go_rl.readers.tables import names

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
    "copy copy_p device_put layout_constraint mesh_cast name optimization_barrier pbroadcast pvary "
    "reshard sharding_constraint stop_gradient"
)
"""Primitives that XLA's program does not contain or charges nothing for: results are aliases."""
LAYOUT = names(
    "broadcast_in_dim concatenate expand_dims pad reshape rev slice split squeeze tile transpose"
)
INDEXED = names("dynamic_slice dynamic_update_slice gather")
REDUCTIONS = names("reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor")
OTHER_REDUCTIONS = names(
    "approx_top_k argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce reduce_window "
    "reduce_window_max reduce_window_min reduce_window_sum sort top_k"
)
OPAQUE = names(
    "custom_partitioning ffi_call io_callback pallas_call pure_callback shard_map tpu_custom_call "
    "xla_pmap"
)
"""Primitives whose work XLA itself cannot see."""


def kind_of(op_type: str, has_operands: bool) -> OpKind:
    """Return the `OpKind` of a primitive."""
    if op_type in ("dot_general", "ragged_dot", "ragged_dot_general", "scaled_matmul_wrapper"):
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
