"""Message passing, generative and dynamical networks."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


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
