"""Operators to measure, without end: those of the kinds of NeuSight's tables.

Sizes depend on the random numbers alone, so that every GPU is given the same list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

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


class Tensors(NamedTuple):
    """Makes tensors on the device for an operator."""

    sizes: Sizes
    dtype: torch.dtype

    def __call__(self, *shape: str | int) -> torch.Tensor:
        """Return normal random numbers; a size is a number or has a name."""
        numbers = [self.sizes[each] if isinstance(each, str) else each for each in shape]
        return torch.randn(*numbers, device=DEVICE, dtype=self.dtype)

    def rows(self) -> torch.Tensor:
        """Return uniform random numbers from 0.5 on: rows of a width."""
        shape = self.sizes["batch"], self.sizes["width"]
        return torch.rand(*shape, device=DEVICE, dtype=self.dtype) + 0.5

    def image(self) -> torch.Tensor:
        """Return the images that a window is moved over."""
        return self("batch", "input_channel", "input_size", "input_size")

    def ones(self, size: str) -> torch.Tensor:
        """Return ones."""
        return torch.ones(self.sizes[size], device=DEVICE, dtype=self.dtype)


Maker = Callable[[Tensors], tuple[Any, ...]]
"""Returns a function and its arguments."""


class Case(NamedTuple):
    """One operator."""

    kind: str
    sizes: Sizes
    make: Maker

    def build(self, dtype: torch.dtype) -> Call:
        """Return the call on tensors of an element type, which it makes."""
        function, *arguments = self.make(Tensors(self.sizes, dtype))
        return partial(function, *arguments)


MAKERS: dict[str, Maker] = {
    "bmm": lambda t: (torch.bmm, t("batch", "rows", "depth"), t("batch", "depth", "columns")),
    "linear": lambda t: (
        functional.linear, t("rows", "depth"), t("columns", "depth"), t("columns")
    ),
    "softmax": lambda t: (torch.softmax, t.rows(), -1),
    "ln": lambda t: (
        functional.layer_norm, t.rows(), (t.sizes["width"],), t.ones("width"),
        torch.zeros_like(t.ones("width")),
    ),
    "conv": lambda t: (
        functional.conv2d, t.image(),
        t("output_channel", "input_channel", "kernel_size", "kernel_size"), None,
        t.sizes["stride"], t.sizes["padding"],
    ),
    **{name: lambda t, act=act: (act, t.rows(), t.rows()) for name, act in ELEMENTWISE.items()},
}  # fmt: skip


def drawn(rng: random.Random, low: int, high: int) -> int:
    """Return a whole number whose logarithm is uniform."""
    return round(low * (high / low) ** rng.random())


def rounded_up(number: int, step: int) -> int:
    """Return the next multiple of a step."""
    return -(-number // step) * step


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
            yield Case("bmm", sizes, MAKERS["bmm"])
        m, n, k = (rounded_up(drawn(rng, 8, 16384), step) for _ in range(3))
        m = drawn(rng, 1, 64) if few_rows and rng.random() < 0.2 else m
        if m * k + k * n + m * n < 4e8 * limit:
            sizes = {"batch": 1, "rows": m, "depth": k, "columns": n}
            yield Case("linear", sizes, MAKERS["linear"])
        b, h = drawn(rng, 64, 16384), rounded_up(drawn(rng, 64, 8192), step)
        if b * h < 1.5e8 * limit:
            sizes = {"batch": b, "width": h}
            for name in (*rng.sample(sorted(ELEMENTWISE), 3), "softmax", "ln"):
                yield Case(name, sizes, MAKERS[name])
        b, ci, co = drawn(rng, 1, 64), *(rounded_up(drawn(rng, low, 1024), step) for low in (3, 8))
        side = drawn(rng, 7, 224)
        size, stride = rng.choice((1, 3, 3, 5, 7)), rng.choice((1, 1, 2))
        flops = b * side**2 * ci * co * size**2
        if b * side**2 * (ci + co) < 2e8 * limit and flops < 1e12 * limit:
            sizes = {"batch": b, "input_channel": ci, "output_channel": co, "kernel_size": size,
                     "input_size": side, "stride": stride, "padding": size // 2}  # fmt: skip
            yield Case("conv", sizes, MAKERS["conv"])
