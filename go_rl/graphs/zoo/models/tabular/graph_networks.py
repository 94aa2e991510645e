"""Networks over graphs: nodes [N, features], edges as arrays of senders and receivers [E]."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class GraphMLP(nn.Module):
    """Two hidden layers and a norm, as in the encode-process-decode networks."""

    width: int
    norm: bool = True

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Dense(128)(x))
        x = nn.Dense(self.width)(nn.relu(nn.Dense(128)(x)))
        return nn.LayerNorm()(x) if self.norm else x


class EncodeProcessDecode(nn.Module):
    """Learned simulator of particles and meshes (Sanchez-Gonzalez et al. 2020; Pfaff et al. 2021).

    Input: node features, edge features, senders, receivers; output: accelerations [N, 3].
    """

    rounds: int = 10
    width: int = 128

    @nn.compact
    def __call__(self, nodes: Any, edges: Any, senders: Any, receivers: Any) -> Any:
        count = nodes.shape[0]
        nodes, edges = GraphMLP(self.width)(nodes), GraphMLP(self.width)(edges)
        for _ in range(self.rounds):
            ends = jnp.concatenate([edges, nodes[senders], nodes[receivers]], axis=-1)
            messages = GraphMLP(self.width)(ends)
            total = jax.ops.segment_sum(messages, receivers, count)
            update = GraphMLP(self.width)(jnp.concatenate([nodes, total], axis=-1))
            nodes, edges = nodes + update, edges + messages
        return GraphMLP(3, norm=False)(nodes)


class GCN(nn.Module):
    """Graph convolutions with symmetric normalisation (Kipf and Welling 2017), residual if deep."""

    layers: int = 2
    width: int = 16
    classes: int = 7

    @nn.compact
    def __call__(self, x: Any, senders: Any, receivers: Any) -> Any:
        count = x.shape[0]
        degree = jax.ops.segment_sum(jnp.ones(senders.shape[0]), receivers, count) + 1.0
        scale = jax.lax.rsqrt(degree)[:, None]
        for layer in range(self.layers):
            last = layer == self.layers - 1
            y = nn.Dense(self.classes if last else self.width)(x) * scale
            y = (jax.ops.segment_sum(y[senders], receivers, count) + y) * scale
            if not last:
                x = x + nn.relu(y) if x.shape == y.shape else nn.relu(y)
        return nn.log_softmax(y)


class GAT(nn.Module):
    """Graph attention, several heads (Veličković et al. 2018)."""

    layers: int = 2
    heads: int = 8
    size: int = 8
    classes: int = 7

    @nn.compact
    def __call__(self, x: Any, senders: Any, receivers: Any) -> Any:
        for _ in range(self.layers - 1):
            y = self._attended(x, senders, receivers, self.heads, self.size)
            x = nn.elu(y.reshape(x.shape[0], -1))
        y = self._attended(x, senders, receivers, 1, self.classes)
        return nn.log_softmax(y[:, 0])

    def _attended(self, x: Any, senders: Any, receivers: Any, heads: int, size: int) -> Any:
        y = nn.DenseGeneral((heads, size), use_bias=False)(x)
        out, into = (nn.DenseGeneral(1, use_bias=False)(y)[..., 0] for _ in range(2))
        scores = nn.leaky_relu(out[senders] + into[receivers], 0.2)
        most = jax.ops.segment_max(scores, receivers, x.shape[0])
        share = jnp.exp(scores - most[receivers])
        total = jax.ops.segment_sum(share, receivers, x.shape[0])
        messages = y[senders] * (share / total[receivers])[..., None]
        return jax.ops.segment_sum(messages, receivers, x.shape[0])


class GIN(nn.Module):
    """Graph isomorphism network with a read-out after every layer (Xu et al. 2019).

    ``graphs`` [N] numbers the graph of each node; output: logits [number of graphs, classes].
    """

    layers: int = 5
    width: int = 64
    graphs: int = 32

    @nn.compact
    def __call__(self, x: Any, senders: Any, receivers: Any, graphs: Any) -> Any:
        logits = nn.Dense(2)(jax.ops.segment_sum(x, graphs, self.graphs))
        for layer in range(self.layers):
            weight = self.param(f"epsilon_{layer}", nn.initializers.zeros, ())
            x = (1.0 + weight) * x + jax.ops.segment_sum(x[senders], receivers, x.shape[0])
            x = nn.relu(nn.Dense(self.width)(x))
            x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Dense(self.width)(x)))
            logits = logits + nn.Dense(2)(jax.ops.segment_sum(x, graphs, self.graphs))
        return logits


class GraphNetwork(nn.Module):
    """Message passing by gather and segment sum, then global pooling."""

    nodes: int
    rounds: int = 4

    @nn.compact
    def __call__(self, x: Any, senders: Any, receivers: Any) -> Any:
        x = nn.Dense(128)(x)
        for _ in range(self.rounds):
            pairs = jnp.concatenate([x[senders], x[receivers]], axis=-1)
            messages = nn.relu(nn.Dense(128)(nn.relu(nn.Dense(128)(pairs))))
            total = jax.ops.segment_sum(messages, receivers, self.nodes)
            degree = jax.ops.segment_sum(jnp.ones(senders.shape[0]), receivers, self.nodes)
            mean = total / jnp.maximum(degree, 1.0)[:, None]
            x = nn.LayerNorm()(x + nn.Dense(128)(jnp.concatenate([x, mean], axis=-1)))
        return nn.Dense(10)(x.max(0))


class VAE(nn.Module):
    """Variational auto-encoder that draws its noise inside the graph (Kingma and Welling 2013)."""

    hidden: int = 512
    latent: int = 32
    depth: int = 1
    """Hidden layers on either side."""

    @nn.compact
    def __call__(self, x: Any, key: Any) -> Any:
        hidden = x
        for _ in range(self.depth):
            hidden = nn.relu(nn.Dense(self.hidden)(hidden))
        mean, log_variance = nn.Dense(self.latent)(hidden), nn.Dense(self.latent)(hidden)
        noise = jax.random.normal(key, mean.shape)
        z = mean + jnp.exp(0.5 * log_variance) * noise
        for _ in range(self.depth):
            z = nn.relu(nn.Dense(self.hidden)(z))
        y = nn.sigmoid(nn.Dense(x.shape[-1])(z))
        divergence = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(-1)
        return y, divergence


class NeuralODE(nn.Module):
    """Runge–Kutta steps of a learned field in a fori_loop (Chen et al. 2018)."""

    steps: int = 8
    unrolled: bool = False
    hidden: int = 256

    @nn.compact
    def __call__(self, x: Any) -> Any:
        width = x.shape[-1]
        first = self.param("first", nn.initializers.normal(), (width, self.hidden))
        second = self.param("second", nn.initializers.normal(), (self.hidden, width))

        def field(x: Any) -> Any:
            return jnp.tanh(x @ first) @ second

        def step(_: Any, x: Any) -> Any:
            k1 = field(x)
            k2 = field(x + 0.05 * k1)
            k3 = field(x + 0.05 * k2)
            k4 = field(x + 0.1 * k3)
            return x + (0.1 / 6) * (k1 + 2 * k2 + 2 * k3 + k4)

        if not self.unrolled:
            return jax.lax.fori_loop(0, self.steps, step, x)
        for index in range(self.steps):
            x = step(index, x)
        return x
