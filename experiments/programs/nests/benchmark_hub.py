"""Front end of the benchmark hub: tunable GPU kernels from their tuning parameters.

The files are T4 caches of Kernel Tuner (``convolution``, ``dedispersion``, ``gemm``): gzip JSON,
``cache`` of configurations with their parameters and ``time``, milliseconds. What is no number is
a configuration that did not run. Nests follow the structure of the published kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from experiments.programs.nests.gpu_nests import (
    LOCAL,
    SHARED,
    ProductTiling,
    around,
    ceil_div,
    nest_of_product,
    operation_counts,
    plus,
    times,
)
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.programs.nests.check_nest import check_nest
from go_rl.costs.programs.nests.index import LoopVariable, NestError
from go_rl.costs.programs.nests.nest import (
    SERIAL,
    UNROLLED,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
)
from go_rl.runtime.array_file import DAMAGED, open_packed

GEMM_DEPTH = 4096
"""Of the product that was measured: a side of the square."""
CHANNELS = 1536
"""Frequency channels of the dedispersion that was measured."""
Parameters = Mapping[str, int]


@dataclass(frozen=True)
class HubRecord:
    """One configuration of a kernel."""

    parameters: Parameters
    seconds: float | None
    """None: it did not run."""


def hub_records(path: Path) -> tuple[str, str, tuple[int, ...], Iterator[HubRecord]]:
    """Return kernel, device, problem size and configurations of a file.

    Raises:
        NestError: it cannot be read, or is no cache file.
    """
    try:
        with open_packed(path) as file:
            document = parse_json(file.read())
        keys = document["tune_params_keys"]
        size = tuple(int(n) for n in document["problem_size"])
        name, device, cache = document["kernel_name"], document["device_name"], document["cache"]
    except (*DAMAGED, KeyError, TypeError) as error:
        raise NestError(f"{path}: not a cache file of the benchmark hub ({error})") from error
    return str(name), str(device), size, (_record(each, keys) for each in cache.values())


def _record(entry: Mapping[str, Any], keys: list[str]) -> HubRecord:
    time = entry.get("time")
    ran = isinstance(time, int | float)
    return HubRecord({key: int(entry[key]) for key in keys}, time * 1e-3 if ran else None)


def nest_from_hub(kernel: str, size: tuple[int, ...], parameters: Parameters) -> LoopNest:
    """Return the nest of a configuration.

    Raises:
        NestError: the kernel is unknown, a parameter is missing, or tiles do not fit.
    """
    if kernel not in _KERNELS:
        raise NestError(f"unknown kernel {kernel!r}; known are {', '.join(_KERNELS)}")
    try:
        return check_nest(_KERNELS[kernel](size, parameters))
    except KeyError as error:
        raise NestError(f"{kernel}: parameter {error} is missing") from error


def _gemm(size: tuple[int, ...], p: Parameters) -> LoopNest:
    """CLBlast's ``Xgemm``: MWG x NWG a work-group of MDIMC x NDIMC threads, KWG deep."""
    thread = (p["MWG"] // p["MDIMC"], p["NWG"] // p["NDIMC"])
    tiling = ProductTiling((p["MWG"], p["NWG"]), thread, p["KWG"])
    return nest_of_product(1, size[0], size[1], GEMM_DEPTH, tiling)


def _convolution(size: tuple[int, ...], p: Parameters) -> LoopNest:
    """A filter over an image: a block's piece of the image in shared memory if asked, a thread's
    sums in registers."""
    wide, high = size
    bx, by, tx, ty = (p[f"{k}_{d}"] for k in ("block_size", "tile_size") for d in "xy")
    fh, fw = p["filter_height"], p["filter_width"]
    by_, bx_, ly, lx = map(LoopVariable, range(4))
    piece = (by * ty + fh - 1, bx * tx + fw - 1 + p["use_padding"])
    buffers = (
        NestBuffer("image", (high + fh - 1, wide + fw - 1)), NestBuffer("filter", (fh, fw)),
        NestBuffer("result", (high, wide)), NestBuffer("sum", (ty, tx), LOCAL, 3),
        NestBuffer("piece", piece, SHARED, 1),
    )  # fmt: skip
    top, left = times(by_, by * ty), times(bx_, bx * tx)
    body: list[ForLoop | Statement] = []
    first = 4
    if p["use_shmem"]:
        i, j = plus(times(LoopVariable(4), by), ly), plus(times(LoopVariable(5), bx), lx)
        read = Access(0, (plus(top, i), plus(left, j)))
        loops = [(ceil_div(piece[0], by), SERIAL), (ceil_div(piece[1], bx), SERIAL)]
        body.extend(around(loops, (Statement(Access(4, (i, j)), (read,)),)))
        first = 6
    i, j, y, x = map(LoopVariable, range(first, first + 4))
    row, column = plus(plus(ly, times(y, by)), i), plus(plus(lx, times(x, bx)), j)
    source = Access(4, (row, column)) if p["use_shmem"] else Access(
        0, (plus(top, row), plus(left, column)))  # fmt: skip
    total = Access(3, (y, x))
    work = operation_counts(float_mul=1, float_add_sub=1)
    add = Statement(total, (total, source, Access(1, (i, j))), work)
    body.extend(around([(fh, UNROLLED), (fw, UNROLLED), (ty, UNROLLED), (tx, UNROLLED)], (add,)))
    y, x = LoopVariable(first + 4), LoopVariable(first + 5)
    at = (plus(top, plus(ly, times(y, by))), plus(left, plus(lx, times(x, bx))))
    store = Statement(Access(2, at), (Access(3, (y, x)),))
    body.extend(around([(ty, UNROLLED), (tx, UNROLLED)], (store,)))
    loops = [
        (ceil_div(high, by * ty), "block.y"), (ceil_div(wide, bx * tx), "block.x"),
        (by, "thread.y"), (bx, "thread.x"),
    ]  # fmt: skip
    return LoopNest(buffers, around(loops, tuple(body)), gpu=True)


def _dedispersion(size: tuple[int, ...], p: Parameters) -> LoopNest:
    """Sums over channels of samples delayed by channel and dispersion measure. The delay is data:
    the nest reads each sample as if it were 0."""
    samples, measures = size[:2]
    bx, by, tx, ty = (p[f"{k}_{d}"] for k in ("block_size", "tile_size") for d in "xy")
    gy, gx, ly, lx = map(LoopVariable, range(4))
    buffers = (
        NestBuffer("signal", (CHANNELS, samples)), NestBuffer("delay", (CHANNELS,)),
        NestBuffer("result", (measures, samples)), NestBuffer("sum", (ty, tx), LOCAL, 3),
    )  # fmt: skip

    def place(group: LoopVariable, local: LoopVariable, tile: LoopVariable, d: str) -> Any:
        block, count = p[f"block_size_{d}"], p[f"tile_size_{d}"]
        inside = plus(times(tile, block), local) if p[f"tile_stride_{d}"] else plus(
            times(local, count), tile)  # fmt: skip
        return plus(times(group, block * count), inside)

    channel, y, x = map(LoopVariable, range(4, 7))
    total = Access(3, (y, x))
    read = Access(0, (channel, place(gx, lx, x, "x")))
    work = operation_counts(float_add_sub=1, float_mul=1, int_add_sub=1)
    add = Statement(total, (total, read, Access(1, (channel,))), work)
    factor = p["loop_unroll_factor_channel"]
    unroll = ForLoop(
        CHANNELS, SERIAL, around([(ty, UNROLLED), (tx, UNROLLED)], (add,)), auto_unroll=factor
    )
    y, x = LoopVariable(7), LoopVariable(8)
    at = (place(gy, ly, y, "y"), place(gx, lx, x, "x"))
    store = around(
        [(ty, UNROLLED), (tx, UNROLLED)], (Statement(Access(2, at), (Access(3, (y, x)),)),)
    )
    loops = [
        (ceil_div(measures, by * ty), "block.y"), (ceil_div(samples, bx * tx), "block.x"),
        (by, "thread.y"), (bx, "thread.x"),
    ]  # fmt: skip
    return LoopNest(buffers, around(loops, (unroll, *store)), gpu=True)


_KERNELS: Mapping[str, Callable[[tuple[int, ...], Parameters], LoopNest]] = MappingProxyType(
    {"Xgemm": _gemm, "convolution_kernel": _convolution, "dedispersion_kernel": _dedispersion}
)
"""By the name in the file."""
