"""`LoopNest`: a scheduled tensor program as a tree of loops with statements as leaves.

Loops are numbered in pre-order, from 0; the numbers are those in index expressions and in
`NestBuffer.inside`. A nest is what the compiler's lowering leaves of a schedule, before code is
made: loops that are bound to blocks and threads are loops like others, outside of all that they
enclose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from go_rl.costs.programs.nests.index import Index

SERIAL, PARALLEL, VECTORISED, UNROLLED = "serial", "parallel", "vectorised", "unrolled"
BLOCKS = ("block.x", "block.y", "block.z")
THREADS = ("thread.x", "thread.y", "thread.z")
VIRTUAL_THREAD = "virtual-thread"
ANNOTATIONS = (SERIAL, PARALLEL, VECTORISED, UNROLLED, *BLOCKS, *THREADS, VIRTUAL_THREAD)
"""Annotations: ways to run the iterations of a loop."""

FLOAT32 = "float32"
ELEMENT_BYTES = 4
"""Bytes of a float32, the only type of a buffer."""
OUTSIDE = -1
"""Number that stands for no loop: outside of all."""

OPERATION_NAMES = (
    "float_mad", "float_add_sub", "float_mul", "float_div_mod", "float_compare", "float_math",
    "float_other", "int_mad", "int_add_sub", "int_mul", "int_div_mod", "int_compare", "int_math",
    "int_other", "bool", "select",
)  # fmt: skip
"""Kinds of arithmetic, in the order of the first 16 numbers of a leaf vector. ``compare`` counts
minimum and maximum; a comparison proper yields a truth value and counts as ``int_compare``.
Multiplications and additions count apart: ``mad`` is always 0."""


@dataclass(frozen=True, slots=True)
class NestBuffer:
    """An array of float32."""

    name: str
    shape: tuple[int, ...]
    """Elements by dimension, the last contiguous; () where it is one element."""
    scope: str = "global"
    """Memory that holds it: ``global``, ``shared``, ``local``, …"""
    inside: int = OUTSIDE
    """Number of the innermost loop around its allocation."""
    dtype: str = FLOAT32

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a buffer, by the iterations of the loops around."""

    buffer: int
    """Number of the buffer."""
    index: tuple[Index, ...]
    """One expression for each dimension."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A leaf: one element of a buffer is computed and written."""

    write: Access
    reads: tuple[Access, ...] = ()
    """Each element read, in the order of evaluation."""
    operations: tuple[int, ...] = (0,) * len(OPERATION_NAMES)
    """Operations of one execution by kind (`OPERATION_NAMES`), those on indices included."""
    constant: bool = False
    """Whether a constant is written: such a leaf has no vector."""


@dataclass(frozen=True, slots=True)
class ForLoop:
    """A loop and what it repeats."""

    extent: int
    """Iterations, at least 1."""
    annotation: str = SERIAL
    """Annotation of the loop, one of `ANNOTATIONS`."""
    body: tuple[ForLoop | Statement, ...] = ()
    auto_unroll: int = 0
    """Largest body, in statements, that the compiler shall unroll inside; 0: it is not told."""


@dataclass(frozen=True)
class LoopNest:
    """A tensor program.

    `go_rl.costs.programs.nests.check_nest` says whether it keeps the rules.
    """

    buffers: tuple[NestBuffer, ...]
    body: tuple[ForLoop | Statement, ...]
    gpu: bool = False
    """Whether it is made for a GPU."""

    @cached_property
    def leaves(self) -> tuple[NestLeaf, ...]:
        """The statements in pre-order, each with the loops around it."""
        return tuple(_leaves(self.body))

    @cached_property
    def loops(self) -> tuple[ForLoop, ...]:
        """The loops in pre-order."""
        return tuple(_loops(self.body))


@dataclass(frozen=True, slots=True)
class NestLeaf:
    """A statement in its place."""

    statement: Statement
    around: tuple[tuple[int, ForLoop], ...]
    """Loops around it with their numbers, the outermost first."""
    node: int
    """Loops and statements that come before it in pre-order."""
    leaf: int
    """Statements that come before it in pre-order."""

    @property
    def executions(self) -> int:
        """Number of times that it is executed."""
        return prod(loop.extent for _, loop in self.around)

    @property
    def auto_unroll(self) -> int:
        """Statements up to which the innermost limit of a loop around lets unroll; 0: none does."""
        return next((loop.auto_unroll for _, loop in reversed(self.around) if loop.auto_unroll), 0)


def _loops(body: tuple[ForLoop | Statement, ...]) -> Iterator[ForLoop]:
    for node in body:
        if isinstance(node, ForLoop):
            yield node
            yield from _loops(node.body)


def _leaves(body: tuple[ForLoop | Statement, ...]) -> Iterator[NestLeaf]:
    pending: list[tuple[ForLoop | Statement, tuple[tuple[int, ForLoop], ...]]] = []
    pending.extend((node, ()) for node in reversed(body))
    loops = leaves = 0
    while pending:
        node, around = pending.pop()
        if isinstance(node, Statement):
            yield NestLeaf(node, around, loops + leaves, leaves)
            leaves += 1
            continue
        inside = (*around, (loops, node))
        loops += 1
        pending.extend((each, inside) for each in reversed(node.body))
