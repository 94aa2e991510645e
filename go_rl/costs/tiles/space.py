"""Configurations of a program: the naive one, a sensible one, and random ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod

import numpy as np

from go_rl.costs.tiles.loops import Loop, TileError
from go_rl.costs.tiles.program import TileProgram
from go_rl.costs.tiles.tiled_program import (
    MAX_LANES,
    VECTOR_LANES,
    TiledProgram,
    Tiles,
    vector_count,
    vector_width,
)

LARGEST_REGISTER = {"n": 1, "m": 16, "oh": 4, "ow": 16, "kh": 7, "kw": 7, "ci": 16, "k": 16}
"""Largest register tile of a loop that is no vector loop; 16 for those not named."""
WHOLE_OR_NONE = frozenset(("kh", "kw"))
"""Loops so short that a tile is one iteration or all."""
MOST_VECTORS = 4
"""Most vector instructions in a row that the default's register tile takes."""
FEW = 4096
"""Spaces up to this size are listed, larger ones are drawn from."""
DRAWS = 200
"""Draws for each configuration wanted."""

Choice = tuple[int, int]
"""Cache tile and register tile of one loop."""


def tile_configurations(program: TileProgram, count: int, seed: int) -> list[Tiles]:
    """Return up to ``count`` legal configurations, no two of which make the same loop nest.

    The first is `naive_tiles`, the second `default_tiles` (unless they are the same), the others
    are random: tile sizes about evenly on a logarithmic scale, and of the vector loop three in four
    whole vectors where it has such. There are fewer than ``count`` only if the program has fewer.

    Raises:
        TileError: ``count`` is less than 2.
    """
    if count < 2:
        raise TileError(f"count must be at least 2 (the naive and the default), not {count}")
    found: dict[tuple[object, ...], Tiles] = {}
    firsts = (naive_tiles(program), default_tiles(program))
    for tiles in chain(firsts, _random(program, count, np.random.default_rng(seed))):
        found.setdefault(TiledProgram(program, tiles).shape, tiles)
        if len(found) == count:
            break
    return list(found.values())


def naive_tiles(program: TileProgram) -> Tiles:
    """Return no tiles at all: plain loops over single elements."""
    return Tiles(tuple(loop.extent for loop in program.loops), (1,) * len(program.loops))


def default_tiles(program: TileProgram) -> Tiles:
    """Return what one would write without measuring: sums that fill the registers, tiles that fit
    the caches, everything unrolled."""
    vector, kept = program.vector_loop, [x for x in program.loops if not x.reduces]
    goals = {loop.name: (64, 1) for loop in program.loops}
    if program.is_reduction:
        rows = next(x.name for x in program.loops if x.name != vector)
        goals |= {vector: (4096, 32), rows: (64, 4)}
    else:
        last = [x for x in program.loops if x.reduces][-1].name
        goals |= {vector: (64, 16), kept[-2].name: (56, 7), last: (256, 4)}
    choices = [_nearest(program, loop, *goals[loop.name]) for loop in program.loops]
    return _tiles(program, choices, unroll=True, outside=False)


def _nearest(program: TileProgram, loop: Loop, cache: int, register: int) -> Choice:
    """Return the largest register tile within its goal (of the vector loop, the one with the
    fullest vectors), then the largest cache tile within its."""
    if loop.name in WHOLE_OR_NONE:
        return loop.extent, 1
    choices = _choices(program, loop)
    sizes = [r for _, r in choices if r <= register]
    if loop.name == program.vector_loop:
        few = [r for r in sizes if vector_count(r) <= MOST_VECTORS]
        size = max(few, key=lambda r: (min(vector_width(r), VECTOR_LANES), r))
    else:
        size = max(sizes)
    return max(c for c, r in choices if r == size and c <= max(cache, size)), size


def _choices(program: TileProgram, loop: Loop) -> list[Choice]:
    largest = LARGEST_REGISTER.get(loop.name, 16)
    largest = MAX_LANES if loop.name == program.vector_loop else largest
    registers = [r for r in range(1, min(largest, loop.extent) + 1) if loop.extent % r == 0]
    if loop.name in WHOLE_OR_NONE:
        ends = {1, loop.extent}
        return [(c, r) for r in registers for c in sorted(ends) if r in ends and c >= r]
    return [(r * c, r) for r in registers for c in _counts(loop.extent // r)]


def _counts(most: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, … below ``most``, and ``most``."""
    powers = [1 << i for i in range(most.bit_length())]
    return sorted({c for p in powers for c in (p, p + p // 2) if c <= most} | {most})


def _random(program: TileProgram, count: int, rng: np.random.Generator) -> Iterator[Tiles]:
    choices = [_choices(program, loop) for loop in program.loops]
    if prod(len(c) for c in choices) <= FEW:
        flags = (False, True)
        listed = list(product(product(*choices), flags, flags))
        drawn = (listed[i] for i in rng.permutation(len(listed)))
    else:
        drawn = (_draw(program, choices, rng) for _ in range(DRAWS * count))
    for picked, unroll, outside in drawn:
        found = _tiles(program, picked, unroll, outside)
        if _fits(program, found):
            yield found


def _draw(
    program: TileProgram, choices: Sequence[Sequence[Choice]], rng: np.random.Generator
) -> tuple[tuple[Choice, ...], bool, bool]:
    picked = tuple(
        _pick(options, loop.name == program.vector_loop, rng)
        for options, loop in zip(choices, program.loops, strict=True)
    )
    return picked, rng.random() < 0.5, rng.random() < 0.5


def _pick(options: Sequence[Choice], is_vector: bool, rng: np.random.Generator) -> Choice:
    """Draw a register tile, then a cache tile of it."""
    registers = sorted({r for _, r in options})
    full = [r for r in registers if r % VECTOR_LANES == 0]
    registers = full if is_vector and full and rng.random() < 0.75 else registers
    register = registers[rng.integers(len(registers))]
    caches = [c for c, r in options if r == register]
    return caches[rng.integers(len(caches))], register


def _fits(program: TileProgram, tiles: Tiles) -> bool:
    try:
        TiledProgram(program, tiles)
    except TileError:
        return False
    return True


def _tiles(program: TileProgram, choices: Sequence[Choice], unroll: bool, outside: bool) -> Tiles:
    """Return tiles without a flag that would change nothing."""
    cache, register = zip(*choices, strict=True)
    body = [
        r for r, x in zip(register, program.loops, strict=True) if x.name != program.vector_loop
    ]
    cut = {x.reduces for c, x in zip(cache, program.loops, strict=True) if c < x.extent}
    return Tiles(cache, register, unroll and max(body) > 1, outside and cut == {False, True})
