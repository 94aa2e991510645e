"""The kernels that are tiled: matmuls, convolutions and reductions at the shapes at which published
networks have them, by network, in sizes that one core runs in 50 us to 20 ms.

A kernel that two networks share belongs to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil

from go_rl.costs.tiles.networks import CNNS, DENSE, RESIDUAL, STATISTICS, TRANSFORMERS
from go_rl.costs.tiles.program import TileProgram

REDUCED = 1_500_000
"""A transformer's reductions run over a batch with at least this many elements."""
SHORT_CONTEXT = 256
"""Attention runs over more tokens than this: over a multiple of a layer's if need be."""


@dataclass(frozen=True)
class TileWorkload:
    """A kernel and where it comes from."""

    family: str
    """``transformer``, ``cnn``, ``recurrent`` or ``recommender``."""
    model: str
    """The network: what a split by model keeps together."""
    program: TileProgram


@cache
def tile_workloads() -> tuple[TileWorkload, ...]:
    """Return the kernels, each program once, in a fixed order."""
    found: dict[TileProgram, TileWorkload] = {}
    for workload in (*_transformers(), *_cnns(), *_dense(), *_statistics()):
        found.setdefault(workload.program, workload)
    return tuple(found.values())


def _transformers() -> Iterator[TileWorkload]:
    for t in TRANSFORMERS:
        rows = _rows(t.tokens, t.hidden)
        context = t.tokens * (1 + SHORT_CONTEXT // t.tokens)
        scores = _rows(context * (t.hidden // t.head), context)
        programs = [
            TileProgram("matmul", (t.tokens, t.hidden, t.hidden), "bias"),
            TileProgram("matmul", (t.tokens, t.hidden, t.hidden), "bias+add"),
            TileProgram("matmul", (t.tokens, t.wide, t.hidden), f"bias+{t.activation}"),
            TileProgram("matmul", (t.tokens, t.hidden, t.wide), "bias+add"),
            TileProgram("matmul", (context, context, t.head), "scale"),
            TileProgram("matmul", (context, t.head, context)),
            TileProgram("reduce_sum", (rows, t.hidden, 1), "scale"),
            TileProgram("reduce_sum", (rows, t.hidden, 0)),
            TileProgram("reduce_sum", (rows, t.wide, 0), "add"),
            TileProgram("reduce_max", (scores, context, 1)),
            TileProgram("reduce_sum", (scores, context, 1)),
        ]
        yield from (TileWorkload("transformer", t.model, program) for program in programs)


def _rows(rows: int, columns: int) -> int:
    """Return the rows of a batch that makes `REDUCED` elements."""
    return rows * ceil(REDUCED / (rows * columns))


def _cnns() -> Iterator[TileWorkload]:
    for model, layers in CNNS.items():
        for side, wide, kernel, out, stride in layers:
            adds = model in RESIDUAL and stride == 1 and out <= wide and kernel < 5
            linear = model in RESIDUAL[-2:] and out < wide
            epilogue = "bias+add+relu" if adds else "bias+relu"
            epilogue = ("bias+add" if adds else "bias") if linear else epilogue
            epilogue = "none" if model == "densenet121" else epilogue
            padding = 0 if model == "dqn" else kernel // 2
            sizes = (1, side, side, wide, kernel, kernel, out, stride, padding)
            yield TileWorkload("cnn", model, TileProgram("conv2d", sizes, epilogue))


def _dense() -> Iterator[TileWorkload]:
    for (family, model), kernels in DENSE.items():
        for shape, epilogue in kernels:
            yield TileWorkload(family, model, TileProgram("matmul", shape, epilogue))


def _statistics() -> Iterator[TileWorkload]:
    for model, shapes in STATISTICS.items():
        for rows, channels in shapes:
            program = TileProgram("reduce_sum", (rows, channels, 0), "scale")
            yield TileWorkload("cnn", model, program)
