"""`RegisterTile`: what a compiler for processors keeps in registers around a statement.

The innermost loops that become straight code are the *tile*; the loop around them is the *hot*
loop. What the hot loop does not move stays in registers over it. Vectors come from a loop that is
annotated, from the hot loop (LLVM's loop vectoriser) or from statements of the tile that write
neighbours (its vectoriser of straight code).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from go_rl.costs.programs.features.loop_roles import LeafLoops

SCALAR, ANNOTATED, BY_LOOP, BY_STATEMENTS = range(4)
"""Sources of vectors."""


@dataclass(frozen=True)
class Processor:
    """Processor resources at a level of x86-64."""

    lanes: int
    """Elements that a vector register holds."""
    registers: int
    """Vector registers."""


@dataclass(frozen=True)
class CompiledLoops:
    """Loops of a nest by what becomes of them."""

    unrolled: frozenset[int]
    """`go_rl.costs.programs.features.compiled_loops.unrolled_loops`."""
    vectorised: frozenset[int]
    """`go_rl.costs.programs.features.compiled_loops.vectorised_by_compiler`."""


@dataclass(frozen=True)
class RegisterTile:
    """The code of one statement; counts are of one run of the nest."""

    lanes: int
    """Elements of a vector operation; 1: scalar code."""
    vectors: int
    """`SCALAR` or what they come from."""
    loops: int
    """Loops in the tile."""
    size: int
    """Executions of the statement in it."""
    hot_extent: int
    """Iterations of the hot loop; 1: the tile is all."""
    hot_reduces: bool
    accumulators: int
    """Registers that the written elements of a tile need."""
    registers: int
    """Registers that all accesses of a tile need."""
    reduced: int
    """Iterations of reducing loops in the tile."""
    operations: float
    """Vector operations."""
    loads: float
    """Loads of elements that are read one by one into a vector apart."""
    stores: float
    gathered: float
    """Elements that are read or written one by one."""
    chain: float
    """Operations that wait for one another."""


@dataclass(frozen=True)
class _Shape:
    """Loops by their part, numbered from the outermost."""

    hot: int | None
    vector: int | None
    inner: tuple[int, ...]
    """Inner loops of the tile, without that of vectors."""
    lanes: int
    kind: int
    pieces: int
    """Registers that one vector statement needs."""
    width: int
    """Iterations of the loop that becomes vectors."""

    @property
    def per_run(self) -> int:
        """Vector operations that one run of the vector loop needs."""
        whole, rest = divmod(self.width, self.lanes)
        return whole + (min(rest, 1) if self.kind == ANNOTATED else rest)


def register_tile(loops: LeafLoops, processor: Processor, compiled: CompiledLoops) -> RegisterTile:
    """Return the code of a statement."""
    shape = _shape(loops, processor.lanes, compiled)
    extents, inner = loops.extents, shape.inner
    operations = loops.executions / shape.width * shape.per_run
    kept = [_registers(loops, shape, a) for a in range(len(loops.buffers))]
    size = prod(extents[d] for d in inner)
    hot = 1 if shape.hot is None else extents[shape.hot]
    loads, gathered, stores = 0.0, 0.0, 0.0
    for a, registers in enumerate(kept):
        still = shape.hot not in (None, shape.vector) and not loops.named[a][shape.hot or 0]
        runs = size * shape.pieces * (hot if still and kept[0] <= processor.registers else 1)
        alone = shape.vector is not None and abs(int(loops.strides[a, shape.vector])) > 1
        each = operations / runs * registers * (shape.lanes if alone else 1)
        loads += each
        gathered += each if alone else 0.0
        stores += each if a == 0 else 0.0
    reduced = prod(extents[d] for d in inner if loops.reduces[d])
    hot_reduces = shape.hot is not None and loops.reduces[shape.hot]
    apart = kept[0] if hot_reduces else kept[0] * hot
    return RegisterTile(
        shape.lanes, shape.kind, len(inner), size, hot, hot_reduces, kept[0], sum(kept), reduced,
        operations, loads, stores, gathered,
        operations / apart if hot_reduces or reduced > 1 else 0.0,
    )  # fmt: skip


def _shape(loops: LeafLoops, lanes: int, compiled: CompiledLoops) -> _Shape:
    depth, extents = loops.depth, loops.extents
    numbers = [number for number, _ in loops.leaf.around]
    vector = next((d for d in range(depth) if loops.vectorised[d]), None)
    tile = depth if vector is None else vector
    while tile > 0 and numbers[tile - 1] in compiled.unrolled:
        tile -= 1
    hot = tile - 1 if tile > 0 else None
    kind = SCALAR if vector is None else ANNOTATED
    if vector is None and hot is not None and numbers[hot] in compiled.vectorised:
        vector, kind = hot, BY_LOOP
    neighbours = [d for d in range(tile, depth) if loops.walks(d)]
    if vector is None and neighbours:
        vector, kind = max(neighbours, key=lambda d: extents[d]), BY_STATEMENTS
    width = 1 if vector is None else extents[vector]
    power = 1 << min(lanes, width).bit_length() - 1
    return _Shape(
        hot, vector, tuple(d for d in range(tile, depth) if d != vector),
        min(lanes, width) if kind == ANNOTATED else power, kind,
        -(-width // lanes) if kind == ANNOTATED else 1, width,
    )  # fmt: skip


def _registers(loops: LeafLoops, shape: _Shape, access: int) -> int:
    """Vector registers that an access of the tile needs."""
    named = loops.named[access]
    moved = shape.vector is None or named[shape.vector]
    return prod(loops.extents[d] for d in shape.inner if named[d]) * (shape.pieces if moved else 1)
