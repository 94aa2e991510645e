"""Transformer-XL: attention over a cached segment, relative positions (Dai et al. 2019)."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from go_rl.graphs.zoo.models.language.attention import FeedForward, causal_bias, sinusoids


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
