"""HLO opcodes: what kind of work each is, and which cost one FLOP an element or none."""

from __future__ import annotations

from go_rl.core import OpKind
from go_rl.graphs.tables import names

TRANSCENDENTAL = names(
    "exponential log tanh rsqrt sqrt power logistic sine cosine erf cbrt exponential-minus-one "
    "log-plus-one atan2 tan acos acosh asin asinh atanh cosh sinh"
)
"""Counted separately by XLA's cost analysis: 0 FLOP."""
ARITHMETIC = names(
    "abs add and ceil clamp clz compare complex convert count-leading-zeros divide floor imag "
    "is-finite maximum minimum multiply negate not or popcnt real reduce-precision remainder "
    "round-nearest-afz round-nearest-even select shift-left shift-right-arithmetic "
    "shift-right-logical sign stochastic-convert subtract xor"
)
"""One FLOP an element of the result."""
MOVEMENT = names(
    "bitcast-convert broadcast concatenate copy iota pad reshape reverse slice "
    "transpose dynamic-reshape set-dimension-size get-dimension-size"
)
INDEXED = names("dynamic-slice dynamic-update-slice gather scatter")
REDUCTIONS = names(
    "reduce reduce-window select-and-scatter sort topk batch-norm-training batch-norm-inference "
    "batch-norm-grad"
)
DENSE = names("dot ragged-dot cholesky triangular-solve")
OTHERS = names(
    "fft map rng rng-bit-generator rng-get-and-update-state all-reduce all-gather all-to-all "
    "ragged-all-to-all collective-permute collective-broadcast reduce-scatter partition-id "
    "replica-id infeed outfeed send recv"
)
STRUCTURE = names(
    "parameter constant tuple get-tuple-element bitcast opt-barrier optimization-barrier "
    "after-all add-dependency domain async-done send-done recv-done"
)
"""No node and no cost: names and groupings of values."""
CALLS = names("call while conditional fusion")
KNOWN_CUSTOM_CALLS = names(
    "Sharding shape_assertion SPMDFullToShardShape SPMDShardToFullShape LayoutConstraint "
    "xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape "
    "xla.sdy.PropagationBarrier xla.sdy.ShardingGroup annotate_device_placement"
)
"""Custom calls that pass their operands through, whole or as one device's part."""
KNOWN = (
    TRANSCENDENTAL | ARITHMETIC | MOVEMENT | INDEXED | REDUCTIONS | DENSE | OTHERS | STRUCTURE
    | CALLS | {"convolution", "custom-call"}
)  # fmt: skip


def kind_of(opcode: str) -> OpKind:
    """The `OpKind` of an opcode; `OpKind.OTHER` when it has no class of its own."""
    for kind, opcodes in (
        (OpKind.ELEMENTWISE, TRANSCENDENTAL | ARITHMETIC),
        (OpKind.MOVEMENT, MOVEMENT),
        (OpKind.GATHER, INDEXED),
        (OpKind.REDUCTION, REDUCTIONS),
        (OpKind.MATMUL, DENSE),
        (OpKind.CONVOLUTION, {"convolution"}),
        (OpKind.CONTROL, CALLS - {"fusion"}),
    ):
        if opcode in opcodes:
            return kind
    return OpKind.OTHER
