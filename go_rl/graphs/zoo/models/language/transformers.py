"""Transformers over tokens: GPT-2, the original encoder-decoder, T5, mixture of experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.building import dropout
from go_rl.graphs.zoo.models.language.attention import (
    FORBIDDEN,
    Attention,
    FeedForward,
    PreNormBlock,
    RootMeanSquareNorm,
    TokenTable,
    causal_bias,
    sinusoids,
)


class GPT(nn.Module):
    """Decoder-only transformer with a tied output embedding (Radford et al. 2019, GPT-2)."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    positions: int = 1024
    last_only: bool = False
    """Logits of the last position only, which is all that choosing the next token needs."""
    shards: int = 1
    """Parts of the embedding, see `TokenTable`."""
    activation: Callable[[Any], Any] = nn.gelu
    attention: Mapping[str, Any] | None = None
    """Options of the attention, see `Attention`."""
    dropout: float = 0.0
    """Dropout rate in training, of the terms added to the residual."""
    embedding_dropout: float = 0.0
    """Dropout rate in training, of the embeddings."""

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        table = TokenTable(self.vocabulary, self.width, self.shards)
        options = {"activation": self.activation, "attention": self.attention,
                   "dropout": self.dropout}  # fmt: skip
        places = self.param("positions", nn.initializers.zeros, (self.positions, self.width))
        x = dropout(table(tokens) + places[: tokens.shape[1]], self.embedding_dropout)
        for _ in range(self.layers):
            x = PreNormBlock(self.heads, 4 * self.width, causal=True, **options)(x)
        return table.attend(nn.LayerNorm()(x[:, -1] if self.last_only else x))


class Transformer(nn.Module):
    """The original encoder-decoder, norms after the residuals (Vaswani et al. 2017, table 3)."""

    layers: int = 6
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    vocabulary: int = 37000
    last_only: bool = False
    shards: int = 1

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        table = TokenTable(self.vocabulary, self.width, self.shards)
        memory = self._embedded(table, source)
        for _ in range(self.layers):
            memory = self._after(memory, self._attention()(memory))
            memory = self._after(memory, FeedForward(self.hidden)(memory))
        x = self._embedded(table, target)
        for _ in range(self.layers):
            x = self._after(x, self._attention()(x, bias=causal_bias(x.shape[1])))
            x = self._after(x, self._attention()(x, memory))
            x = self._after(x, FeedForward(self.hidden)(x))
        return nn.softmax(table.attend(x[:, -1] if self.last_only else x))

    def _attention(self) -> Attention:
        return Attention(self.heads, self.width // self.heads, use_bias=False)

    def _after(self, x: Any, y: Any) -> Any:
        return nn.LayerNorm()(x + y)

    def _embedded(self, table: TokenTable, tokens: Any) -> Any:
        places = sinusoids(jnp.arange(tokens.shape[1]), self.width)
        return table(tokens) * self.width**0.5 + places


class T5(nn.Module):
    """Encoder-decoder with relative position buckets (Raffel et al. 2019, T5 v1.0).

    The position bias is computed once on either side and feeds all its layers, as published.
    """

    layers: int = 6
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    size: int = 64
    """Width of one head."""
    vocabulary: int = 32128
    last_only: bool = False

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        table = nn.Embed(self.vocabulary, self.width)
        memory, bias = table(source), self._bias("encoder_buckets", source.shape[1], True)
        for _ in range(self.layers):
            memory = memory + self._attention()(RootMeanSquareNorm()(memory), bias=bias)
            memory = memory + self._feed_forward()(RootMeanSquareNorm()(memory))
        memory = RootMeanSquareNorm()(memory)
        x, bias = table(target), self._bias("decoder_buckets", target.shape[1], False)
        for _ in range(self.layers):
            x = x + self._attention()(RootMeanSquareNorm()(x), bias=bias)
            x = x + self._attention()(RootMeanSquareNorm()(x), memory)
            x = x + self._feed_forward()(RootMeanSquareNorm()(x))
        x = x[:, -1] if self.last_only else x
        return table.attend(RootMeanSquareNorm()(x) * self.width**-0.5)

    def _attention(self) -> Attention:
        return Attention(self.heads, self.size, use_bias=False, scaled=False)

    def _feed_forward(self) -> FeedForward:
        return FeedForward(self.hidden, use_bias=False)

    def _bias(self, name: str, length: int, both_ways: bool) -> Any:
        """[1, heads, length, length]: one learned number for each head and bucket of distance."""
        table = self.param(name, nn.initializers.zeros, (32, self.heads))
        distance = jnp.arange(length)[None, :] - jnp.arange(length)[:, None]
        bucket = position_buckets(distance, both_ways)
        bias = jnp.moveaxis(jnp.take(table, bucket, axis=0, mode="clip"), -1, 0)[None]
        return bias if both_ways else jnp.where(distance <= 0, bias, FORBIDDEN)


def position_buckets(distance: Any, both_ways: bool, buckets: int = 32, reach: int = 128) -> Any:
    """Return T5's bucket of each distance key − query: exact when near, logarithmic when far."""
    first = jnp.zeros_like(distance)
    if both_ways:
        buckets //= 2
        first = (distance > 0) * buckets
        distance = jnp.abs(distance)
    else:
        distance = jnp.maximum(-distance, 0)
    near = buckets // 2
    ratio = jnp.log(jnp.maximum(distance, 1) / near) / jnp.log(reach / near)
    far = jnp.minimum(near + (ratio * (buckets - near)).astype(jnp.int32), buckets - 1)
    return first + jnp.where(distance < near, distance, far)


class MixtureOfExperts(nn.Module):
    """Top-2 routing with a capacity (Lepikhin et al. 2020, GShard) over [tokens, width].

    One-hot dispatch; the experts are one batched matrix product.
    """

    experts: int = 8
    hidden: int = 1024

    @nn.compact
    def __call__(self, x: Any) -> Any:
        tokens, width = x.shape
        capacity = max(1, 2 * tokens // self.experts)
        gates = nn.softmax(nn.Dense(self.experts)(x))
        best, chosen = jax.lax.top_k(gates, 2)
        hot = jax.nn.one_hot(chosen, self.experts)
        place = jnp.cumsum(hot.reshape(-1, self.experts), axis=0).reshape(hot.shape) * hot - 1
        slots = jax.nn.one_hot(place.max(-1).astype(jnp.int32), capacity)
        combine = jnp.einsum("tk,tke,tkc->tec", best, hot, slots)
        inside = jnp.einsum("tec,td->ecd", (combine > 0).astype(x.dtype), x)
        first = self.param("first", nn.initializers.normal(), (self.experts, width, self.hidden))
        second = self.param("second", nn.initializers.normal(), (self.experts, self.hidden, width))
        inner = nn.relu(jnp.einsum("ecd,edf->ecf", inside, first))
        outside = jnp.einsum("ecf,efd->ecd", inner, second)
        return x + jnp.einsum("tec,ecd->td", combine, outside)


class MoETransformer(nn.Module):
    """GPT whose every other feed-forward layer is a mixture of experts (GShard, figure 3).

    Output: the logits of the last position.
    """

    layers: int = 12
    width: int = 512
    heads: int = 8
    experts: int = 8
    vocabulary: int = 32000

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        table = nn.Embed(self.vocabulary, self.width)
        x = table(tokens) + sinusoids(jnp.arange(tokens.shape[1]), self.width)
        for layer in range(self.layers):
            if layer % 2 == 0:
                x = PreNormBlock(self.heads, 4 * self.width, causal=True)(x)
                continue
            attention = Attention(self.heads, self.width // self.heads)
            x = x + attention(nn.LayerNorm()(x), bias=causal_bias(x.shape[1]))
            flat = nn.LayerNorm()(x).reshape(-1, self.width)
            x = x + MixtureOfExperts(self.experts, 4 * self.width)(flat).reshape(x.shape)
        return table.attend(nn.LayerNorm()(x[:, -1]))
