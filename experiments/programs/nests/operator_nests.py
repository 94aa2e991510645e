"""`nests_of_operators`: loop nests of GPU operators of a table, from their sizes.

A library's code is not at hand: a product is tiled as its kernel's name says, or in `ProductTiling`
where that is unknown; a convolution is the product of its unfolded image; a stream is one loop over
its elements; softmax and layer norm reduce a row twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from experiments.programs.nests.gpu_nests import (
    ProductTiling,
    nest_of_elementwise,
    nest_of_product,
    nest_of_reduction,
)
from go_rl.costs.operators.tables import PRODUCTS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import TWO_INPUTS
from go_rl.costs.programs.nests.nest import LoopNest

ARITHMETIC: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "add": {"float_add_sub": 1}, "addu": {"float_add_sub": 1}, "div": {"float_div_mod": 1},
    "divu": {"float_div_mod": 1}, "mul": {"float_mul": 1}, "mulu": {"float_mul": 1},
    "pow": {"float_math": 1}, "powu": {"float_math": 1}, "relu": {"float_compare": 1},
    "tanh": {"float_math": 1}, "gelu": {"float_mul": 3, "float_add_sub": 1, "float_math": 1},
})  # fmt: skip
"""Operations of an element of each stream, by kind."""
ROW_PASSES = 2
"""Reductions of a row: maximum and sum, or mean and variance."""
THREADS = 16
"""Rows, and columns, of the threads of a block of a product."""
Tile = tuple[int, int]
"""Columns and rows of a product that a block computes, multiples of `THREADS`."""


def nests_of_operators(rows: OperatorRows, tiles: Sequence[Tile | None]) -> list[LoopNest]:
    """Return the loop nest of each operator.

    Args:
        rows: [R] operators.
        tiles: [R] of products, those of the library where they are known.

    Raises:
        NestError: a size below 1, or a tile that threads do not divide.
    """
    products = np.stack(rows.products(), axis=1).astype(np.int64).tolist()
    height, width = (rows.sizes[name].tolist() for name in ("batch", "width"))
    return [
        _product(product, tile) if op in PRODUCTS else _stream(op, tall, wide)
        for op, product, tile, tall, wide
        in zip(rows.op.tolist(), products, tiles, height, width, strict=True)
    ]  # fmt: skip


def _product(sizes: Sequence[int], tile: Tile | None) -> LoopNest:
    batch, rows, columns, summed = sizes
    tiling = ProductTiling()
    if tile is not None:
        wide, tall = tile
        tiling = ProductTiling((tall, wide), (tall // THREADS, wide // THREADS))
    return nest_of_product(batch, rows, columns, summed, tiling)


def _stream(op: str, rows: int, columns: int) -> LoopNest:
    if op in ARITHMETIC:
        operands = 2 if op in TWO_INPUTS else 1
        return nest_of_elementwise(rows * columns, operands, ARITHMETIC[op])
    return nest_of_reduction(rows, columns, ROW_PASSES, writes_rows=True)
