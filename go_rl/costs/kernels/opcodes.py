"""Opcodes that kernels are told apart by: JAX's names (`go_rl.graphs.cutting.opcode_names`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from go_rl.graphs.cutting.opcode_names import opcode

UNKNOWN = 0
"""Number of every opcode that a vocabulary lacks."""


def opcode_numbers(op_types: Sequence[str], vocabulary: Sequence[str]) -> Int32[np.ndarray, "n"]:
    """Return [n] places in the vocabulary, counted from 1; `UNKNOWN` for what it lacks."""
    number = {name: i + 1 for i, name in enumerate(vocabulary)}
    known = {op_type: number.get(opcode(op_type), UNKNOWN) for op_type in set(op_types)}
    return np.array([known[op_type] for op_type in op_types], np.int32)


def vocabulary_of(op_types: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct opcodes, sorted."""
    return tuple(sorted({opcode(op_type) for op_type in op_types}))
