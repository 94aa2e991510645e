"""One row of features for each program: sums of leaf vectors, and
`go_rl.costs.programs.features.code_features`, what the compiler makes of its loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float32

from go_rl.core import TrainingError
from go_rl.costs.programs.features import FEATURE_NAMES, LEAF_NUMBERS
from go_rl.costs.programs.features.code_features import CODE_NAMES, CODE_NUMBERS, code_features
from go_rl.costs.programs.features.register_tile import Processor
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, VECTOR_BYTES, ProgramInputs
from go_rl.costs.programs.nests import nest_from_json
from go_rl.costs.programs.nests.nest import ELEMENT_BYTES

SUMMED_NAMES = (*FEATURE_NAMES, *TARGET_FEATURES)
"""Names of the columns of `summed_program_features`."""
WIDE_NUMBERS = LEAF_NUMBERS + CODE_NUMBERS
"""Numbers of a leaf with both."""
REGISTERS = {"x86-64-v4": 32}
"""Vector registers; elsewhere 16."""
TOLD = 2
"""Statements of a program whose numbers trees read, those of most cycles."""
TREE_NAMES = (
    *SUMMED_NAMES, *(f"leaf{k}_{name}" for k in range(TOLD) for name in CODE_NAMES),
    "leaves", "first_share", "all_cycles",
)  # fmt: skip
"""Names of the columns of `code_tree_features`."""


def summed_program_features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
    """Return [P, F] sums of leaf vectors, and `TARGET_FEATURES` (log2; NaN where unknown, which
    trees take as missing)."""
    parts = [inputs.asts.sums(), inputs.device_features]
    return np.concatenate(parts, axis=1).astype(np.float32)


def with_code(inputs: ProgramInputs) -> ProgramInputs:
    """Return programs whose leaf vectors are followed by `CODE_NAMES`; some 2 ms for each distinct
    loop nest.

    Raises:
        TrainingError: loop nests are not known, or code is for none of `VECTOR_BYTES`.
    """
    if inputs.asts.vectors.shape[1] == WIDE_NUMBERS:
        return inputs
    vectors = np.concatenate([inputs.asts.vectors, _code(inputs)], axis=1)
    return replace(inputs, asts=replace(inputs.asts, vectors=vectors))


def of_width(inputs: ProgramInputs, numbers: int) -> ProgramInputs:
    """Return programs whose leaves have this many numbers, `LEAF_NUMBERS` or `WIDE_NUMBERS`."""
    return with_code(inputs) if numbers == WIDE_NUMBERS else without_code(inputs)


def without_code(inputs: ProgramInputs) -> ProgramInputs:
    """Return programs whose leaf vectors are the 164 numbers alone."""
    if inputs.asts.vectors.shape[1] == LEAF_NUMBERS:
        return inputs
    vectors = inputs.asts.vectors[:, :LEAF_NUMBERS]
    return replace(inputs, asts=replace(inputs.asts, vectors=vectors))


def code_tree_features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
    """Return [P, F] `TREE_NAMES`: summed leaf vectors and the target; the code of the `TOLD`
    statements of most cycles, 0 where there are fewer; and the cycles (log2) of all.

    Raises:
        TrainingError: see `with_code`.
    """
    wide = with_code(inputs)
    code = wide.asts.vectors[:, LEAF_NUMBERS:]
    cycles = np.exp2(code[:, -1].astype(np.float64)) - 1
    summed = summed_program_features(without_code(wide))
    count = inputs.num_programs
    if not count:
        return np.zeros((0, len(TREE_NAMES)), np.float32)
    told = np.zeros((count, TOLD, CODE_NUMBERS), np.float32)
    owner = np.repeat(np.arange(count), inputs.leaves)
    order = np.lexsort((-cycles, owner))  # each program's leaves, those of most cycles first
    rank = np.arange(len(order)) - np.repeat(inputs.asts.first_leaf[:-1], inputs.leaves)
    kept = rank < TOLD
    told[owner[kept], rank[kept]] = code[order[kept]]
    whole = np.add.reduceat(cycles, inputs.asts.first_leaf[:-1])
    first = cycles[order[inputs.asts.first_leaf[:-1]]] / np.maximum(whole, 1e-9)
    rest = np.stack([inputs.leaves, first, np.log2(whole + 1)], axis=1)
    return np.concatenate([summed, told.reshape(count, -1), rest], axis=1).astype(np.float32)


def _code(inputs: ProgramInputs) -> Float32[np.ndarray, "S numbers"]:
    """[S, numbers] code of all leaves, computed once for each nest and processor."""
    if not inputs.nests:
        raise TrainingError(
            "code features read loop nests, and of these programs only leaf vectors are known; use "
            "records of go-rl measure programs"
        )
    known: dict[tuple[int, int], np.ndarray] = {}
    rows = [np.zeros((0, CODE_NUMBERS))]
    used = np.unique(inputs.target).tolist()
    processors = {target: _processor(inputs.targets[target].codegen) for target in used}
    for nest, target in zip(inputs.nest.tolist(), inputs.target.tolist(), strict=True):
        key = (nest, processors[target].lanes)
        if key not in known:
            known[key] = code_features(nest_from_json(inputs.nests[nest]), processors[target])
        rows.append(known[key])
    return np.concatenate(rows).astype(np.float32)


def _processor(codegen: str) -> Processor:
    if codegen not in VECTOR_BYTES:
        raise TrainingError(
            f"code features are of code for {', '.join(VECTOR_BYTES)}, not for {codegen!r}"
        )
    return Processor(VECTOR_BYTES[codegen] // ELEMENT_BYTES, REGISTERS.get(codegen, 16))
