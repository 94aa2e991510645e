"""Recurrent, autoregressive and attention networks over sequences."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.zoo.models.vision import EncoderBlock


class GPT(nn.Module):
    """Decoder-only transformer with a causal mask and a tied output embedding."""

    layers: int = 6
    width: int = 256
    vocabulary: int = 5000

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        table = nn.Embed(self.vocabulary, self.width)
        places = self.param("positions", nn.initializers.zeros, (tokens.shape[1], self.width))
        x = table(tokens) + places
        for _ in range(self.layers):
            x = EncoderBlock(8, causal=True)(x)
        return table.attend(nn.LayerNorm()(x))


class T5(nn.Module):
    """Encoder and decoder with cross attention and relative position buckets."""

    width: int = 256

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        table = nn.Embed(4000, self.width)
        memory, x = table(source), table(target)
        for _ in range(3):
            memory = EncoderBlock(8)(memory)
        bias = self._bias(target.shape[1])
        for _ in range(3):
            y = nn.RMSNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(8)(y, y, mask=bias > 0)
            x = x + nn.MultiHeadDotProductAttention(8)(nn.RMSNorm()(x), memory)
            y = nn.Dense(4 * self.width)(nn.RMSNorm()(x))
            gate = nn.gelu(nn.Dense(4 * self.width)(y))
            x = x + nn.Dense(self.width)(gate * y)
        return nn.Dense(4000, use_bias=False)(x)

    def _bias(self, length: int) -> Any:
        distance = jnp.arange(length)[:, None] - jnp.arange(length)[None, :]
        bucket = jnp.clip(jnp.abs(distance), 0, 31)
        table = self.param("buckets", nn.initializers.zeros, (32, 8))
        bias = jnp.where(distance >= 0, jnp.moveaxis(table[bucket], -1, 0), -1e9)
        return bias[None]


class Recurrent(nn.Module):
    """An LSTM or GRU over time by scan, then a classifier."""

    cell: Any
    steps: int
    unrolled: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.RNN(self.cell(256), unroll=self.steps if self.unrolled else 1)(x)
        return nn.Dense(100)(x)


class WaveNet(nn.Module):
    """Gated dilated causal convolutions (van den Oord et al. 2016)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(64, (1,))(x)
        skip = jnp.zeros_like(x)
        for layer in range(10):
            dilation = 2 ** (layer % 10)
            padded = jnp.pad(x, ((0, 0), (dilation, 0), (0, 0)))
            conv = {"kernel_size": (2,), "kernel_dilation": (dilation,), "padding": "VALID"}
            gated = nn.tanh(nn.Conv(64, **conv)(padded)) * nn.sigmoid(nn.Conv(64, **conv)(padded))
            y = nn.Conv(64, (1,))(gated)
            x, skip = x + y, skip + nn.Conv(64, (1,))(gated)
        return nn.log_softmax(nn.Conv(256, (1,))(nn.relu(skip)))


class TransformerXL(nn.Module):
    """Attention over a memory with relative positions by the shift trick (Dai et al. 2019)."""

    width: int = 256
    heads: int = 8

    @nn.compact
    def __call__(self, x: Any, memory: Any) -> Any:
        for layer in range(4):
            x = self._block(x, memory[layer])
        return x

    def _block(self, x: Any, memory: Any) -> Any:
        size = self.width // self.heads
        context = jnp.concatenate([memory, x], axis=1)
        query = nn.DenseGeneral((self.heads, size))(x)
        key = nn.DenseGeneral((self.heads, size))(context)
        value = nn.DenseGeneral((self.heads, size))(context)
        places = self._sinusoids(context.shape[1])
        relative = nn.DenseGeneral((self.heads, size), use_bias=False)(places)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
        shifted = self._shift(jnp.einsum("bqhd,khd->bhqk", query, relative))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores + shifted), value)
        x = nn.LayerNorm()(x + nn.DenseGeneral(self.width, axis=(-2, -1))(mixed))
        y = nn.Dense(self.width)(nn.relu(nn.Dense(4 * self.width)(x)))
        return nn.LayerNorm()(x + y)

    def _sinusoids(self, length: int) -> Any:
        rates = jnp.exp(-jnp.arange(0, self.width, 2) * (jnp.log(1e4) / self.width))
        angles = jnp.arange(length)[::-1, None] * rates
        return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)

    def _shift(self, x: Any) -> Any:
        b, h, q, k = x.shape
        padded = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(b, h, k + 1, q)
        return padded[:, :, 1:].reshape(b, h, q, k)


class MixtureOfExperts(nn.Module):
    """Top-2 routing with a capacity (GShard): one-hot dispatch, experts as one batched matmul."""

    experts: int = 8

    @nn.compact
    def __call__(self, x: Any) -> Any:
        tokens, width = x.shape
        capacity = 2 * tokens // self.experts
        gates = nn.softmax(nn.Dense(self.experts)(x))
        best, chosen = jax.lax.top_k(gates, 2)
        hot = jax.nn.one_hot(chosen, self.experts)
        place = jnp.cumsum(hot.reshape(-1, self.experts), axis=0).reshape(hot.shape) * hot - 1
        slots = jax.nn.one_hot(place.max(-1).astype(jnp.int32), capacity)
        combine = jnp.einsum("tk,tke,tkc->tec", best, hot, slots)
        inside = jnp.einsum("tec,td->ecd", (combine > 0).astype(x.dtype), x)
        first = self.param("first", nn.initializers.normal(), (self.experts, width, 4 * width))
        second = self.param("second", nn.initializers.normal(), (self.experts, 4 * width, width))
        hidden = nn.relu(jnp.einsum("ecd,edf->ecf", inside, first))
        outside = jnp.einsum("ecf,efd->ecd", hidden, second)
        return x + jnp.einsum("tec,ecd->td", combine, outside)


class WaveRNN(nn.Module):
    """One GRU over samples that feeds its own choice back (Kalchbrenner et al. 2018)."""

    steps: int = 16
    unrolled: bool = False

    @nn.compact
    def __call__(self, condition: Any) -> Any:
        width = 256
        recurrent = self.param("recurrent", nn.initializers.normal(), (width, 3 * width))
        project = self.param("project", nn.initializers.normal(), (80 + 1, 3 * width))
        first = self.param("first", nn.initializers.normal(), (width, 256))
        second = self.param("second", nn.initializers.normal(), (256, 256))

        def step(carry: Any, features: Any) -> Any:
            state, sample = carry
            read = jnp.concatenate([features, sample], axis=-1) @ project
            u, r, e = jnp.split(read, 3, axis=-1)
            hu, hr, he = jnp.split(state @ recurrent, 3, axis=-1)
            update, reset = nn.sigmoid(u + hu), nn.sigmoid(r + hr)
            state = update * state + (1 - update) * jnp.tanh(e + reset * he)
            logits = nn.relu(state @ first) @ second
            sample = jnp.argmax(logits, axis=-1, keepdims=True).astype(jnp.float32) / 255.0
            return (state, sample), logits

        batch = condition.shape[1]
        start = (jnp.zeros((batch, width)), jnp.zeros((batch, 1)))
        return jax.lax.scan(step, start, condition, unroll=self.unrolled)[1]
