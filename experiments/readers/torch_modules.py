"""Networks written out in plain PyTorch: U-Net, LSTM, MobileNet-v3, DLRM, a Llama block."""

# PyTorch is no dependency: see `torch_readings.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn

MOBILENET_BLOCKS = (
    (16, 3, 16, 16, 0, "r", 1), (16, 3, 64, 24, 0, "r", 2), (24, 3, 72, 24, 0, "r", 1),
    (24, 5, 72, 40, 1, "r", 2), (40, 5, 120, 40, 1, "r", 1), (40, 5, 120, 40, 1, "r", 1),
    (40, 3, 240, 80, 0, "h", 2), (80, 3, 200, 80, 0, "h", 1), (80, 3, 184, 80, 0, "h", 1),
    (80, 3, 184, 80, 0, "h", 1), (80, 3, 480, 112, 1, "h", 1), (112, 3, 672, 112, 1, "h", 1),
    (112, 5, 672, 160, 1, "h", 2), (160, 5, 960, 160, 1, "h", 1), (160, 5, 960, 160, 1, "h", 1),
)  # fmt: skip
"""Of MobileNet-v3 large (Howard et al., 2019, table 1): inputs, kernel, width, outputs, squeeze and
excitation, activation, stride."""
Made = tuple[nn.Module, tuple[Any, ...]]
"""A module and its arguments."""


class _Double(nn.Sequential):
    """Two convolutions, each normalised and rectified."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU(),
        )  # fmt: skip


class UNet(nn.Module):
    """Encoder and decoder of four levels with skips (Ronneberger et al., 2015)."""

    def __init__(self, width: int = 32, levels: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.first = _Double(3, width)
        self.down = nn.ModuleList(map(_Double, widths, widths[1:]))
        self.widen = nn.ModuleList(
            nn.ConvTranspose2d(wide, narrow, 2, stride=2)
            for wide, narrow in zip(widths[:0:-1], widths[-2::-1], strict=True)
        )
        self.up = nn.ModuleList(map(_Double, widths[:0:-1], widths[-2::-1]))
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, kept = self.first(x), []
        for block in self.down:
            kept.append(x)
            x = block(nn.functional.max_pool2d(x, 2))
        for widen, block in zip(self.widen, self.up, strict=True):
            x = block(torch.cat([kept.pop(), widen(x)], 1))
        return self.last(x)


class Tagger(nn.Module):
    """Two recurrent layers in both directions over embedded words, and scores of each word."""

    def __init__(
        self,
        cell: str = "LSTM",
        words: int = 1000,
        width: int = 128,
        units: int = 256,
        tags: int = 17,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = getattr(nn, cell)(width, units, 2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * units, tags)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.tags(self.layers(self.words(words))[0])


class _Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = nn.functional.adaptive_avg_pool2d(x, 1)
        scale = self.wide(torch.relu(self.narrow(scale)))
        return x * nn.functional.hardsigmoid(scale)


class _Inverted(nn.Module):
    """Inverted residual of MobileNet-v3."""

    def __init__(
        self, inputs: int, kernel: int, wide: int, outputs: int, excite: bool, act: Any, stride: int
    ) -> None:
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        parts: list[nn.Module] = []
        if wide != inputs:
            parts += [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), act()]
        depthwise = nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False)
        parts += [depthwise, nn.BatchNorm2d(wide)]
        parts += [_Excite(wide)] * excite + [act()]
        parts += [nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.parts = nn.Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.parts(x) if self.adds else self.parts(x)


class MobileNetV3(nn.Module):
    """MobileNet-v3 large (Howard et al., 2019, table 1)."""

    def __init__(self) -> None:
        super().__init__()
        acts = {"r": nn.ReLU, "h": nn.Hardswish}
        first = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
        blocks = [
            _Inverted(inputs, kernel, wide, outputs, bool(excite), acts[act], stride)
            for inputs, kernel, wide, outputs, excite, act, stride in MOBILENET_BLOCKS
        ]
        last = [nn.Conv2d(160, 960, 1, bias=False), nn.BatchNorm2d(960), nn.Hardswish()]
        self.features = nn.Sequential(*first, *blocks, *last)
        self.head = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


class DLRM(nn.Module):
    """Dense and sparse features that meet in pairs (Naumov et al., 2019)."""

    def __init__(self, tables: int = 26, rows: int = 10_000, width: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = _perceptron(13, 512, 256, width)
        pairs = (tables + 1) * tables // 2
        self.top = _perceptron(width + pairs, 512, 256, 1)
        places = torch.triu_indices(tables + 1, tables + 1, 1)
        self.register_buffer("places", places)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        looked_up = [table(sparse[:, i]).sum(1) for i, table in enumerate(self.tables)]
        together = torch.stack([x, *looked_up], 1)
        products = torch.bmm(together, together.transpose(1, 2))
        pairs = products[:, self.places[0], self.places[1]]
        return torch.sigmoid(self.top(torch.cat([x, pairs], 1)))


def _perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class LlamaBlock(nn.Module):
    """A layer of Llama 3.2 1B, whose grouped queries read and extend a cache."""

    def __init__(
        self, width: int = 2048, heads: int = 32, groups: int = 8, hidden: int = 8192
    ) -> None:
        super().__init__()
        self.heads, self.groups, self.depth = heads, groups, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.depth, bias=False)
        self.v = nn.Linear(width, groups * self.depth, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.wide = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.narrow = nn.Linear(hidden, width, bias=False)
        self.before, self.after = (nn.Parameter(torch.ones(width)) for _ in range(2))

    def norm(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * scale

    def turn(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def forward(
        self,
        x: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        batch, length, width = x.shape
        y = self.norm(x, self.before)
        parts = ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups))
        q, k, v = (
            part(y).view(batch, length, heads, self.depth).transpose(1, 2) for part, heads in parts
        )
        keys = torch.cat([keys, self.turn(k, cos, sin)], 2)
        values = torch.cat([values, v], 2)
        repeat = self.heads // self.groups
        mixed = nn.functional.scaled_dot_product_attention(
            self.turn(q, cos, sin),
            keys.repeat_interleave(repeat, 1),
            values.repeat_interleave(repeat, 1),
        )
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm(x, self.after)
        return x + self.narrow(nn.functional.silu(self.gate(y)) * self.wide(y)), keys, values


NETWORKS: dict[str, Callable[[], Made]] = {
    "unet": lambda: (UNet(), (torch.zeros(1, 3, 256, 256),)),
    "lstm": lambda: (Tagger(), (torch.zeros(4, 24, dtype=torch.long),)),
    "mobilenet_v3": lambda: (MobileNetV3(), (torch.zeros(2, 3, 224, 224),)),
    "dlrm": lambda: (
        DLRM(), (torch.zeros(16, 13), torch.zeros(16, 26, 4, dtype=torch.long))
    ),
    "llama_block_with_cache": lambda: (
        LlamaBlock(),
        (torch.zeros(2, 1, 2048), *2 * (torch.zeros(2, 8, 256, 64),), *2 * (torch.zeros(1, 64),)),
    ),
}  # fmt: skip
"""Builders by name."""
