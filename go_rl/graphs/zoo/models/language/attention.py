"""Multi-head attention and the blocks around it, from which the transformers are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.dropout import dropout

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
