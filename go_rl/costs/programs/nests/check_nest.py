"""`check_nest`: the rules of a loop nest."""

from __future__ import annotations

from collections.abc import Iterator

from go_rl.core.errors import nearest
from go_rl.costs.programs.nests.index import Index, IndexOperation, LoopVariable, NestError
from go_rl.costs.programs.nests.nest import (
    ANNOTATIONS,
    FLOAT32,
    OPERATION_NAMES,
    OUTSIDE,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    NestLeaf,
)

MOST_LEAVES = 64
"""Statements of a nest at most: the largest bucket of a predictor."""
DEEPEST = 48
"""Loops around a statement at most."""


def check_nest(nest: LoopNest) -> LoopNest:
    """Return the nest if it keeps the rules.

    Raises:
        NestError: it breaks one; the message says which and where.
    """
    for message in _broken(nest):
        raise NestError(message)
    return nest


def _broken(nest: LoopNest) -> Iterator[str]:
    for number, loop in enumerate(nest.loops):
        yield from _broken_loop(number, loop)
    for number, buffer in enumerate(nest.buffers):
        yield from _broken_buffer(number, buffer, len(nest.loops))
    if not nest.leaves:
        yield "a loop nest without a statement"
    if len(nest.leaves) > MOST_LEAVES:
        yield f"a loop nest of {len(nest.leaves)} leaves; at most {MOST_LEAVES} are allowed"
    for leaf in nest.leaves:
        yield from _broken_leaf(leaf, nest)


def _broken_loop(number: int, loop: ForLoop) -> Iterator[str]:
    if type(loop.extent) is not int or loop.extent < 1:
        yield f"loop {number}: extent must be a whole number >= 1, not {loop.extent!r}"
    if loop.annotation not in ANNOTATIONS:
        yield (
            f"loop {number}: unknown annotation {loop.annotation!r}"
            f"{nearest(loop.annotation, ANNOTATIONS)} Known are {', '.join(ANNOTATIONS)}"
        )
    if type(loop.auto_unroll) is not int or loop.auto_unroll < 0:
        yield f"loop {number}: auto_unroll must be a whole number >= 0, not {loop.auto_unroll!r}"
    if not loop.body:
        yield f"loop {number} repeats nothing"


def _broken_buffer(number: int, buffer: NestBuffer, loops: int) -> Iterator[str]:
    where = f"buffer {number}, {buffer.name!r}"
    if buffer.dtype != FLOAT32:
        yield f"{where}: its type is {buffer.dtype}; only {FLOAT32} is known"
    if any(type(size) is not int or size < 1 for size in buffer.shape):
        yield f"{where}: a shape has whole numbers >= 1, not {buffer.shape}"
    if not OUTSIDE <= buffer.inside < loops:
        yield f"{where}: allocated inside of loop {buffer.inside}; there are {loops}"


def _broken_leaf(leaf: NestLeaf, nest: LoopNest) -> Iterator[str]:
    where = f"statement {leaf.leaf}"
    if len(leaf.around) > DEEPEST:
        yield f"{where} lies inside of {len(leaf.around)} loops; at most {DEEPEST} are allowed"
    counts = leaf.statement.operations
    if len(counts) != len(OPERATION_NAMES) or any(type(n) is not int or n < 0 for n in counts):
        yield (
            f"{where}: operations must be {len(OPERATION_NAMES)} whole numbers >= 0, not {counts}"
        )
    around = frozenset(number for number, _ in leaf.around)
    for access in (leaf.statement.write, *leaf.statement.reads):
        yield from _broken_access(where, access, around, nest)


def _broken_access(
    where: str, access: Access, around: frozenset[int], nest: LoopNest
) -> Iterator[str]:
    if not 0 <= access.buffer < len(nest.buffers):
        yield f"{where}: buffer {access.buffer} of {len(nest.buffers)}"
        return
    buffer = nest.buffers[access.buffer]
    if len(access.index) != len(buffer.shape):
        yield (
            f"{where}: {len(access.index)} indices into buffer {buffer.name!r} of "
            f"{len(buffer.shape)} dimensions"
        )
    for index in access.index:
        for trouble in _broken_index(index, around):
            yield f"{where}: index into buffer {buffer.name!r}: {trouble}"


def _broken_index(index: Index, around: frozenset[int]) -> Iterator[str]:
    if isinstance(index, LoopVariable) and index.loop not in around:
        yield f"loop {index.loop} is not around it"
    if not isinstance(index, IndexOperation):
        return
    divides = index.kind in ("//", "%")
    if divides and not (isinstance(index.right, int) and index.right > 0):
        yield f"the divisor of {index.kind!r} must be a whole number above 0"
    yield from _broken_index(index.left, around)
    yield from _broken_index(index.right, around)
