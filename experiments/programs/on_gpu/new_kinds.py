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
from operator_cases import Case, Sizes, drawn, random_tensor, rounded_up
from timing import DEVICE, Call
from torch.nn import functional

Drawer = Callable[[random.Random], Sizes]
Maker = Callable[[Sizes, torch.dtype], Call]
LARGEST = 2e8
"""Elements of the largest tensor."""


def new_kinds(rng: random.Random, limit: float) -> Iterator[Case]:
    """Yield operators without end, one of each kind in turn and three of attention; ``limit``:
    share of the largest sizes."""
    while True:
        for kind, (draw, make) in KINDS.items():
            sizes = draw(rng)
            if _elements(sizes) < LARGEST * limit:
                yield Case(kind, sizes, partial(make, sizes))
        for sizes in (_attention_sizes(rng) for _ in range(3)):
            if _is_small(sizes, limit):
                yield Case("attention", sizes, partial(_attention, sizes))


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


def _attention(s: Sizes, dtype: torch.dtype) -> Call:
    q = random_tensor(s["batch"], s["heads"], s["queries"], s["depth"], dtype=dtype)
    k, v = (
        random_tensor(s["batch"], s["heads"] // s["groups"], s["keys"], s["depth"], dtype=dtype)
        for _ in range(2)
    )
    options: dict[str, Any] = {"is_causal": bool(s["causal"]), "enable_gqa": s["groups"] > 1}
    return partial(functional.scaled_dot_product_attention, q, k, v, **options)


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


def _depthwise(s: Sizes, dtype: torch.dtype) -> Call:
    return _windows(s, dtype, s["input_channel"])


def _grouped(s: Sizes, dtype: torch.dtype) -> Call:
    return _windows(s, dtype, s["groups"])


def _windows(s: Sizes, dtype: torch.dtype, groups: int) -> Call:
    side, size, channels = s["input_size"], s["kernel_size"], s["input_channel"]
    x = random_tensor(s["batch"], channels, side, side, dtype=dtype)
    w = random_tensor(channels, channels // groups, size, size, dtype=dtype)
    return partial(functional.conv2d, x, w, None, s["stride"], s["padding"], 1, groups)


def _max_pool(s: Sizes, dtype: torch.dtype) -> Call:
    side = s["input_size"]
    x = random_tensor(s["batch"], s["input_channel"], side, side, dtype=dtype)
    return partial(functional.max_pool2d, x, s["kernel_size"], s["stride"], s["padding"])


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


def _gather(s: Sizes, dtype: torch.dtype) -> Call:
    table = random_tensor(s["rows"], s["width"], dtype=dtype)
    chosen = torch.randint(0, s["rows"], (s["batch"],), device=DEVICE)
    return partial(functional.embedding, chosen, table)


def _copy(s: Sizes, dtype: torch.dtype) -> Call:
    """Two outer dimensions change places: heads and positions."""
    outer = s["batch"] // s["parts"]
    x = random_tensor(outer, s["parts"], s["width"], dtype=dtype).transpose(0, 1)
    return x.contiguous


def _transpose(s: Sizes, dtype: torch.dtype) -> Call:
    """The last two of three dimensions change places: channels and positions."""
    inner = s["batch"] // s["parts"]
    x = random_tensor(s["parts"], s["width"], inner, dtype=dtype).transpose(1, 2)
    return x.contiguous


def _concat(s: Sizes, dtype: torch.dtype) -> Call:
    """Two tensors along their last dimension."""
    first = s["width"] // 2
    x, y = (random_tensor(s["batch"], w, dtype=dtype) for w in (first, s["width"] - first))
    return partial(torch.cat, (x, y), -1)


def _sum(s: Sizes, dtype: torch.dtype) -> Call:
    return partial(random_tensor(s["batch"], s["width"], dtype=dtype).sum, -1)


def _column_sum(s: Sizes, dtype: torch.dtype) -> Call:
    return partial(random_tensor(s["batch"], s["width"], dtype=dtype).sum, 0)


def _rms_norm(s: Sizes, dtype: torch.dtype) -> Call:
    x = random_tensor(s["batch"], s["width"], dtype=dtype)
    w = torch.ones(s["width"], device=DEVICE, dtype=dtype)
    return partial(functional.rms_norm, x, (s["width"],), w)


def _batch_norm(s: Sizes, dtype: torch.dtype) -> Call:
    side, channels = s["input_size"], s["input_channel"]
    x = random_tensor(s["batch"], channels, side, side, dtype=dtype)
    one, zero = (f(channels, device=DEVICE, dtype=dtype) for f in (torch.ones, torch.zeros))
    return partial(functional.batch_norm, x, zero, one, one, zero, False)


KINDS: dict[str, tuple[Drawer, Maker]] = {
    "depthwise": (partial(_image, kernels=(3, 3, 5, 7)), _depthwise),
    "grouped": (partial(_image, kernels=(3, 3, 1, 5), groups=True), _grouped),
    "pool": (partial(_image, kernels=(2, 3, 3)), _max_pool),
    "batchnorm": (partial(_image, kernels=(1,)), _batch_norm),
    "gather": (_table, _gather),
    "copy": (_parts, _copy),
    "transpose": (_parts, _transpose),
    "concat": (_rows, _concat),
    "sum": (_rows, _sum),
    "columnsum": (_rows, _column_sum),
    "rmsnorm": (_rows, _rms_norm),
}
"""Sizes and calls, by kind."""
