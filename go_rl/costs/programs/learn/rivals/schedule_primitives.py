"""Schedule primitives as numbers: what TLP reads of a program (Zhai et al., ASPLOS 2023).

A trace of MetaSchedule is a list of calls. Those that only look something up, or undo an
annotation, say nothing of the program and are left out. Each other call becomes a row: its name
(one-hot, an annotation's key included), and its first arguments in the order written, each as two
numbers: a constant (log2(1 + |c|), with its sign) or the number of a variable (over `VARIABLES`),
the other one being 0. Candidates and odds of a random choice are no arguments; its outcome is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import copysign, log2

import numpy as np
from jaxtyping import Float32

SILENT = frozenset({
    "get_sblock", "get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers",
    "enter_postproc", "unannotate",
})  # fmt: skip
KINDS = (
    "sample_perfect_tile", "sample_categorical", "sample_compute_location", "split", "fuse",
    "reorder", "parallel", "vectorize", "unroll", "bind", "cache_read", "cache_write", "compute_at",
    "reverse_compute_at", "compute_inline", "reverse_compute_inline", "rfactor",
    "decompose_reduction", "annotate meta_schedule.parallel", "annotate meta_schedule.vectorize",
    "annotate meta_schedule.unroll_explicit", "annotate meta_schedule.tiling_structure",
    "annotate meta_schedule.random_compute_producer", "annotate pragma_auto_unroll_max_step",
    "annotate pragma_unroll_explicit", "other",
)  # fmt: skip
ARGUMENTS = 8
"""That are read of a call; further ones are cut."""
PRIMITIVES = 48
"""That are read of a schedule; further ones are cut."""
VARIABLES = 64.0
ROW = len(KINDS) + 2 * ARGUMENTS
"""Numbers of a primitive."""
CALL = re.compile(r"sch\.(\w+)\((.*)\)\s*$")
KEY = re.compile(r'ann_key="([^"]*)"')
UNSAID = re.compile(r"(?:candidates|probs)=\[[^\]]*\]|\w+=(?:True|False)|\"[^\"]*\"")
ARGUMENT = re.compile(r"(?<![\w.])(?:[blv](\d+)|(-?\d+(?:\.\d+)?))(?![\w.])")


@lru_cache(maxsize=50_000)
def primitive_rows(trace: str) -> Float32[np.ndarray, "S row"]:
    """Return [S, `ROW`] of a schedule, as TVM prints it: at most `PRIMITIVES` calls, in order."""
    rows = []
    for line in trace.splitlines():
        found = CALL.search(line)
        if found is not None and found.group(1) not in SILENT:
            rows.append(_row(found.group(1), found.group(2)))
    return np.array(rows[:PRIMITIVES], np.float32).reshape(-1, ROW)


def _row(name: str, arguments: str) -> list[float]:
    if name == "annotate":
        key = KEY.search(arguments)
        name = f"annotate {key.group(1)}" if key else name
    kind = KINDS.index(name) if name in KINDS else KINDS.index("other")
    row = [0.0] * ROW
    row[kind] = 1.0
    said = ARGUMENT.findall(UNSAID.sub("", arguments))
    for i, (variable, constant) in enumerate(said[:ARGUMENTS]):
        place = len(KINDS) + 2 * i
        if variable:
            row[place + 1] = (int(variable) + 1) / VARIABLES
        else:
            value = float(constant)
            row[place] = copysign(log2(1.0 + abs(value)), value)
    return row
