"""The scheduled program: the loop nest of `TiledProgram`, word for word, in TVM.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``. One core, AVX2.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from go_rl.core import ExecutionError
from go_rl.costs.tiles.stages import EPILOGUE, HEAVY, LANES, PAD, tensor_program
from go_rl.costs.tiles.tiled_program import TiledProgram, vector_width
from go_rl.costs.timing.tvm_calls import import_tvm

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=1"
"""Compilation target of kernels; records of tiles are valid for a processor and this."""


def scheduled_module(tiled: TiledProgram) -> Any:
    """Return the TVM module whose function ``main`` takes the arguments and then the result.

    Raises:
        MissingDependencyError: TVM is not installed.
    """
    tvm = import_tvm()
    arguments, result = tensor_program(tiled)
    function = tvm.te.create_prim_func([*arguments, result])
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    schedule = tvm.s_tir.Schedule(module)
    pieces = _split(schedule, tiled)
    schedule.reorder(*(pieces[x.loop][x.level] for x in tiled.nest))
    _mark_register_tile(schedule, tiled, pieces)
    _place_followers(schedule, tiled, pieces)
    first = next(x.loop for x in tiled.nest if tiled.program.loop(x.loop).reduces)
    schedule.decompose_reduction(schedule.get_sblock(HEAVY), pieces[first][0])
    _mark_padding(schedule, tiled)
    return schedule.mod


def build(tiled: TiledProgram) -> Any:
    """Return the compiled kernel, a TVM runtime module.

    Raises:
        MissingDependencyError: TVM is not installed.
        ExecutionError: this processor does not run AVX2 and FMA.
    """
    check_processor()
    tvm = import_tvm()
    target = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1})
    return tvm.compile(scheduled_module(tiled), target=target).jit()


def check_processor() -> None:
    """Raise an `ExecutionError` unless this processor runs what `TARGET` compiles to."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ExecutionError(f"tiles are compiled for x86-64, not for {platform.machine()}")
    facts = Path("/proc/cpuinfo")
    words = set(facts.read_text().split()) if facts.is_file() else {"avx2", "fma"}
    if not {"avx2", "fma"} <= words:
        raise ExecutionError("tiles are compiled for AVX2 and FMA, which this processor lacks")


Pieces = Mapping[str, Sequence[Any]]
"""The three TVM loops that each loop of the program is split into, by `NestLoop.level`."""


def _split(schedule: Any, tiled: TiledProgram) -> Pieces:
    program = tiled.program
    loops = schedule.get_loops(schedule.get_sblock(HEAVY))
    if not tiled.has_partial_sums:
        named = zip(program.loops, loops, strict=True)
        return {x.name: schedule.split(loop, _factors(tiled, x.name)) for x, loop in named}
    kept, lane, block = loops
    blocks = schedule.split(block, _factors(tiled, program.vector_loop)[:2])
    rows = program.loops[0].name
    return {
        rows: schedule.split(kept, _factors(tiled, rows)),
        program.vector_loop: [*blocks, lane],
    }


def _factors(tiled: TiledProgram, name: str) -> list[int]:
    extent, cache, register = (
        tiled.program.loop(name).extent,
        tiled.cache[name],
        tiled.register[name],
    )
    return [ceil(extent / cache), cache // register, register]


def _mark_register_tile(schedule: Any, tiled: TiledProgram, pieces: Pieces) -> None:
    for x in tiled.nest:
        if x.level < 2 or x.trips == 1:
            continue
        if x.loop == tiled.program.vector_loop:
            _vectorize(schedule, pieces[x.loop][2], tiled.lanes)
        elif tiled.tiles.unroll:
            schedule.unroll(pieces[x.loop][2])


def _place_followers(schedule: Any, tiled: TiledProgram, pieces: Pieces) -> None:
    """Put what follows the heavy operator where a cache tile of the result is finished."""
    last = [x.name for x in tiled.program.loops if not x.reduces][-1]
    for name in (LANES, EPILOGUE):
        if not _has(tiled, name):
            continue
        block = schedule.get_sblock(name)
        if not tiled.tiles.reduction_outside:
            schedule.reverse_compute_at(block, pieces[last][0])
        inmost = schedule.get_loops(block)[-1]
        if name == LANES:
            schedule.decompose_reduction(block, inmost)
        else:
            _vectorize(schedule, inmost, tiled.register[last])


def _has(tiled: TiledProgram, stage: str) -> bool:
    return bool(tiled.program.steps) if stage == EPILOGUE else tiled.has_partial_sums


def _mark_padding(schedule: Any, tiled: TiledProgram) -> None:
    dims = tiled.program.dims
    if dims.get("padding", 0):
        width = next(w for w in (16, 8, 4, 2, 1) if dims["ci"] % w == 0)
        _vectorize(schedule, schedule.get_loops(schedule.get_sblock(PAD))[-1], width)


def _vectorize(schedule: Any, loop: Any, size: int) -> None:
    """Run a loop, or stretches of ``size`` of it, as vectors."""
    width = vector_width(size)
    _, vectors, lanes = schedule.split(loop, [None, size // width, width])
    if size > width:
        schedule.unroll(vectors)
    if width > 1:
        schedule.vectorize(lanes)
