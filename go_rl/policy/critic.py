"""`Critic`: what a graph-level decision is worth on a graph, before anything is decoded or priced.

An ensemble of small networks, each of which sees a summary of the graph and the graph-level numbers
of every decision. Scores are standard deviations of the log of an iteration's seconds among one
graph's random decisions: lower is better, and an untrained critic scores all 0. A policy draws a
few decisions for each that it uses and takes the one with the best score (best-of-n sampling,
Stiennon et al. 2020), which transfers to graphs that it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from go_rl.core.problem import DECISIONS

MEMBERS = 4
"""Networks of the ensemble."""
WIDTH = 96
GRAPH_WIDTH = 64
SHARP = 3.0
"""Numbers whose sign matters are seen through tanh(3 x) as well."""


def decision_features(mix: Float[Array, "B G"], orders: int, logits: int) -> Float[Array, "B F"]:
    """Return what a critic sees of a graph-level decision.

    Args:
        mix: ``orders`` mixing logits, then plain numbers, then ``logits`` more mixing logits.
        orders: of the reference orders.
        logits: at the end; may be 0.
    """
    plain = mix[:, orders : mix.shape[1] - logits]
    seen = [nn.softmax(mix[:, :orders]), plain, jnp.tanh(SHARP * plain)]
    if logits:
        seen.append(nn.softmax(mix[:, -logits:]))
    return jnp.concatenate(seen, axis=1)


class Member(nn.Module):
    """One network of the ensemble."""

    @nn.compact
    def __call__(
        self, known: Float[Array, "K"], seen: Mapping[str, Float[Array, "B F"]]
    ) -> Float[Array, "B"]:
        """Return [B] scores."""
        graph = nn.Dense(GRAPH_WIDTH)(nn.silu(nn.Dense(GRAPH_WIDTH)(known)))
        x = sum(
            nn.Dense(WIDTH, name=f"see_{name}")(seen[name]) for name in DECISIONS if name in seen
        )
        scale, shift = jnp.split(nn.Dense(2 * WIDTH)(nn.silu(graph)), 2)
        x = nn.silu(x * (1.0 + 0.5 * scale) + shift)
        x = nn.silu(nn.Dense(WIDTH)(x))
        return nn.Dense(1, kernel_init=nn.initializers.zeros)(x)[:, 0]


class Critic(nn.Module):
    """The ensemble."""

    @nn.compact
    def __call__(
        self, known: Float[Array, "K"], seen: Mapping[str, Float[Array, "B F"]]
    ) -> Float[Array, "M B"]:
        """Return [M, B] scores of every member.

        Args:
            known: of the graph and the hardware; see `go_rl.policy.network.known_of`.
            seen: `decision_features` of the decisions asked.
        """
        mean = self.param("mean", nn.initializers.zeros, known.shape)
        deviation = self.param("deviation", nn.initializers.ones, known.shape)
        mean, deviation = jax.lax.stop_gradient((mean, deviation))
        shared: Any = (None, None)
        members = nn.vmap(
            Member, in_axes=shared, axis_size=MEMBERS,
            variable_axes={"params": 0}, split_rngs={"params": True},
        )  # fmt: skip
        shown = jnp.clip((known - mean) / deviation, -3.0, 3.0)
        return members(name="members")(shown, seen)
