"""Operators of networks that NeuSight's tables do not have, without end: fused attention,
convolutions of single channels and of groups, look-ups, copies, sums, pooling.

Sizes depend on the random numbers alone, so that every GPU is given the same list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from operator_cases import Case, Maker, Sizes, Tensors, drawn, rounded_up
from timing import DEVICE
from torch.nn import functional

Drawer = Callable[[random.Random], Sizes]
LARGEST = 2e8
"""Elements of the largest tensor."""


def new_kinds(rng: random.Random, limit: float) -> Iterator[Case]:
    """Yield operators without end, one of each kind in turn and three of attention; ``limit``:
    share of the largest sizes."""
    while True:
        for kind, (draw, make) in KINDS.items():
            sizes = draw(rng)
            if _elements(sizes) < LARGEST * limit:
                yield Case(kind, sizes, make)
        for sizes in (_attention_sizes(rng) for _ in range(3)):
            if _is_small(sizes, limit):
                yield Case("attention", sizes, _attention)


def _is_small(s: Sizes, limit: float) -> bool:
    products = s["batch"] * s["heads"] * s["queries"] * s["keys"] * s["depth"]
    held = s["batch"] * s["heads"] // s["groups"] * s["keys"] * s["depth"]
    return products < 5e11 * limit and held < 2 * LARGEST * limit


def _elements(s: Sizes) -> int:
    if "input_channel" in s:
        return s["batch"] * s["input_channel"] * s["input_size"] ** 2
    return s["batch"] * s["width"]


def _attention_sizes(rng: random.Random) -> Sizes:
    """Sizes of attention to all positions of a prompt (``queries`` = ``keys``), to a prompt of
    another length, and of one query to a cache of keys and values.

    ``groups``: query heads that share one head of keys and values; ``causal``: 0 or 1.
    """
    depth, step = rng.choice((32, 64, 64, 80, 128, 128)), rng.choice((1, 64, 64))
    groups, batch = rng.choice((1, 1, 1, 4, 8)), drawn(rng, 1, 96)
    heads = groups * rng.choice((1, 2, 4, 8)) if groups > 1 else rng.choice((4, 8, 12, 16, 32))
    keys = rounded_up(drawn(rng, 32, 8192), step)
    queries, causal = keys, rng.choice((0, 1))
    if rng.random() < 0.4:
        queries, causal, keys = 1, 0, drawn(rng, 64, 32768)
    elif rng.random() < 0.1:
        queries, causal = rounded_up(drawn(rng, 16, 1024), step), 0
    return {"batch": batch, "heads": heads, "groups": groups, "queries": queries, "keys": keys,
            "depth": depth, "causal": causal}  # fmt: skip


def _attention(t: Tensors) -> tuple[Any, ...]:
    heads = t.sizes["heads"] // t.sizes["groups"]
    options: dict[str, Any] = {
        "is_causal": bool(t.sizes["causal"]),
        "enable_gqa": t.sizes["groups"] > 1,
    }
    attention = partial(functional.scaled_dot_product_attention, **options)
    k, v = (t("batch", heads, "keys", "depth") for _ in range(2))
    return attention, t("batch", "heads", "queries", "depth"), k, v


def _image(rng: random.Random, kernels: tuple[int, ...], groups: bool = False) -> Sizes:
    """Sizes of a window over an image whose channels stay as many."""
    size, stride = rng.choice(kernels), rng.choice((1, 1, 2))
    channels = rounded_up(drawn(rng, 8, 2048), rng.choice((1, 8, 8, 32)))
    found = {"batch": drawn(rng, 1, 64), "input_channel": channels, "output_channel": channels,
             "kernel_size": size, "input_size": drawn(rng, max(7, size), 224), "stride": stride,
             "padding": size // 2}  # fmt: skip
    if groups:
        found["groups"] = rng.choice((2, 4, 8, 16, 32))
        wide = rounded_up(drawn(rng, 4, 64), 4) * found["groups"]
        found["input_channel"] = found["output_channel"] = wide
    return found


def _windows(t: Tensors) -> tuple[Any, ...]:
    """A convolution in groups; without their number, of single channels."""
    channels = t.sizes["input_channel"]
    groups = t.sizes.get("groups", channels)
    w = t(channels, channels // groups, "kernel_size", "kernel_size")
    window = (t.sizes["stride"], t.sizes["padding"], 1)
    return functional.conv2d, t.image(), w, None, *window, groups


def _rows(rng: random.Random) -> Sizes:
    """Sizes of a tensor of rows."""
    step = rng.choice((1, 8, 64))
    return {"batch": drawn(rng, 16, 65536), "width": rounded_up(drawn(rng, 8, 8192), step)}


def _parts(rng: random.Random) -> Sizes:
    """Sizes of a tensor whose rows lie in two dimensions, both longer than 1: what changes places
    is copied."""
    sizes, parts = _rows(rng), rng.choice((4, 8, 12, 16, 32))
    return sizes | {"batch": parts * max(2, -(-sizes["batch"] // parts)), "parts": parts}


def _table(rng: random.Random) -> Sizes:
    return {**_rows(rng), "rows": drawn(rng, 1000, 100_000)}


def _gather(t: Tensors) -> tuple[Any, ...]:
    chosen = torch.randint(0, t.sizes["rows"], (t.sizes["batch"],), device=DEVICE)
    return functional.embedding, chosen, t("rows", "width")


def _copy(t: Tensors) -> tuple[Any, ...]:
    """Two outer dimensions change places: heads and positions."""
    x = t(t.sizes["batch"] // t.sizes["parts"], "parts", "width")
    return (x.transpose(0, 1).contiguous,)


def _transpose(t: Tensors) -> tuple[Any, ...]:
    """The last two of three dimensions change places: channels and positions."""
    x = t("parts", "width", t.sizes["batch"] // t.sizes["parts"])
    return (x.transpose(1, 2).contiguous,)


def _concat(t: Tensors) -> tuple[Any, ...]:
    """Two tensors along their last dimension."""
    first = t.sizes["width"] // 2
    return torch.cat, (t("batch", first), t("batch", t.sizes["width"] - first)), -1


def _batch_norm(t: Tensors) -> tuple[Any, ...]:
    one = t.ones("input_channel")
    zero = torch.zeros_like(one)
    return functional.batch_norm, t.image(), zero, one, one, zero, False


KINDS: dict[str, tuple[Drawer, Maker]] = {
    "depthwise": (partial(_image, kernels=(3, 3, 5, 7)), _windows),
    "grouped": (partial(_image, kernels=(3, 3, 1, 5), groups=True), _windows),
    "pool": (
        partial(_image, kernels=(2, 3, 3)),
        lambda t: (functional.max_pool2d, t.image(),
                   *(t.sizes[name] for name in ("kernel_size", "stride", "padding"))),
    ),
    "batchnorm": (partial(_image, kernels=(1,)), _batch_norm),
    "gather": (_table, _gather),
    "copy": (_parts, _copy),
    "transpose": (_parts, _transpose),
    "concat": (_rows, _concat),
    "sum": (_rows, lambda t: (t("batch", "width").sum, -1)),
    "columnsum": (_rows, lambda t: (t("batch", "width").sum, 0)),
    "rmsnorm": (_rows, lambda t: (
        functional.rms_norm, t("batch", "width"), (t.sizes["width"],), t.ones("width")
    )),
}  # fmt: skip
"""Sizes, and functions with their arguments, by kind."""
