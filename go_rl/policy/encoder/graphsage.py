"""GraphSAGE with max-pool aggregation (Hamilton, Ying, Leskovec 2017, equation 3; GO, section 3).

h_N(v) = max over u in N(v) of relu(W h_u + b);  h_v' = relu(W' concat(h_v, h_N(v))). Producers and
consumers are pooled apart: their direction matters to every decision here.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int


class GraphSage(nn.Module):
    """One layer, with a residual connection and layer normalisation."""

    width: int
    """Columns D of the result."""

    @nn.compact
    def __call__(
        self, h: Float[Array, "U D"], senders: Int[Array, "E"], receivers: Int[Array, "E"]
    ) -> Float[Array, "U D"]:
        """Return [U, D] embeddings after one step along the edges."""
        producers = max_pool(nn.relu(nn.Dense(self.width, name="producers")(h)), senders, receivers)
        consumers = max_pool(nn.relu(nn.Dense(self.width, name="consumers")(h)), receivers, senders)
        joined = jnp.concatenate([h, producers, consumers], axis=-1)
        return nn.LayerNorm()(h + nn.relu(nn.Dense(self.width, name="combine")(joined)))


def max_pool(
    values: Float[Array, "U *D"], source: Int[Array, "E"], target: Int[Array, "E"]
) -> Float[Array, "U *D"]:
    """Return, for each node, the largest value over the sources of its edges; 0 where it has none.

    ``values`` are not negative.
    """
    return jax.nn.relu(jraph.segment_max(values[source], target, num_segments=values.shape[0]))
