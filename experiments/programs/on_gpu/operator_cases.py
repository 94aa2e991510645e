"""Operators to measure, without end: those of the kinds of NeuSight's tables.

Sizes depend on the random numbers alone, so that every GPU is given the same list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from timing import DEVICE, Call
from torch.nn import functional

ELEMENTWISE: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "addu": lambda a, b: a + 1.5, "mulu": lambda a, b: 1.5 * a, "divu": lambda a, b: 1.5 / a,
    "powu": lambda a, b: a**2.5, "relu": lambda a, b: torch.relu(a),
    "gelu": lambda a, b: functional.gelu(a), "tanh": lambda a, b: torch.tanh(a),
}  # fmt: skip
Sizes = dict[str, int]


class Case(NamedTuple):
    """One operator."""

    kind: str
    sizes: Sizes
    build: Callable[[torch.dtype], Call]
    """The call on tensors of an element type, which it makes."""


def drawn(rng: random.Random, low: int, high: int) -> int:
    """Return a whole number whose logarithm is uniform."""
    return round(low * (high / low) ** rng.random())


def rounded_up(number: int, step: int) -> int:
    """Return the next multiple of a step."""
    return -(-number // step) * step


def random_tensor(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Return normal random numbers on the device."""
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def cases(
    rng: random.Random, limit: float, multiples: Sequence[int] = (1,), *, few_rows: bool = False
) -> Iterator[Case]:
    """Yield operators without end.

    Args:
        rng: random numbers.
        limit: share of the largest sizes.
        multiples: what rows, columns, widths and channels are multiples of, one drawn for each
            round.
        few_rows: whether every fifth linear layer has 1 to 64 rows, as in decoding.
    """
    while True:
        step = rng.choice(multiples) if len(multiples) > 1 else multiples[0]
        b, m, n, k = drawn(rng, 1, 256), *(rounded_up(drawn(rng, 8, 4096), step) for _ in range(3))
        if b * (m * k + k * n + m * n) < 4e8 * limit and b * m * n * k < 2e12 * limit:
            sizes = {"batch": b, "rows": m, "depth": k, "columns": n}
            yield Case("bmm", sizes, partial(_bmm, sizes))
        m, n, k = (rounded_up(drawn(rng, 8, 16384), step) for _ in range(3))
        m = drawn(rng, 1, 64) if few_rows and rng.random() < 0.2 else m
        if m * k + k * n + m * n < 4e8 * limit:
            sizes = {"batch": 1, "rows": m, "depth": k, "columns": n}
            yield Case("linear", sizes, partial(_linear, sizes))
        b, h = drawn(rng, 64, 16384), rounded_up(drawn(rng, 64, 8192), step)
        if b * h < 1.5e8 * limit:
            sizes = {"batch": b, "width": h}
            for name in rng.sample(sorted(ELEMENTWISE), 3):
                yield Case(name, sizes, partial(_elementwise, name, sizes))
            yield Case("softmax", sizes, partial(_softmax, sizes))
            yield Case("ln", sizes, partial(_layer_norm, sizes))
        b, ci, co = drawn(rng, 1, 64), *(rounded_up(drawn(rng, low, 1024), step) for low in (3, 8))
        side = drawn(rng, 7, 224)
        size, stride = rng.choice((1, 3, 3, 5, 7)), rng.choice((1, 1, 2))
        flops = b * side**2 * ci * co * size**2
        if b * side**2 * (ci + co) < 2e8 * limit and flops < 1e12 * limit:
            sizes = {"batch": b, "input_channel": ci, "output_channel": co, "kernel_size": size,
                     "input_size": side, "stride": stride, "padding": size // 2}  # fmt: skip
            yield Case("conv", sizes, partial(_conv, sizes))


def _bmm(s: Sizes, dtype: torch.dtype) -> Call:
    x = random_tensor(s["batch"], s["rows"], s["depth"], dtype=dtype)
    y = random_tensor(s["batch"], s["depth"], s["columns"], dtype=dtype)
    return partial(torch.bmm, x, y)


def _linear(s: Sizes, dtype: torch.dtype) -> Call:
    x = random_tensor(s["rows"], s["depth"], dtype=dtype)
    w = random_tensor(s["columns"], s["depth"], dtype=dtype)
    return partial(functional.linear, x, w, random_tensor(s["columns"], dtype=dtype))


def _elementwise(name: str, s: Sizes, dtype: torch.dtype) -> Call:
    x, y = (torch.rand(s["batch"], s["width"], device=DEVICE, dtype=dtype) + 0.5 for _ in range(2))
    return partial(ELEMENTWISE[name], x, y)


def _softmax(s: Sizes, dtype: torch.dtype) -> Call:
    x = torch.rand(s["batch"], s["width"], device=DEVICE, dtype=dtype) + 0.5
    return partial(torch.softmax, x, -1)


def _layer_norm(s: Sizes, dtype: torch.dtype) -> Call:
    x = torch.rand(s["batch"], s["width"], device=DEVICE, dtype=dtype) + 0.5
    w = torch.ones(s["width"], device=DEVICE, dtype=dtype)
    return partial(functional.layer_norm, x, (s["width"],), w, torch.zeros_like(w))


def _conv(s: Sizes, dtype: torch.dtype) -> Call:
    side, size = s["input_size"], s["kernel_size"]
    x = random_tensor(s["batch"], s["input_channel"], side, side, dtype=dtype)
    w = random_tensor(s["output_channel"], s["input_channel"], size, size, dtype=dtype)
    return partial(functional.conv2d, x, w, None, s["stride"], s["padding"])
