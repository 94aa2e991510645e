"""Multi-head attention and the blocks around it, from which the transformers are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.building import dropout

FORBIDDEN = -1e9
"""Addend to the score of a position that may not be attended to."""


class Attention(nn.Module):
    """Scaled dot-product attention (Vaswani et al. 2017, section 3.2).

    ``x`` is [batch, queries, width], ``memory`` [batch, keys, width], ``bias`` is added to the
    scores [batch, heads, queries, keys].
    """

    heads: int
    size: int
    """Width of one head."""
    use_bias: bool = True
    scaled: bool = True
    """T5 leaves the scaling to its initialisation."""
    scaled_query: bool = False
    """Scale the query instead of the scores, as OPT does."""
    floored: bool = False
    """Raise masked scores to the least number, as Hugging Face's OPT does (``torch.max``)."""
    joint: bool = False
    """Query, key and value of ``x`` in one product, as GPT-2 has them."""
    dropout: float = 0.0
    """Share of the weights of attention that is dropped, in training."""

    @nn.compact
    def __call__(self, x: Any, memory: Any = None, bias: Any = None) -> Any:
        memory = x if memory is None else memory
        if self.joint:
            sizes = (3, self.heads, self.size)
            every = nn.DenseGeneral(sizes, use_bias=self.use_bias, name="query_key_value")(x)
            query, key, value = (every[:, :, i] for i in range(3))
        else:
            query = self._split("query", x)
            key, value = self._split("key", memory), self._split("value", memory)
        if self.scaled_query:
            query = query * self.size**-0.5
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
        if self.scaled and not self.scaled_query:
            scores = scores / self.size**0.5
        if bias is not None:
            scores = scores + bias
        if self.floored:
            scores = jnp.maximum(scores, jnp.finfo(scores.dtype).min)
        weights = dropout(nn.softmax(scores), self.dropout)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
        merge = nn.DenseGeneral(
            x.shape[-1], axis=(-2, -1), use_bias=self.use_bias, name="attention_output"
        )
        return merge(mixed)

    def _split(self, name: str, x: Any) -> Any:
        return nn.DenseGeneral((self.heads, self.size), use_bias=self.use_bias, name=name)(x)


class TokenTable(nn.Module):
    """Token embedding, tied to the logits and cut by vocabulary into ``shards`` tables.

    A chip then need not hold the whole of it (Shoeybi et al. 2019, Megatron-LM, section 3): every
    shard looks up the tokens it owns, and the sum of all shards is the embedding.
    """

    vocabulary: int
    width: int
    shards: int = 1

    def setup(self) -> None:
        self.rows = -(-self.vocabulary // self.shards)
        self.starts = range(0, self.vocabulary, self.rows)
        sizes = [min(self.rows, self.vocabulary - start) for start in self.starts]
        self.tables = [nn.Embed(size, self.width) for size in sizes]

    def __call__(self, tokens: Any) -> Any:
        if self.shards == 1:
            return self.tables[0](tokens)
        total: Any = None
        for start, table in zip(self.starts, self.tables, strict=True):
            local = tokens - start
            owned = (local >= 0) & (local < table.num_embeddings)
            found = table(jnp.where(owned, local, 0)) * owned[..., None]
            total = found if total is None else total + found
        return total

    def attend(self, x: Any) -> Any:
        """Return the logits of states [..., width]."""
        logits = [table.attend(x) for table in self.tables]
        return logits[0] if self.shards == 1 else jnp.concatenate(logits, axis=-1)


class FeedForward(nn.Module):
    """Two dense layers with an activation between them."""

    hidden: int
    activation: Callable[[Any], Any] = nn.relu
    use_bias: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        inner = self.activation(nn.Dense(self.hidden, use_bias=self.use_bias)(x))
        return nn.Dense(x.shape[-1], use_bias=self.use_bias)(inner)


class PreNormBlock(nn.Module):
    """Self-attention, attention to ``memory`` if there is one, feed-forward; norms come first.

    ``causal`` builds the mask inside the block, so that no tensor joins one block to all others.
    """

    heads: int
    hidden: int
    causal: bool = False
    activation: Callable[[Any], Any] = nn.gelu
    attention: Mapping[str, Any] | None = None
    """Options of the self-attention, see `Attention`."""
    dropout: float = 0.0
    """Share of what is added to the residual that is dropped, in training."""

    @nn.compact
    def __call__(self, x: Any, memory: Any = None) -> Any:
        size = x.shape[-1] // self.heads
        bias = causal_bias(x.shape[1]) if self.causal else None
        attention = Attention(self.heads, size, **(self.attention or {}))
        x = x + dropout(attention(nn.LayerNorm()(x), bias=bias), self.dropout)
        if memory is not None:
            x = x + Attention(self.heads, size)(nn.LayerNorm()(x), memory)
        inner = FeedForward(self.hidden, self.activation)(nn.LayerNorm()(x))
        return x + dropout(inner, self.dropout)


class RootMeanSquareNorm(nn.Module):
    """Division by the root mean square, then a scale; no mean, no shift (T5, section 2.1)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        return x * jax.lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + 1e-6) * scale


def causal_bias(length: int, past: int = 0) -> Any:
    """Return [length, past + length] zeros, `FORBIDDEN` where the key is later than the query."""
    query = jnp.arange(length)[:, None] + past
    key = jnp.arange(past + length)[None, :]
    return jnp.where(key <= query, 0.0, FORBIDDEN)


def sinusoids(positions: Any, width: int) -> Any:
    """Return sine and cosine features [positions, width] (Vaswani et al. 2017, section 3.5)."""
    rates = jnp.exp(jnp.arange(0, width, 2) * (-jnp.log(1e4) / width))
    angles = positions[:, None] * rates
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


class TransformerXL(nn.Module):
    """Tokens [batch, length] and cached states [layers, batch, past, width] to logits."""

    layers: int = 12
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    vocabulary: int = 204
    """Symbols of enwik8."""

    @nn.compact
    def __call__(self, tokens: Any, memory: Any) -> Any:
        table = nn.Embed(self.vocabulary, self.width)
        x = table(tokens) * self.width**0.5
        for layer in range(self.layers):
            y = RelativeAttention(self.heads)(x, memory[layer])
            x = nn.LayerNorm()(x + y)
            x = nn.LayerNorm()(x + FeedForward(self.hidden)(x))
        return nn.log_softmax(table.attend(x))


class RelativeAttention(nn.Module):
    """Scores by content and by distance, each with its own query bias (section 3.3)."""

    heads: int

    @nn.compact
    def __call__(self, x: Any, memory: Any) -> Any:
        width = x.shape[-1]
        size = width // self.heads
        context = jnp.concatenate([memory, x], axis=1)
        query, key, value, distance = (
            nn.DenseGeneral((self.heads, size), use_bias=False, name=name)(inputs)
            for name, inputs in (
                ("query", x),
                ("key", context),
                ("value", context),
                ("distance", sinusoids(jnp.arange(context.shape[1])[::-1], width)),
            )
        )
        by_content, by_distance = (
            self.param(name, nn.initializers.zeros, (self.heads, size))
            for name in ("content_bias", "distance_bias")
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query + by_content, key)
        far = jnp.einsum("bqhd,khd->bhqk", query + by_distance, distance)
        scores = (scores + shift(far)) / size**0.5
        scores = scores + causal_bias(x.shape[1], memory.shape[1])
        mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), value)
        return nn.DenseGeneral(width, axis=(-2, -1), use_bias=False, name="attention_output")(mixed)


def shift(scores: Any) -> Any:
    """Move row q left by queries − 1 − q places: column k then stands for distance (appendix B)."""
    b, h, q, k = scores.shape
    padded = jnp.pad(scores, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(b, h, k + 1, q)
    return padded[:, :, 1:].reshape(b, h, q, k)
