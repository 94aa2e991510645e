"""The classes of operators that a cost model distinguishes."""

from __future__ import annotations

import enum

import numpy as np


class OpKind(enum.IntEnum):
    """Class of an operator by its limiting resource; the key of every per-kind efficiency table."""

    INPUT = 0
    """A value that the user gives in each iteration: no work."""
    CONSTANT = 1
    """A value known before the first iteration (a weight or literal kept as a node): no work."""
    MATMUL = 2
    """Dense contractions: Gemm, MatMul, dot_general, Einsum."""
    CONVOLUTION = 3
    """Convolutions, their transposes and gradients."""
    ELEMENTWISE = 4
    """One result element from one element of each operand."""
    REDUCTION = 5
    """Sums, maxima, arg-reductions, pooling, softmax and normalisation as one operator."""
    MOVEMENT = 6
    """Layout only, no arithmetic: reshape, transpose, slice, concatenate, pad, broadcast."""
    GATHER = 7
    """Indexed reads and writes: embedding look-ups, gather, scatter, dynamic slices."""
    CONTROL = 8
    """Folded loops and calls whose body was not unrolled."""
    OTHER = 9
    """Anything else, counted by bytes."""


FREE_KINDS = OpKind.INPUT, OpKind.CONSTANT
"""Kinds that cost no time on any chip."""
PRODUCT_KINDS = OpKind.MATMUL, OpKind.CONVOLUTION
"""Kinds whose rate depends on the element type; a kernel has one of them at most."""
IS_FREE = np.isin(np.arange(len(OpKind)), FREE_KINDS)
"""[kinds] whether an `OpKind` is one of `FREE_KINDS`."""
IS_PRODUCT = np.isin(np.arange(len(OpKind)), PRODUCT_KINDS)
"""[kinds] whether an `OpKind` is one of `PRODUCT_KINDS`."""
