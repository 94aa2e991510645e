"""`TunerNetwork`: bidirectional LSTM and attention head over the statements of a program (Verma et
al. 2023, section 3.3 and Table 4).

    statements ⊕ joint features → 3 bidirectional LSTM layers → memory
    joint features → query;  twice: attention of 2 heads over the memory, LSTM cell → query
    query → relative throughput

The paper states layers, heads and unrolling steps, and not how they are joined; the head is the
attention LSTM of matching networks (Vinyals et al. 2016, section 2.1), from which its words come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, check_ranges
from go_rl.costs.programs.learn.network import Layers

HEAD = ("query", "attention", "cell", "output")
"""Modules that fine-tuning changes."""


@dataclass(frozen=True)
class TunerSizes:
    """Sizes of a `TunerNetwork`; the defaults of layers, heads and unrolling are the paper's."""

    units: int = 48
    """Units of each direction of an LSTM layer."""
    lstm_layers: int = 3
    heads: int = 2
    unrolling: int = 2
    """Steps of the attention head."""
    output_layers: tuple[int, ...] = (64,)

    def __post_init__(self) -> None:
        check_ranges(
            self, "tuner", TrainingError, units=COUNT, lstm_layers=COUNT, heads=COUNT,
            unrolling=COUNT, output_layers=COUNT,
        )  # fmt: skip
        if 2 * self.units % self.heads:
            raise TrainingError(
                f"tuner: twice the units ({2 * self.units}) must be a multiple of heads "
                f"({self.heads})"
            )


class StatementBatch(NamedTuple):
    """``B`` programs of at most ``L`` statements."""

    leaves: Any
    """[B, L, 164] standardised leaf vectors with their positional encoding."""
    count: Any
    """[B] statements of each."""
    joint: Any
    """[B, 2 J] standardised joint features, and which are known."""


class TunerNetwork(nn.Module):
    """Tuner network of this module."""

    sizes: TunerSizes
    states: bool = False
    """Whether the last state of the attention head is returned instead of the logit."""

    @nn.compact
    def __call__(self, batch: StatementBatch) -> Float[Array, "B *width"]:
        """Return [B] the logit of relative throughput, or [B, 2 units] states."""
        sizes, length = self.sizes, batch.leaves.shape[1]
        joint = nn.gelu(nn.Dense(sizes.units, name="joint")(batch.joint))
        leaves = nn.gelu(nn.Dense(sizes.units, name="statement")(batch.leaves))
        repeated = jnp.repeat(joint[:, None], length, axis=1)
        memory: Any = jnp.concatenate([leaves, repeated], axis=-1)
        for i in range(sizes.lstm_layers):
            ways = [nn.RNN(nn.OptimizedLSTMCell(sizes.units), name=f"{w}_{i}") for w in "fb"]
            both = nn.Bidirectional(ways[0], ways[1], name=f"lstm_{i}")
            memory = both(memory, seq_lengths=batch.count)
        real = jnp.arange(length)[None, :] < batch.count[:, None]
        wide = 2 * sizes.units
        query = nn.Dense(wide, name="query")(joint)
        attention = nn.MultiHeadDotProductAttention(sizes.heads, name="attention")
        cell = nn.OptimizedLSTMCell(wide, name="cell")
        state = (jnp.zeros_like(query), query)
        for _ in range(sizes.unrolling):
            read = attention(state[1][:, None], memory, mask=real[:, None, None, :])[:, 0]
            state, _ = cell(state, jnp.concatenate([query, read], axis=-1))
        if self.states:
            return state[1]
        return Layers((*sizes.output_layers, 1), name="output")(state[1])[:, 0]
