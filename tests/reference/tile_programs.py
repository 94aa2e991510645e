"""Twins of tiled programs: what programs compute, how a nest walks, which tiles fit."""

from collections.abc import Iterator
from itertools import product
from math import ceil

import numpy as np

from go_rl.costs.tiles import TiledProgram, TileProgram


def compute(program: TileProgram, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """What a program computes, in double precision."""
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    dims, left = program.dims, wide["left"]
    if program.op == "matmul":
        value = left @ wide["right"]
    elif program.op == "conv2d":
        value = convolve(left, wide["right"], dims["stride"], dims["padding"])
    else:
        value = (np.sum if program.op == "reduce_sum" else np.max)(left, axis=dims["axis"])
    for step in program.steps:
        value = apply(step, value, wide)
    return value


def convolve(image: np.ndarray, kernel: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """A convolution, one kernel position after the other."""
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    image = np.pad(image, around)
    kh, kw = kernel.shape[:2]
    high = (image.shape[1] - kh) // stride + 1
    wide = (image.shape[2] - kw) // stride + 1
    total = np.zeros((image.shape[0], high, wide, kernel.shape[3]))
    for y, x in product(range(kh), range(kw)):
        rows = slice(y, y + stride * high, stride)
        columns = slice(x, x + stride * wide, stride)
        total += image[:, rows, columns, :][:, :high, :wide] @ kernel[y, x]
    return total


def apply(step: str, x: np.ndarray, wide: dict[str, np.ndarray]) -> np.ndarray:
    """One step of an epilogue."""
    if step in wide:
        return x + wide[step]
    cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return {
        "relu": np.maximum(x, 0),
        "scale": x / 8,
        "tanh": np.tanh(x),
        "sigmoid": 1 / (1 + np.exp(-x)),
        "gelu": x / 2 * (1 + np.tanh(cubic)),
    }[step]


def walk(tiled: TiledProgram) -> Iterator[dict[str, int]]:
    """The iterations of a program's loops in the order in which its nest makes them."""
    for places in product(*(range(ceil(x.trips)) for x in tiled.nest)):
        at = dict.fromkeys(tiled.cache, 0)
        for x, place in zip(tiled.nest, places, strict=True):
            at[x.loop] += place * x.step
        if all(at[loop.name] < loop.extent for loop in tiled.program.loops):
            yield at
