"""Heads of sequential dispatch: *select* (decision schedule) and *place* (decision placement).

The network gives each unit the coefficients of a small function of what is seen at the moment; see
`go_rl.policy.dispatch`. Rollouts evaluate it outside of JAX, one choice after the other; here are
its coefficients, and the log-probabilities of recorded choices, all at once.

Dimension letters: ``B`` samples, ``S`` recorded choices, ``K`` candidates, ``F`` features, ``H``
hidden units, ``U`` units, ``C`` coefficients of a unit.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen.initializers import normal
from jaxtyping import Array, Float, Int

from go_rl.policy.config import PolicyConfig
from go_rl.policy.decoders.choices import NEVER, entropies
from go_rl.policy.decoders.head_input import HeadInput
from go_rl.policy.dispatch.features import (
    HIDDEN,
    PLACE_FEATURES,
    SELECT_FEATURES,
    coefficients,
)

SEEN = {"placement": PLACE_FEATURES, "schedule": SELECT_FEATURES}
"""What the head of each decision sees."""
LISTED = {
    "placement": {"end": -4.0, "ends first": 1.0},
    "schedule": {"upward rank": 20.0, "earliest start": -1.0},
}
"""Weights of an untrained policy: a list scheduler, earliest finish time by upward rank (HEFT)."""
SPREAD = 0.05
"""Standard deviation of the weights that make coefficients, before training."""


class DispatchHead(NamedTuple):
    """A head for one graph."""

    unit: Float[Array, "U C"]
    """[U, C] weights of the features, biases and weights of the hidden units, side by side."""
    shared: Float[Array, "F H"]
    """[F, H] weights of the hidden units, the same for all units."""


class DispatchChoices(NamedTuple):
    """Recorded choices of ``B`` samples."""

    seen: Float[Array, "B S K F"]
    """[B, S, K, F] features of what was compared."""
    unit: Int[Array, "B S K"]
    """[B, S, K] the unit whose coefficients score it; -1: not there."""
    chosen: Int[Array, "B S"]
    """[B, S]."""


class DispatchLogProbs(NamedTuple):
    """Log-probabilities of recorded choices."""

    chosen: Float[Array, "B S"]
    free: Float[Array, "B S"]
    """1 where there was a choice between several."""

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return the log-probabilities whose ratios are clipped apart, each with its weights."""
        return ((self.chosen, self.free),)


class DispatchDecoder(nn.Module):
    """Distribution over candidates (decision schedule) or devices (placement)."""

    outputs: ClassVar[tuple[str, ...]] = ("emit",)
    """Layers that give the coefficients of units; ``listed`` stays, the same on every graph."""
    config: PolicyConfig
    decision: str

    def setup(self) -> None:
        names = SEEN[self.decision]
        width = self.config.decoder_width
        self.project, self.context = nn.Dense(width), nn.Dense(width)
        self.emit = nn.Dense(coefficients(len(names)), kernel_init=normal(SPREAD))
        self.listed = self.param("listed", self._listed, (len(names),))
        self.shared = self.param("shared", normal(0.3), (len(names), HIDDEN))

    def _listed(self, key: Array, shape: tuple[int]) -> Array:
        first = LISTED[self.decision]
        return jnp.array([first.get(name, 0.0) for name in SEEN[self.decision]], jnp.float32)

    def head(self, head: HeadInput) -> DispatchHead:
        """Return the head for a graph."""
        inner = nn.relu(self.project(head.h) + self.context(head.pooled))
        unit = self.emit(inner)
        weights = unit[:, : len(self.listed)] + self.listed
        return DispatchHead(
            jnp.concatenate([weights, unit[:, len(self.listed) :]], axis=-1), self.shared
        )

    def sample(self, head: HeadInput, key: Array, noise: Float[Array, "B"]) -> DispatchHead:
        """Return the head: rollouts draw with it."""
        return self.head(head)

    def log_prob(
        self, head: HeadInput, actions: DispatchChoices
    ) -> tuple[DispatchLogProbs, Float[Array, ""]]:
        """Return the log-probabilities of recorded choices, and the mean entropy of a free one."""
        there = actions.unit >= 0
        log_probs = self.log_probs(self.head(head), actions)
        free = (there.sum(axis=-1) > 1) & jnp.take_along_axis(
            there, actions.chosen[..., None], axis=-1
        )[..., 0]
        free = free.astype(jnp.float32)
        chosen = jnp.take_along_axis(log_probs, actions.chosen[..., None], axis=-1)[..., 0]
        chosen = jnp.where(free > 0, chosen, 0.0)
        unsure = (entropies(jnp.where(there, log_probs, -30.0)) * free).sum()
        return DispatchLogProbs(chosen, free), unsure / jnp.maximum(free.sum(), 1.0)

    def log_probs(self, head: DispatchHead, actions: DispatchChoices) -> Float[Array, "B S K"]:
        """Return normalised log-probabilities of what was compared."""
        features = actions.seen.shape[-1]
        own = head.unit[jnp.maximum(actions.unit, 0)]
        weights, bias = own[..., :features], own[..., features : features + HIDDEN]
        inner = jnp.tanh(actions.seen @ head.shared + bias)
        logits = (weights * actions.seen).sum(-1) + (own[..., features + HIDDEN :] * inner).sum(-1)
        return jax.nn.log_softmax(jnp.where(actions.unit >= 0, logits, NEVER))
