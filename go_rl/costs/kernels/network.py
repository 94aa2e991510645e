"""Networks that predict a kernel's runtime from its graph ("A Learnt Performance Model for TPUs").

Nodes are embedded with their neighbours (GraphSAGE, or a rival), the kernel's nodes are reduced to
one vector, and a small network reads it with the features of the whole kernel:

    e_v^k = l2(f3^k(concat(e_v^(k-1), sum over u in N(v) of f2^k(e_u^(k-1)))))

(the talk's equation; Hamilton, Ying and Leskovec 2017). Producers and consumers are summed apart.
Everything is dense: a batch is [B, L] nodes with [B, L, L] adjacency, for kernels are small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, Range, check_ranges
from go_rl.costs.kernels.batch import KernelBatch

EncoderName = Literal["graphsage", "attention", "sequence", "none"]
Reduction = Literal["column", "lstm", "transformer"]
MASKED = -1e9


@dataclass(frozen=True)
class KernelNetworkConfig:
    """Sizes and parts of the network."""

    width: int = 64
    """Columns of node embeddings."""
    layers: int = 3
    """Layers of the encoder."""
    encoder: EncoderName = "graphsage"
    """``attention``: graph attention; ``sequence``: an LSTM over the nodes in order; ``none``: each
    node by itself."""
    reduction: Reduction = "column"
    """``column``: mean, largest and sum over the nodes."""
    head: int = 128
    """Width of the two layers that read the reduced kernel."""
    opcodes: int = 0
    """Opcodes of the vocabulary."""
    opcode_width: int = 16
    """Columns of an opcode's embedding."""
    outputs: int = 2
    """Numbers predicted: 2, the mean and the log of the deviation; 1, a score."""
    skip: bool = True
    """The reduction sees the nodes as they enter the encoder, too."""
    additive: bool = True
    """The first number is the log of a sum over the nodes, plus what the head makes of the whole:
    seconds add up."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "kernel network", TrainingError, width=COUNT, layers=Range(1, MOST_LAYERS),
            head=COUNT, opcode_width=COUNT, outputs=COUNT,
        )  # fmt: skip
        if self.width % HEADS:
            raise TrainingError(f"width must be a multiple of {HEADS}, not {self.width}")


HEADS = 4
"""Heads of attention."""
MOST_LAYERS = 64
"""A damaged file may ask for billions."""


class KernelNetwork(nn.Module):
    """Predicts from a `KernelBatch`."""

    config: KernelNetworkConfig

    @property
    def columns(self) -> int:
        """Number of outputs."""
        return self.config.outputs

    @nn.compact
    def __call__(self, batch: KernelBatch) -> Float[Array, "B O"]:
        """Return [B, outputs] of each kernel."""
        config = self.config
        nodes = self.embed(batch)
        kernel = reduce_kernel(config, nodes, batch.real)
        whole = Standardised(name="whole_scale")(batch.whole)
        joined = jnp.concatenate([kernel, whole], axis=-1)
        for i in range(2):
            joined = nn.silu(nn.Dense(config.head, name=f"head_{i}")(joined))
        out = nn.Dense(config.outputs, name="out")(joined)
        if not config.additive:
            return out
        return out.at[:, 0].add(LogSum(name="parts")(nodes, batch.real))

    def embed(self, batch: KernelBatch) -> Float[Array, "B L D"]:
        """Return [B, L, D] embeddings of the nodes."""
        config, real = self.config, batch.real[..., None]
        code = nn.Embed(config.opcodes + 1, config.opcode_width, name="opcode")(batch.opcode)
        seen = Standardised(name="node_scale")(batch.nodes)
        h = nn.Dense(config.width, name="enter")(jnp.concatenate([code, seen], axis=-1))
        entered = h = nn.silu(h) * real
        if config.encoder == "sequence":
            h = Sequence(config.width, config.layers, name="sequence")(h, batch.real)
            return jnp.concatenate([h, entered], axis=-1) if config.skip else h
        for i in range(config.layers if config.encoder != "none" else 0):
            layer = Sage if config.encoder == "graphsage" else GraphAttention
            h = layer(config.width, name=f"layer_{i}")(h, batch) * real
        return jnp.concatenate([h, entered], axis=-1) if config.skip else h


class Standardised(nn.Module):
    """Features less their mean, over their deviation; both are set before training."""

    @nn.compact
    def __call__(self, x: Float[Array, "*B F"]) -> Float[Array, "*B F"]:
        """Return x with means 0 and deviations 1 on the training data."""
        mean = self.variable("scale", "mean", jnp.zeros, x.shape[-1:])
        deviation = self.variable("scale", "deviation", jnp.ones, x.shape[-1:])
        return (x - mean.value) / deviation.value


class PiecewiseLinear(nn.Module):
    """Piecewise linear encoding: position of each feature in each of its bins, 0 to 1, so that
    thresholds are easily learned (Gorishniy et al., "On Embeddings for Numerical Features in
    Tabular Deep Learning", 2022). The bins are set before training."""

    bins: int

    @nn.compact
    def __call__(self, x: Float[Array, "*B F"]) -> Float[Array, "*B BF"]:
        """Return for each bin the features' places in it."""
        shape = (self.bins, x.shape[-1])
        low = self.variable("scale", "low", jnp.zeros, shape)
        width = self.variable("scale", "width", jnp.ones, shape)
        place = jnp.clip((x[..., None, :] - low.value) / width.value, 0.0, 1.0)
        return place.reshape(*x.shape[:-1], -1)


class LogSum(nn.Module):
    """The logarithm of a sum of positive parts, one of each node."""

    @nn.compact
    def __call__(self, h: Float[Array, "B L D"], real: Float[Array, "B L"]) -> Float[Array, "B"]:
        """Return [B]."""
        part = nn.Dense(1, name="part")(h)[..., 0]
        return jax.nn.logsumexp(jnp.where(real > 0, part, MASKED), axis=1) * jnp.sign(real.sum(1))


class Sage(nn.Module):
    """The talk's layer."""

    width: int

    @nn.compact
    def __call__(self, h: Float[Array, "B L D"], batch: KernelBatch) -> Float[Array, "B L D"]:
        """Return [B, L, D] after one step along the edges, each row of length 1."""
        read = batch.adjacent @ nn.silu(nn.Dense(self.width, name="producers")(h))
        back = batch.adjacent.swapaxes(1, 2) @ nn.silu(nn.Dense(self.width, name="consumers")(h))
        new = nn.silu(nn.Dense(self.width, name="f3")(jnp.concatenate([h, read, back], axis=-1)))
        return new / jnp.sqrt(jnp.square(new).sum(-1, keepdims=True) + 1e-6)


class GraphAttention(nn.Module):
    """Graph attention over producers, consumers and the node itself (Veličković et al. 2018, with
    the attention of Brody, Alon and Yahav 2022)."""

    width: int

    @nn.compact
    def __call__(self, h: Float[Array, "B L D"], batch: KernelBatch) -> Float[Array, "B L D"]:
        """Return [B, L, D]."""
        count, length, _ = h.shape
        shape = (count, length, HEADS, self.width // HEADS)
        source = nn.Dense(self.width, name="source")(h).reshape(shape)
        target = nn.Dense(self.width, name="target")(h).reshape(shape)
        vector = self.param("vector", nn.initializers.lecun_normal(), shape[2:])
        mixed = nn.leaky_relu(target[:, :, None] + source[:, None], 0.2)  # [B, L, L, H, D/H]
        logits = jnp.einsum("bvuhd,hd->bvuh", mixed, vector)
        near = batch.adjacent + batch.adjacent.swapaxes(1, 2) + jnp.eye(length)
        near = near * batch.real[:, None, :]
        weights = jax.nn.softmax(jnp.where(near[..., None] > 0, logits, MASKED), axis=2)
        new = jnp.einsum("bvuh,buhd->bvhd", weights, source).reshape(h.shape)
        return nn.LayerNorm()(h + nn.silu(new))


class Sequence(nn.Module):
    """A stack of LSTMs over the nodes in topological order."""

    width: int
    layers: int

    @nn.compact
    def __call__(
        self, h: Float[Array, "B L D"], real: Float[Array, "B L"]
    ) -> Float[Array, "B L D"]:
        """Return [B, L, D] the states of the last one."""
        length = real.sum(axis=1).astype(jnp.int32)
        for i in range(self.layers):
            cell = nn.RNN(nn.OptimizedLSTMCell(self.width), name=f"lstm_{i}")
            states: Any = cell(h, seq_lengths=length)
            h = states * real[..., None]
        return h


def reduce_kernel(
    config: KernelNetworkConfig, h: Float[Array, "B L D"], real: Float[Array, "B L"]
) -> Float[Array, "B R"]:
    """Return [B, R] one vector for each kernel; called inside `KernelNetwork`."""
    if config.reduction == "column":
        return _columns(h, real)
    if config.reduction == "lstm":
        length = real.sum(axis=1).astype(jnp.int32)
        cell = nn.RNN(nn.OptimizedLSTMCell(config.width), name="reduce")
        states: Any = cell(h, seq_lengths=length)
        last = jnp.maximum(length - 1, 0)
        return jnp.take_along_axis(states, last[:, None, None], axis=1)[:, 0]
    mask = (real[:, None, None, :] > 0) & (real[:, None, :, None] > 0)
    inner = nn.LayerNorm(name="before")(h)
    h = h + nn.MultiHeadDotProductAttention(HEADS, name="reduce")(inner, inner, mask=mask)
    wide = nn.silu(nn.Dense(2 * config.width, name="wide")(h))
    return _columns(h + nn.Dense(h.shape[-1], name="after")(wide), real)


def _columns(h: Float[Array, "B L D"], real: Float[Array, "B L"]) -> Float[Array, "B R"]:
    """[B, 3 D] mean, largest and sum over the nodes; the sum over the root of their number, which
    stays within a few units."""
    there, count = real[..., None], jnp.maximum(real.sum(1), 1.0)[:, None]
    total = (h * there).sum(axis=1)
    largest = jnp.where(there > 0, h, MASKED).max(axis=1)
    return jnp.concatenate([total / count, jnp.maximum(largest, -1e3), total / jnp.sqrt(count)], -1)
