"""One row of features for each program: sums of leaf vectors, and
`go_rl.costs.programs.features.code_features`, what the compiler makes of its loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import TrainingError
from go_rl.costs.programs.features import FEATURE_NAMES, LEAF_NUMBERS
from go_rl.costs.programs.features.cache_traffic import CACHES
from go_rl.costs.programs.features.code_features import (
    BOUNDS,
    CODE_NAMES,
    CODE_NUMBERS,
    code_features,
)
from go_rl.costs.programs.features.register_tile import Processor
from go_rl.costs.programs.learn.examples import TARGET_FEATURES, VECTOR_BYTES, ProgramInputs
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES
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
MACHINE_TREE_NAMES = (
    *TREE_NAMES, *MACHINE_NAMES, *(f"all_{name}_cycles" for name in BOUNDS),
    "slowest_cycles", "summed_cycles", "machine_over_rules", "caches_over_machine",
    "throughput_cycles",
)  # fmt: skip
"""Names of the columns of `machine_tree_features`."""
THROUGHPUT = tuple(
    MACHINE_NAMES.index(f"machine_{name}_cycles")
    for name in ("issue", "arithmetic", "reads", "writes", "reorders", "divisions")
)
"""Bounds that hold whatever waits for what: the code cannot take fewer cycles than the largest."""
CACHE_BOUNDS = slice(len(BOUNDS) - len(CACHES), len(BOUNDS))
"""Those of `BOUNDS` that are what the caches move."""


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


def machine_tree_features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
    """Return [P, F] `MACHINE_TREE_NAMES`: `code_tree_features`; the machine code's numbers; the
    bounds by rules of all statements, and how the code's cycles compare with these.

    Raises:
        TrainingError: see `with_code`, or the code of a program was not read.
    """
    known = inputs.machine_code
    missing = sum(row is None for row in known)
    if missing:
        raise TrainingError(
            f"trees on machine code read what a compiler made of programs, and of {missing} of "
            f"{inputs.num_programs} that is not known; use records of go-rl measure programs, "
            "networks that TVM compiles, or a data set that has it (programs-3)"
        )
    rows = np.array(known, np.float32).reshape(len(known), len(MACHINE_NAMES))
    wide = with_code(inputs)
    features = code_tree_features(wide)
    machine = np.exp2(rows[:, MACHINE_NAMES.index("machine_cycles")].astype(np.float64)) - 1
    rules = _summed_bounds(wide)
    caches = rules[:, CACHE_BOUNDS]
    more = np.column_stack([
        rules, np.maximum(machine, caches.max(axis=1, initial=0.0)), machine + caches.sum(axis=1),
        machine / (1 + rules[:, 0]), caches.sum(axis=1) / (1 + machine),
        np.exp2(rows[:, THROUGHPUT].astype(np.float64)).max(axis=1, initial=1.0) - 1,
    ])  # fmt: skip
    return np.concatenate([features, rows, np.log2(1 + more)], axis=1).astype(np.float32)


def _summed_bounds(wide: ProgramInputs) -> Float64[np.ndarray, "P bounds"]:
    """[P, bounds] cycles of all statements of a program, by `BOUNDS`."""
    if not wide.num_programs:
        return np.zeros((0, len(BOUNDS)))
    places = [LEAF_NUMBERS + CODE_NAMES.index(f"{name}_cycles") for name in BOUNDS]
    cycles = np.exp2(wide.asts.vectors[:, places].astype(np.float64)) - 1
    return np.add.reduceat(cycles, wide.asts.first_leaf[:-1])


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
