"""`TiledProgram`: a program cut into tiles, the rules that tiles keep, and the loop nest.

Every loop is cut twice: into cache tiles, and those into register tiles. The nest is, from the
outside,

    cache tiles of the result's loops, then of the reducing loops;
        register tiles of the result's loops, then of the reducing loops;
            iterations of the reducing loops, then of the result's loops,

with the cache tiles of the reducing loops outside of all when ``reduction_outside``. The epilogue
follows on each cache tile of the result, or on all of it when ``reduction_outside``. A register
tile's iterations along the vector loop are operations on vectors of `vector_width`. In a reduction
along the minor dimension that loop reduces: each of its lanes keeps a partial sum, and these are
added at last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from go_rl.costs.tiles.loops import Loop, TileError, json_object, whole_number
from go_rl.costs.tiles.program import TileProgram
from go_rl.runtime.records import canonical_json

FIELDS = ("cache", "reduction_outside", "register", "unroll")


@dataclass(frozen=True)
class Tiles:
    """Tile sizes of a program's loops, in the order of ``program.loops``; `TiledProgram` says what
    they mean and which fit a program.

    Raises:
        TileError: sizes that are no whole numbers >= 1, or lists of different lengths.
    """

    cache: tuple[int, ...]
    """Iterations of each loop in a cache tile; the last tile of a loop may be partial."""
    register: tuple[int, ...]
    """Iterations of each loop in a register tile: divides the cache tile and the loop."""
    unroll: bool = False
    """Whether the schedule unrolls the loops of the register tile."""
    reduction_outside: bool = False
    """Whether all results are updated once for each cache tile of the reducing loops, instead of
    being finished one cache tile after the other."""

    def __post_init__(self) -> None:
        if len(self.cache) != len(self.register):
            raise TileError(
                f"tiles: {len(self.cache)} cache tiles but {len(self.register)} register tiles"
            )
        for size in (*self.cache, *self.register):
            whole_number("tiles: a size", size)

    @property
    def setting(self) -> str:
        """The canonical JSON: what tells records of one program apart."""
        return canonical_json({name: getattr(self, name) for name in FIELDS})

    @staticmethod
    def from_json(text: str) -> Tiles:
        """Read what `setting` wrote, in whatever order and spacing; a `TileError` names a fault."""
        found = json_object("tiles are", text, FIELDS)
        for name in ("cache", "register"):
            if not isinstance(found[name], list):
                raise TileError(f"tiles: {name} must be a list, not {found[name]!r}")
        for name in ("unroll", "reduction_outside"):
            if not isinstance(found[name], bool):
                raise TileError(f"tiles: {name} must be true or false, not {found[name]!r}")
        cache, register = (
            tuple(whole_number("tiles: a size", size) for size in found[name])
            for name in ("cache", "register")
        )
        return Tiles(cache, register, found["unroll"], found["reduction_outside"])


MAX_LANES = 64
"""Largest register tile of the vector loop, elements."""
VECTOR_LANES = 8
"""Elements of a vector register: AVX2, float32."""
MAX_BODY = 256
"""Most vector instructions in one register tile: unrolled, they are so much code."""


@dataclass(frozen=True)
class NestLoop:
    """One loop of the nest."""

    loop: str
    """The program's loop that it runs along."""
    level: int
    """0: over cache tiles; 1: over register tiles; 2: inside of a register tile."""
    step: int
    """Iterations of the program's loop in one of this."""
    trips: float
    """Mean iterations: a fraction where the last cache tile is partial."""


@dataclass(frozen=True)
class TiledProgram:
    """A program and tiles that fit it.

    Raises:
        TileError: the tiles break a rule; the message says which and where.
    """

    program: TileProgram
    tiles: Tiles

    def __post_init__(self) -> None:
        title, loops, tiles = self.program.title, self.program.loops, self.tiles
        if len(tiles.cache) != len(loops):
            names = ", ".join(loop.name for loop in loops)
            raise TileError(f"{title}: {len(tiles.cache)} tile sizes for the loops {names}")
        for loop, cache, register in zip(loops, tiles.cache, tiles.register, strict=True):
            _check_loop(title, loop, cache, register)
        if self.lanes > MAX_LANES:
            raise TileError(
                f"{title}: the register tile of loop {self.program.vector_loop!r}, a vector, is "
                f"{self.lanes}; at most {MAX_LANES} is allowed"
            )
        if self.body > MAX_BODY:
            raise TileError(
                f"{title}: a register tile of {self.body} vector instructions; at most {MAX_BODY} "
                "are allowed"
            )

    @cached_property
    def cache(self) -> dict[str, int]:
        """Cache tile by loop."""
        return dict(zip((x.name for x in self.program.loops), self.tiles.cache, strict=True))

    @cached_property
    def register(self) -> dict[str, int]:
        """Register tile by loop."""
        return dict(zip((x.name for x in self.program.loops), self.tiles.register, strict=True))

    @property
    def lanes(self) -> int:
        """Register tile of the vector loop, elements."""
        return self.register[self.program.vector_loop]

    @property
    def vectors(self) -> int:
        """Vector instructions that `lanes` take."""
        return vector_count(self.lanes)

    @property
    def body(self) -> int:
        """Vector instructions of the heavy operator in a register tile."""
        return prod(self.tiles.register) // self.lanes * self.vectors

    @property
    def has_partial_sums(self) -> bool:
        """Whether lanes keep sums of their own, which are added at last."""
        return self.lanes > 1 and self.program.loop(self.program.vector_loop).reduces

    @property
    def accumulators(self) -> int:
        """Vector registers that the sums of a register tile take."""
        kept = prod(self.register[x.name] for x in self.program.loops if not x.reduces)
        summed = self.program.loop(self.program.vector_loop).reduces
        return (kept if summed else kept // self.lanes) * self.vectors

    @cached_property
    def nest(self) -> tuple[NestLoop, ...]:
        """The loops from the outermost to the innermost, those of one iteration included."""
        loops, vector = self.program.loops, self.program.vector_loop
        kept = [x for x in loops if not x.reduces]
        gone = [x for x in loops if x.reduces]
        outer = gone + kept if self.tiles.reduction_outside else kept + gone
        inner = sorted(gone + kept, key=lambda x: x.name == vector)
        levels = enumerate((outer, kept + gone, inner))
        return tuple(self._nest_loop(x, level) for level, group in levels for x in group)

    def _nest_loop(self, loop: Loop, level: int) -> NestLoop:
        cache, register = self.cache[loop.name], self.register[loop.name]
        trips = (loop.extent / cache, cache / register, float(register))[level]
        return NestLoop(loop.name, level, (cache, register, 1)[level], trips)

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """Shape that tells the nests of a program apart: equal for tiles that make the same one."""
        loops = tuple((x.loop, x.step, x.trips, x.level == 2) for x in self.nest if x.trips > 1)
        return loops, self.tiles.unroll, self.tiles.reduction_outside


def vector_width(size: int) -> int:
    """Return the elements of one vector operation where ``size`` in a row are to be worked on: the
    largest power of two that divides it. (LLVM makes poor code of vectors of, say, 24.)"""
    return size & -size


def vector_count(size: int) -> int:
    """Return the instructions of `VECTOR_LANES` that work on ``size`` elements in a row."""
    width = vector_width(size)
    return size // width * ceil(width / VECTOR_LANES)


def _check_loop(title: str, loop: Loop, cache: int, register: int) -> None:
    where = f"{title}: loop {loop.name!r} of {loop.extent}"
    if cache > loop.extent:
        raise TileError(f"{where}: the cache tile {cache} exceeds it")
    if loop.extent % register or cache % register:
        raise TileError(
            f"{where}: the register tile {register} must divide it and the cache tile {cache}"
        )
