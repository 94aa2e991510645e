"""The hand-written estimate of a configuration's seconds, with constants from a data sheet.

As in the analytical model of "A Learned Performance Model for Tensor Processing Units" (Kaufman et
al., MLSys 2021): the larger of the time to compute and the times to move data, here between a
core's caches, from the sizes of the tiles; what does not overlap is added.

    seconds = max(cycles of register tiles / clock, bytes into L1 / rate, …) + padding + epilogue
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from math import isfinite, prod

from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.tiles.loops import Operand, TileError
from go_rl.costs.tiles.tiled_program import VECTOR_LANES, TiledProgram, vector_count
from go_rl.costs.tiles.traffic import traffic


@dataclass(frozen=True)
class CoreSheet:
    """One x86 core as its data sheet has it: by default that of the target ``cpu-1``, a Xeon of
    Intel's Sapphire Rapids, code for AVX2 (Intel publication 248966, optimisation reference
    manual)."""

    clock: float = 3.2e9
    """Hz: what all cores sustain, not the base clock, which measurements exceed."""
    pipes: float = 2.0
    """Vector multiply-adds (or additions, or comparisons) begun in a cycle."""
    latency: float = 4.0
    """Cycles from operands to result of one."""
    registers: float = 16.0
    """Vector registers."""
    loads: float = 3.0
    """Vector loads begun in a cycle."""
    stores: float = 1.0
    """Vector stores finished in a cycle; two would have to go into one cache line."""
    loop_cycles: float = 1.0
    """Cycles that an iteration of a loop costs beside its work: a fused compare and branch."""
    l1_bytes: float = 48.0 * 1024
    l2_bytes: float = 2048.0 * 1024
    l3_bytes: float = 105.0 * 1024 * 1024
    """All cores share the last cache, and each reaches all of it."""
    l1_rate: float = 204.8e9
    """Bytes/s between L1 and L2: 64 a cycle."""
    l2_rate: float = 51.2e9
    """Bytes/s between L2 and L3: 16 a cycle."""
    l3_rate: float = 25e9
    """Bytes/s between L3 and memory: the bandwidth of ``cpu-1`` (`go_rl.core.hardware.presets`)."""

    def __post_init__(self) -> None:
        if not all(isfinite(value) and value > 0 for value in astuple(self)):
            raise TileError(f"a core's constants must be numbers > 0: {self}")

    @property
    def peak_flops(self) -> float:
        """FLOP/s of full vectors, a multiply-add being two."""
        return 2 * VECTOR_LANES * self.pipes * self.clock

    @property
    def caches(self) -> tuple[tuple[float, float], ...]:
        """Bytes of each cache, and bytes/s between it and the next."""
        sizes = (self.l1_bytes, self.l2_bytes, self.l3_bytes)
        return tuple(zip(sizes, (self.l1_rate, self.l2_rate, self.l3_rate), strict=True))


STEP_INSTRUCTIONS: Mapping[str, float] = {
    "add": 1,
    "bias": 1,
    "gelu": 28,
    "relu": 1,
    "scale": 1,
    "sigmoid": 24,
    "tanh": 22,
}
"""Vector instructions of an epilogue's step on one vector; a division counts as ten."""


@dataclass(frozen=True)
class TileEstimate:
    """Seconds of one run, by part; `seconds` is their sum with overlap."""

    compute: float
    """Register tiles: arithmetic, loads and stores of registers, loop overhead."""
    transfers: tuple[float, float, float]
    """Moving data into and out of L1, L2 and L3."""
    around: float
    """Seconds of work that does not overlap: padding the image, adding up lanes, the epilogue."""

    @property
    def seconds(self) -> float:
        """The estimate."""
        return max(self.compute, *self.transfers) + self.around


def estimate_tiles(tiled: TiledProgram, core: CoreSheet | None = None) -> TileEstimate:
    """Return the estimate for one configuration on a core; None: the default `CoreSheet`."""
    core = core or CoreSheet()
    bodies = prod(loop.extent / tiled.register[loop.name] for loop in tiled.program.loops)
    compute = bodies * body_cycles(tiled, core) / core.clock
    l1, l2, l3 = (traffic(tiled, size) / rate for size, rate in core.caches)
    around = (_lane_cycles(tiled, core) + _epilogue_cycles(tiled, core)) / core.clock
    return TileEstimate(compute, (l1, l2, l3), around + _copy_seconds(tiled, core))


def body_cycles(tiled: TiledProgram, core: CoreSheet) -> float:
    """Return cycles of one register tile: the slowest of arithmetic, the chains of dependent sums,
    loads and stores, and the overhead of its loops."""
    work, sums = tiled.body, tiled.accumulators
    spilled = work * max(0.0, 1 - (core.registers - 2) / sums)
    kept = sums / sum_trips(tiled)
    loads = sum(register_loads(tiled, x) for x in tiled.program.operands if not x.is_result)
    bounds = (
        work / core.pipes,
        work / sums * core.latency,
        (loads + spilled + kept) / core.loads,
        (spilled + kept) / core.stores,
    )
    iterations = 1 if tiled.tiles.unroll else prod(tiled.tiles.register) / tiled.lanes
    return max(bounds) + core.loop_cycles * iterations


def sum_trips(tiled: TiledProgram) -> float:
    """Return register tiles that follow each other on the same sums before these are stored."""
    summed = (x for x in tiled.nest if tiled.program.loop(x.loop).reduces)
    return float(prod(x.trips for x in summed if x.level == 1))


def register_loads(tiled: TiledProgram, operand: Operand) -> int:
    """Return vector loads (or loads of one element for a whole vector) of an operand in a register
    tile, each vector once."""
    return prod(_distinct(tiled, dimension) for dimension in operand.index)


def _distinct(tiled: TiledProgram, dimension: tuple[tuple[str, int], ...]) -> int:
    """Places in one dimension of an operand, or vectors of it, that a register tile touches."""
    if tiled.program.vector_loop in (name for name, _ in dimension):
        return tiled.vectors
    reach = 1 + sum(step * (tiled.register[name] - 1) for name, step in dimension)
    return min(reach, prod(tiled.register[name] for name, _ in dimension))


def _lane_cycles(tiled: TiledProgram, core: CoreSheet) -> float:
    """Adding up lanes is one chain of dependent additions for each element of the result."""
    if not tiled.has_partial_sums:
        return 0.0
    return core.latency * tiled.lanes * prod(tiled.program.output_shape)


def _epilogue_cycles(tiled: TiledProgram, core: CoreSheet) -> float:
    width = [tiled.register[x.name] for x in tiled.program.loops if not x.reduces][-1]
    vectors = prod(tiled.program.output_shape) / width * vector_count(width)
    return vectors * sum(STEP_INSTRUCTIONS[s] for s in tiled.program.steps) / core.pipes


def _copy_seconds(tiled: TiledProgram, core: CoreSheet) -> float:
    """The padded copy of an image, and the passes of an epilogue over results that wait for it."""
    program, moved = tiled.program, 0.0
    if program.dims.get("padding", 0):
        moved += 2.0 * FLOAT_BYTES * prod(program.input_shapes["left"])
    seconds = _pass_seconds(moved, core)
    if program.steps:
        waiting = program.output_shape if tiled.tiles.reduction_outside else _tile_shape(tiled)
        passes = prod(program.output_shape) / prod(waiting)
        seconds += passes * _pass_seconds(2.0 * FLOAT_BYTES * prod(waiting), core)
    return seconds


def _tile_shape(tiled: TiledProgram) -> tuple[int, ...]:
    return tuple(tiled.cache[x.name] for x in tiled.program.loops if not x.reduces)


def _pass_seconds(moved: float, core: CoreSheet) -> float:
    """Seconds to move bytes that lie in the smallest cache that holds them."""
    slower = [1 / rate for size, rate in core.caches if moved > size]
    return moved * (slower[-1] if slower else 0.0)
