"""The table of PyTorch's operators: kind, FLOP and bytes of each.

Conventions are those of the other readers: see `readers.onnx.costs.operators`. An operator that
XLA does not have costs the FLOP of its decomposition.
"""

from __future__ import annotations

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost_rules import (
    CostRule,
    Costs,
    cost_rules,
    no_flops,
    per_element,
    per_input,
    reduction,
    roi_align,
)
from go_rl.graphs.readers.torch.costs.attention import ATTENTION
from go_rl.graphs.readers.torch.costs.elementwise import ELEMENTWISE
from go_rl.graphs.readers.torch.costs.indexing import (
    GATHER,
    deformable_convolution,
    non_max_suppression,
)
from go_rl.graphs.readers.torch.costs.movement import (
    COLLECTIVE_DOMAINS,
    COLLECTIVE_SUMS,
    COLLECTIVES,
    CONSTANTS,
    COPYING_VIEWS,
    MOVEMENT,
)
from go_rl.graphs.readers.torch.costs.products import CONVOLUTION, MATMUL, grouped
from go_rl.graphs.readers.torch.costs.reductions import REDUCTION, RESIZING

_ATEN: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {**ELEMENTWISE, **RESIZING},
    OpKind.MOVEMENT: dict.fromkeys((*MOVEMENT, *CONSTANTS, *COPYING_VIEWS), no_flops),
    OpKind.REDUCTION: REDUCTION,
    OpKind.MATMUL: {**MATMUL, **ATTENTION},
    OpKind.CONVOLUTION: CONVOLUTION,
    OpKind.GATHER: GATHER,
}
_PRIMS: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {
        "convert_element_type": per_element(1),
        "fma": per_element(2),
        "frexp": per_element(1),
    },
    OpKind.MOVEMENT: {
        "broadcast_in_dim collapse_view device_put iota rev squeeze transpose view_of": no_flops
    },
    OpKind.REDUCTION: {"amax amin prod sum xor_sum": reduction(), "var": reduction(3, 2)},
}
"""Operators of PyTorch's smallest set that core ATen leaves."""
_VISION: dict[OpKind, dict[str, Costs]] = {
    OpKind.CONVOLUTION: {"deform_conv2d": deformable_convolution},
    OpKind.GATHER: {
        "nms": non_max_suppression,
        "ps_roi_align roi_align": roi_align,
        "ps_roi_pool roi_pool": per_input(1),
    },
}
"""Operators of torchvision."""
_QUANTISED: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {
        "dequantize_affine dequantize_per_channel dequantize_per_tensor"
        " dequantize_per_token": per_element(2),
        "choose_qparams choose_qparams_per_token choose_qparams_per_token_asymmetric"
        " choose_qparams_symmetric": per_input(2),
        "fake_quant_per_channel quantize_affine quantize_per_channel quantize_per_tensor"
        " quantize_per_token": per_element(5),
    }
}
_COLLECTIVES: dict[OpKind, dict[str, Costs]] = {
    OpKind.MOVEMENT: {
        **dict.fromkeys(COLLECTIVES, no_flops),
        **dict.fromkeys(COLLECTIVE_SUMS, per_input(1)),
    }
}

RULES: dict[str, CostRule] = {
    **cost_rules("aten.", _ATEN),
    **cost_rules("prims.", _PRIMS),
    **cost_rules("torchvision.", _VISION),
    **cost_rules("transformers.", {OpKind.MATMUL: {"grouped_mm_fallback": grouped}}),
    **cost_rules("quantized_decomposed.", _QUANTISED),
    **cost_rules("torchao.", _QUANTISED),
}
"""The rule of every operator that is counted, by operator without its overload."""
for _domain in COLLECTIVE_DOMAINS:
    RULES |= cost_rules(f"{_domain}.", _COLLECTIVES)

BYTES_ONLY = CostRule(OpKind.OTHER, no_flops)
"""An unknown operator, counted by bytes at the user's request."""
