"""Layout of the leaf vector: 164 numbers that describe one statement of a loop nest.

The numbers are those of Ansor (Zheng et al., OSDI 2020, appendix B) in the order in which TVM's
``PerStoreFeature`` has them. Counts, bytes and lengths are on the scale log2(x + 1).
"""

from __future__ import annotations

from go_rl.costs.programs.nests import OPERATION_NAMES

FEATURE_VERSION = 1
"""Version of the vectors: records of another one are refused."""
BUFFERS = 5
"""Buffers of a statement that a vector describes, those with the most cache lines."""
CURVE_POINTS = 10
"""Points of the curve of arithmetic intensity."""
CACHE_LINE = 64
"""Bytes of a cache line."""

POSITIONS = (
    "none", "inner_spatial", "middle_spatial", "outer_spatial", "inner_reduce", "middle_reduce",
    "outer_reduce", "mixed",
)  # fmt: skip
"""Positions of the loops of one kind. Only ``none`` and ``mixed`` are told apart, as in TVM: by
then a loop does not tell whether it reduces."""
_KIND = ("count", "iterations", "innermost", *POSITIONS)
_GPU = ("is_gpu", "block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z",
        "virtual_thread")  # fmt: skip
ACCESS_TYPES = ("read", "write", "read_write")
REUSE_TYPES = ("loop_reuse", "serial_reuse", "no_reuse")
_BUFFER = (
    *ACCESS_TYPES, "bytes", "unique_bytes", "lines", "unique_lines", *REUSE_TYPES,
    "reuse_iterations", "reuse_bytes", "reuse_count", "bytes_per_reuse", "unique_bytes_per_reuse",
    "lines_per_reuse", "unique_lines_per_reuse", "stride",
)  # fmt: skip
ALLOCATION = ("allocated_bytes", "allocated_iterations", "outer_allocations", "inner_iterations")
_NEST = ("iterations", "loops", "auto_unroll")


def _names() -> tuple[str, ...]:
    kinds = [f"{kind}_{name}" for kind in ("vectorised", "unrolled", "parallel") for name in _KIND]
    buffers = [f"buffer{b}_{name}" for b in range(BUFFERS) for name in _BUFFER]
    curve = [f"intensity{point}" for point in range(CURVE_POINTS)]
    return (*OPERATION_NAMES, *kinds, *_GPU, *buffers, *curve, *ALLOCATION, *_NEST)


FEATURE_NAMES = _names()
"""Name of each number of a leaf vector."""
LEAF_NUMBERS = len(FEATURE_NAMES)
"""Numbers of a leaf vector, 164."""
BUFFER_NUMBERS = len(_BUFFER)
"""Numbers of a buffer, 18."""
