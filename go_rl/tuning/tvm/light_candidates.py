"""Candidates of functions that are not tuned: element-wise chains, copies, reductions.

TVM's default leaves a buffer between any two operators of such a function, and adds up a row one
number after the other, for LLVM may not change the order of a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tvm.codegen import FLOPS_A_CYCLE, CodeTarget
from go_rl.tuning.tvm.operators import REDUCTION
from go_rl.tuning.tvm.space import ILLEGAL, candidate_of

LONGEST = 64
"""Numbers of an innermost loop, at most, that become one vector operation where its length is no
multiple of the vector's."""


def light_candidates(module: Any, code: CodeTarget) -> list[Candidate]:
    """Return candidates of a function, fewer where some are not legal: element-wise operators
    computed where their results are read; the same, with vectors in the innermost loops, and sums
    over a row in as many parts as a vector has numbers, which changes a sum's last digits.

    Args:
        module: the function without a schedule, called ``main``.
        code: what it is compiled for; on several cores, outer loops run in parallel.
    """
    found = dict[str, Candidate]()
    for change in (_leave, _vectors):
        made = _attempt(module, code, change)
        if made is not None:
            found.setdefault(made.key, made)
    return list(found.values())


Change = Callable[[Any, Any, CodeTarget], None]
"""Transformation of a block of a TVM schedule."""


def _attempt(module: Any, code: CodeTarget, change: Change) -> Candidate | None:
    import_meta_schedule()
    from tvm.s_tir.schedule import Schedule as TvmSchedule  # pyright: ignore[reportMissingImports]

    schedule = TvmSchedule(module, error_render_level="none")
    try:
        root = schedule.get_sblock("root")
        for block in schedule.get_child_blocks(root)[:-1]:
            _inline(schedule, block)
        for block in schedule.get_child_blocks(root):
            change(schedule, block, code)
    except (*ILLEGAL, AttributeError, TypeError, ValueError):
        return None  # loops of unknown length, or blocks within blocks
    return candidate_of(schedule.trace)


def _inline(schedule: Any, block: Any) -> None:
    """Compute an element-wise block where it is read, where that is legal."""
    if not _reduces(schedule, block):
        with suppress(*ILLEGAL):  # a result, or read in a way that does not allow it
            schedule.compute_inline(block)


def _leave(schedule: Any, block: Any, code: CodeTarget) -> None:
    """Run in parallel what may be."""
    loops = schedule.get_loops(block)
    _parallel(schedule, loops[: _spatial(schedule, block)][:-1], code)


def _vectors(schedule: Any, block: Any, code: CodeTarget) -> None:
    """Compute a block in vectors."""
    loops, spatial = schedule.get_loops(block), _spatial(schedule, block)
    width = FLOPS_A_CYCLE[code.level] // 4  # two units, two FLOP a number
    if spatial == len(loops):
        _vectorize(schedule, loops[-1], width)
        _parallel(schedule, loops[:-1], code)
    elif spatial == len(loops) - 1 and _extent(schedule, loops[-1]) % width == 0:
        _, inner = schedule.split(loops[-1], [None, width])
        parts = schedule.rfactor(inner, spatial)
        inside = schedule.get_loops(parts)
        schedule.vectorize(inside[-1])
        _parallel(schedule, inside[:spatial], code)
        schedule.decompose_reduction(parts, inside[-2])
    else:
        _parallel(schedule, loops[:spatial][:-1], code)


def _vectorize(schedule: Any, loop: Any, width: int) -> None:
    extent = _extent(schedule, loop)
    if extent > width and extent % width == 0:
        _, loop = schedule.split(loop, [None, width])
    if 1 < extent <= LONGEST or extent % width == 0:
        schedule.vectorize(loop)


def _parallel(schedule: Any, loops: list[Any], code: CodeTarget) -> None:
    if code.cores > 1 and loops:
        schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def _spatial(schedule: Any, block: Any) -> int:
    """Number of a block's outer loops that are not of its reduction."""
    kinds = [int(axis.iter_type) == REDUCTION for axis in schedule.get(block).iter_vars]
    return kinds.index(True) if True in kinds else len(kinds)


def _reduces(schedule: Any, block: Any) -> bool:
    return _spatial(schedule, block) < len(schedule.get(block).iter_vars)


def _extent(schedule: Any, loop: Any) -> int:
    return int(schedule.get(loop).extent)
