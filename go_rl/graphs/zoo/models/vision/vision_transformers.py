"""Networks over image patches, at their published sizes: ViT, Swin and MLP-Mixer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np


class EncoderBlock(nn.Module):
    """Pre-norm transformer block."""

    heads: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y)
        y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)), approximate=False)
        return x + nn.Dense(x.shape[-1])(y)


class VisionTransformer(nn.Module):
    """ViT (Dosovitskiy et al. 2020, table 1): class token, learnt positions, pre-norm blocks."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    patch: int = 16

    @nn.compact
    def __call__(self, x: Any) -> Any:
        patch = (self.patch, self.patch)
        x = nn.Conv(self.width, patch, patch)(x).reshape(x.shape[0], -1, self.width)
        token = self.param("token", nn.initializers.zeros, (1, 1, self.width))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, self.width)), x], axis=1)
        x = x + self.param("positions", nn.initializers.zeros, (1, x.shape[1], self.width))
        for _ in range(self.layers):
            x = EncoderBlock(self.heads)(x)
        return nn.Dense(1000)(nn.LayerNorm()(x)[:, 0])


class MLPMixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021, table 1); tokens are mixed, then channels."""

    layers: int = 8
    width: int = 512
    patch: int = 16
    token_width: int = 256
    channel_width: int = 2048

    @nn.compact
    def __call__(self, x: Any) -> Any:
        patch = (self.patch, self.patch)
        x = nn.Conv(self.width, patch, patch)(x).reshape(x.shape[0], -1, self.width)
        for _ in range(self.layers):
            y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
            y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(self.token_width)(y)))
            x = x + jnp.swapaxes(y, 1, 2)
            y = nn.gelu(nn.Dense(self.channel_width)(nn.LayerNorm()(x)))
            x = x + nn.Dense(self.width)(y)
        return nn.Dense(1000)(nn.LayerNorm()(x).mean(1))


class WindowAttention(nn.Module):
    """Attention within windows of ``window`` × ``window`` tokens, with relative positions.

    The bias of relative positions and, for shifted windows, the mask are constants of the block.
    """

    heads: int
    window: int
    shift: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        batch, height, width, features = x.shape
        if self.shift:
            x = jnp.roll(x, (-self.shift, -self.shift), axis=(1, 2))
        tokens, depth = self.window**2, features // self.heads
        split = (batch, height // self.window, self.window, width // self.window, self.window)
        y = x.reshape(*split, features).transpose(0, 1, 3, 2, 4, 5).reshape(-1, tokens, features)
        joined = nn.Dense(3 * features)(y).reshape(-1, tokens, 3, self.heads, depth)
        query, key, value = (joined[:, :, i] for i in range(3))
        scores = jnp.einsum("wqhd,wkhd->whqk", query / depth**0.5, key) + self._positions()
        if self.shift:
            mask = _shift_mask(height, width, self.window, self.shift)
            scores = scores.reshape(batch, -1, self.heads, tokens, tokens) + mask
            scores = scores.reshape(-1, self.heads, tokens, tokens)
        y = jnp.einsum("whqk,wkhd->wqhd", nn.softmax(scores), value).reshape(-1, tokens, features)
        y = nn.Dense(features)(y).reshape(
            batch, split[1], split[3], self.window, self.window, features
        )
        y = y.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height, width, features)
        return jnp.roll(y, (self.shift, self.shift), axis=(1, 2)) if self.shift else y

    def _positions(self) -> Any:
        side = 2 * self.window - 1
        table = self.param("positions", nn.initializers.zeros, (side**2, self.heads))
        place = np.stack(np.meshgrid(*[np.arange(self.window)] * 2, indexing="ij"), -1)
        place = place.reshape(-1, 2)
        apart = place[:, None] - place[None] + self.window - 1
        chosen = jnp.take(table, jnp.asarray(apart @ [side, 1]), axis=0, mode="clip")
        return chosen.transpose(2, 0, 1)


def _shift_mask(height: int, width: int, window: int, shift: int) -> jax.Array:
    """Return [windows, 1, tokens, tokens]: −100 between tokens that rolling brought together."""
    rows, columns = (
        np.searchsorted([n - window, n - shift], np.arange(n), "right") for n in (height, width)
    )
    regions = 3 * rows[:, None] + columns[None]
    cut = regions.reshape(height // window, window, width // window, window)
    cut = cut.transpose(0, 2, 1, 3).reshape(-1, window**2)
    apart = cut[:, :, None] != cut[:, None, :]
    return jnp.asarray(np.where(apart, np.float32(-100), np.float32(0))[:, None])


class SwinBlock(nn.Module):
    """Pre-norm block of windowed attention and a feed-forward layer."""

    heads: int
    window: int
    shift: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = x + WindowAttention(self.heads, self.window, self.shift)(nn.LayerNorm()(x))
        y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)), approximate=False)
        return x + nn.Dense(x.shape[-1])(y)


class Swin(nn.Module):
    """Swin transformer (Liu et al. 2021, section 3): windows shifted in every second block."""

    depths: Sequence[int] = (2, 2, 6, 2)
    width: int = 96
    window: int = 7

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.LayerNorm()(nn.Conv(self.width, (4, 4), (4, 4))(x))
        for stage, depth in enumerate(self.depths):
            for block in range(depth):
                wide = x.shape[1] > self.window
                shift = self.window // 2 if block % 2 and wide else 0
                x = SwinBlock(x.shape[-1] // 32, self.window, shift)(x)
            if stage + 1 < len(self.depths):
                x = jnp.concatenate([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], axis=-1)
                x = nn.Dense(x.shape[-1] // 2, use_bias=False)(nn.LayerNorm()(x))
        return nn.Dense(1000)(nn.LayerNorm()(x).mean((1, 2)))
