"""The encoder that all decisions share: GraphSAGE, then segmented attention with conditioning."""

from __future__ import annotations

import flax.linen as nn
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float

from go_rl.policy.config import PolicyConfig
from go_rl.policy.encoder.graph_arrays import edges, hardware_features, node_array
from go_rl.policy.encoder.graphsage import GraphSage
from go_rl.policy.encoder.segmented_attention import SegmentedAttention


class Encoder(nn.Module):
    """Embeds every node once for each update, whatever the number of samples."""

    config: PolicyConfig

    @nn.compact
    def __call__(
        self, graph: jraph.GraphsTuple, real: Float[Array, "U"]
    ) -> tuple[Float[Array, "U D"], Float[Array, "D"]]:
        """Return [U, D] embeddings of the nodes and [D] of the graph."""
        width = self.config.hidden
        x = features_with_hardware(graph)
        h = nn.Dense(width, name="embed")(x)
        for i in range(self.config.sage_layers):
            h = GraphSage(width, name=f"sage_{i}")(h, *edges(graph))
        for i in range(self.config.attention_layers):
            h = AttentionLayer(self.config, name=f"attention_{i}")(h, x, real)
        total = jnp.maximum(real.sum(), 1.0)
        mean = (h * real[:, None]).sum(axis=0) / total
        top = jnp.where(real[:, None] > 0, h, -jnp.inf).max(axis=0)
        pooled = jnp.concatenate([mean, jnp.where(jnp.isfinite(top), top, 0.0)])
        return h, nn.tanh(nn.Dense(width, name="pool")(pooled))


class AttentionLayer(nn.Module):
    """Input conditioning, x' = g(c(x_0) * x), then attention and a feed-forward layer."""

    config: PolicyConfig

    @nn.compact
    def __call__(
        self, h: Float[Array, "U D"], x: Float[Array, "U F"], real: Float[Array, "U"]
    ) -> Float[Array, "U D"]:
        """Return [U, D]; ``x`` [U, F] are the input features, ``real`` marks nodes."""
        config, width = self.config, self.config.hidden
        conditioned = h
        if config.conditioning:
            gate = 2.0 * nn.sigmoid(nn.Dense(width, name="condition")(x))
            conditioned = nn.Dense(width, name="conditioned")(gate * h)
        attention = SegmentedAttention(config.heads, config.segment, config.recurrence)
        h = nn.LayerNorm()(h + attention(conditioned, real))
        inner = nn.relu(nn.Dense(2 * width, name="widen")(h))
        return nn.LayerNorm()(h + nn.Dense(width, name="narrow")(inner))


def features_with_hardware(graph: jraph.GraphsTuple) -> Float[Array, "U F"]:
    """Return [U, F] node features with the hardware's features beside each."""
    features, hardware = node_array(graph, "features"), hardware_features(graph)
    hardware = jnp.broadcast_to(hardware, (features.shape[0], hardware.shape[-1]))
    return jnp.concatenate([features, hardware], axis=-1)
