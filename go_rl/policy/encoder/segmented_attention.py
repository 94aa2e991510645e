"""Segmented recurrent attention over nodes in topological order (GO, section 3; Transformer-XL,
Dai et al. 2019, section 3.2, without positional encoding).

Nodes are cut into segments of equal length. A segment attends to itself and to the embeddings of
the segment before it, through which no gradient flows. Cost and memory are linear in the nodes.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

SEGMENTS_AT_ONCE = 32
"""Segments attended in one piece: what bounds the memory of the attention weights."""
MASKED = -1e9
"""Attention logit of a key that is no node."""


class SegmentedAttention(nn.Module):
    """Multi-head attention within a segment and its predecessor."""

    heads: int
    segment: int
    recurrence: bool = True
    """Attend to the previous segment; otherwise segments know nothing of each other."""

    @nn.compact
    def __call__(self, h: Float[Array, "U D"], real: Float[Array, "U"]) -> Float[Array, "U D"]:
        """Return [U, D] attended values; ``real`` [U] is 1 for nodes and 0 for padding."""
        units, width = h.shape
        length = min(self.segment, units)
        blocks = h.reshape(-1, length, width)
        mask = real.reshape(-1, length)
        memory, remembered = _previous(jax.lax.stop_gradient(blocks)), _previous(mask)
        keys = jnp.concatenate([memory, blocks], axis=1) if self.recurrence else blocks
        seen = jnp.concatenate([remembered, mask], axis=1) if self.recurrence else mask
        query = nn.Dense(width, use_bias=False, name="query")(blocks)
        key = nn.Dense(width, use_bias=False, name="key")(keys)
        value = nn.Dense(width, use_bias=False, name="value")(keys)
        attended = _attend(query, key, value, seen, self.heads)
        return nn.Dense(width, name="out")(attended.reshape(units, width))


def _previous(blocks: Float[Array, "S L *D"]) -> Float[Array, "S L *D"]:
    """Shift segments by one; before the first there is nothing."""
    return jnp.concatenate([jnp.zeros_like(blocks[:1]), blocks[:-1]], axis=0)


def _attend(
    query: Float[Array, "S L D"],
    key: Float[Array, "S M D"],
    value: Float[Array, "S M D"],
    seen: Float[Array, "S M"],
    heads: int,
) -> Float[Array, "S L D"]:
    """Attention softmax(Q K^T / sqrt(d)) V for each head, a bounded number of segments at a
    time."""
    depth = query.shape[-1] // heads

    def one(piece: tuple[Array, Array, Array, Array]) -> Array:
        q, k, v, there = piece
        q, k, v = (x.reshape(x.shape[0], heads, depth) for x in (q, k, v))
        logits = jnp.einsum("lhd,mhd->hlm", q, k) / jnp.sqrt(jnp.float32(depth))
        weights = jax.nn.softmax(jnp.where(there > 0, logits, MASKED), axis=-1)
        return jnp.einsum("hlm,mhd->lhd", weights, v).reshape(q.shape[0], heads * depth)

    if query.shape[0] <= SEGMENTS_AT_ONCE:
        return jax.vmap(lambda *piece: one(piece))(query, key, value, seen)
    pieces = (query, key, value, seen)
    return jax.lax.map(jax.checkpoint(one), pieces, batch_size=SEGMENTS_AT_ONCE)
