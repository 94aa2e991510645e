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
