"""GO's node decisions: a categorical choice for every unit and decision, drawn for all at once.

T iterations, each conditioned on the choices of the one before (iterative non-autoregressive
decoding, GO, section 3.3): p(y^t | G) = prod_u p(y_u^t | h_G, y^(t-1)). The last are the plan.
Two additions, for placement only, both optional: graph-level Gaussian numbers z shift the logits of
all units at once, p(y, z | G) = p(z | G) p(y | z, G), so that plans differ in whole groups of units
(`NodesPolicyConfig.directions`); and y^0 is the best plan known (`NodesPolicyConfig.carry`).

Dimension letters: ``B`` samples, ``T`` iterations, ``U`` units, ``K`` choices of a unit, ``L``
graph-level numbers, ``D`` width of embeddings.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.distributions.choices import (
    NEVER,
    ChoiceLogProbs,
    draw_choices,
    entropies,
    log_prob_of,
)
from go_rl.policy.distributions.head_input import HeadInput
from go_rl.policy.distributions.surroundings import seen_devices, seen_levels
from go_rl.policy.nodes.device_logits import DeviceLogits, DeviceTerms, device_logits
from go_rl.policy.nodes.node_options import UnitOptions

MOVED = 1.2
"""Units that leave in an iteration: sqrt(U) exp(1.2 x), the graph-level number x."""
REACH, BISECTIONS = 10.0, 20
"""Search for the result of `staying`: its reach beyond the units' own preferences, and its
bisections."""
LOG_SPREAD = (-1.0, 1.0)
"""Range of log standard deviations of graph-level numbers."""


class NodeActions(NamedTuple):
    """Decisions of ``B`` samples."""

    chosen: Int[Array, "B T U"]
    """[B, T, U] device or level of each iteration."""
    options: Float[Array, "B U K"]
    """[B, U, K] among what it was chosen, the same in each sample; see `UnitOptions`."""
    leader: Int[Array, "B U"]
    """[B, U] unit whose choice holds, the same in each sample."""
    latent: Float[Array, "B L"] | None = None
    """[B, L] graph-level numbers; placement only."""
    start: Int[Array, "B U"] | None = None
    """[B, U] what the first iteration saw; None: nothing."""
    stay: Float[Array, "B T"] | None = None
    """[B, T] added to the logits of where units were; see `staying`. None: nothing."""


class NodeLogProbs(NamedTuple):
    """Log-probabilities of what was chosen, and log-densities of the graph-level numbers."""

    choices: ChoiceLogProbs
    latent: Float[Array, "B L"]

    def parts(self, real: Float[Array, "U"]) -> tuple[tuple[Array, Array], ...]:
        """Return what is clipped apart, each with its weights; see `ChoiceLogProbs.parts`."""
        units = self.choices.parts(real)
        if not self.latent.shape[1]:
            return units
        whole = self.latent.sum(axis=-1)
        return (*units, (whole, jnp.ones_like(whole)))


class LevelLogits(nn.Module):
    """Logits of a level of priority for every unit (decisions schedule and fusion)."""

    config: NodesPolicyConfig

    @nn.compact
    def __call__(self, head: HeadInput, before: Int[Array, "B U"] | None) -> Float[Array, "#B U K"]:
        """Return logits; ``before`` [B, U] are the choices of the iteration before, if any."""
        width = self.config.decoder_width
        unit = nn.Dense(width, name="project")(head.h)
        unit = unit + nn.Dense(width, name="context")(head.pooled)
        level = None if before is None else before.astype(jnp.float32) / (LEVELS - 1.0)
        seen = nn.Dense(width, name="condition")(seen_levels(head.graph, level))
        return nn.Dense(LEVELS, name="emit")(nn.relu(unit[None] + seen))


class NodeDecoder(nn.Module):
    """Distribution over devices (decision placement) or levels (schedule, fusion)."""

    outputs: ClassVar[tuple[str, ...]] = ("emit", "key", "weigh", "bend", "latent")
    """Layers that give the numbers of the distribution: of levels, or of devices."""
    config: NodesPolicyConfig
    decision: str

    def setup(self) -> None:
        placing = self.decision == "placement"
        self.score: Any = DeviceLogits(self.config) if placing else LevelLogits(self.config)
        if placing and self.width:
            self.latent = nn.Dense(2 * self.width, kernel_init=nn.initializers.zeros)

    @property
    def width(self) -> int:
        """Number L of graph-level decisions of placement: along directions, and how many units
        move."""
        return self.config.directions + self.config.carry

    def sample(
        self,
        head: HeadInput,
        key: Array,
        noise: Float[Array, "B"],
        options: UnitOptions,
        start: Int[Array, "U"] | None = None,
    ) -> NodeActions:
        """Draw [B] samples; ``noise`` [B] as in `draw_choices`.

        ``start`` [U]: what the first iteration sees; None: nothing, and nothing either where the
        configuration does not carry plans over, or for levels.
        """
        *keys, last = jax.random.split(key, self.config.iterations + 1)
        among, leader = (jnp.broadcast_to(each, (len(noise), *each.shape)) for each in options)
        if self.decision != "placement":
            before, chosen = None, []
            for one in keys:
                before = draw_choices(self._of_levels(head, options.table, before), noise, one)
                chosen.append(before)
            return NodeActions(jnp.stack(chosen, axis=1), among, leader)
        mean, spread = self._latent(head)
        deviation = noise[:, None] * jax.random.normal(last, (len(noise), len(mean)))
        latent = mean + jnp.exp(spread) * deviation
        begun = start if self.config.carry else None
        chosen, stay = self._devices(head, keys, noise, options, latent, begun)
        first = None if begun is None else jnp.broadcast_to(begun, chosen[0].shape)
        added = jnp.stack(stay, axis=1) if stay else None
        return NodeActions(jnp.stack(chosen, axis=1), among, leader, latent, first, added)

    def _devices(
        self,
        head: HeadInput,
        keys: list[Array],
        noise: Float[Array, "B"],
        options: UnitOptions,
        latent: Float[Array, "B L"],
        start: Int[Array, "U"] | None,
    ) -> tuple[list[Int[Array, "B U"]], list[Float[Array, "B"]]]:
        """Draw devices; what each iteration chose, and what it added to the logits of staying."""
        (table, leader), chosen = options, list[Array]()
        terms: DeviceTerms = self.score(head, table)
        stay: list[Array] = []
        before = None
        if start is not None:
            before = jnp.broadcast_to(start.astype(jnp.int32), (len(noise), len(start)))
        for t, key in enumerate(keys):
            seen = self._seen(head, table, [before])
            logits = device_logits(terms, t, seen, table, latent)[:, 0]
            if start is not None and before is not None:
                stay.append(
                    staying(logits, table, before, head.real * _leads(leader), latent[:, -1])
                )
                logits = kept(logits, before, stay[-1])
            before = draw_choices(_normalised(table, logits), noise, key)[:, leader]
            chosen.append(before)
        return chosen, stay

    def log_prob(
        self, head: HeadInput, actions: NodeActions
    ) -> tuple[NodeLogProbs, Float[Array, ""]]:
        """Return the log-probabilities of the decisions, and the mean entropy of a free unit."""
        options, count = actions.options[0], self.config.iterations
        free = (jnp.isfinite(options).sum(axis=-1) > 1) * _leads(actions.leader[0])
        before = [actions.start, *(actions.chosen[:, t] for t in range(count - 1))]
        density = jnp.zeros((len(actions.chosen), 0))
        if actions.latent is None:
            each = [self._of_levels(head, options, one) for one in before]
            shape = (len(actions.chosen), *options.shape)
            log_probs = jnp.stack([jnp.broadcast_to(x, shape) for x in each], axis=1)
        else:
            mean, spread = self._latent(head)
            density = -0.5 * jnp.square((actions.latent - mean) * jnp.exp(-spread)) - spread
            terms: DeviceTerms = self.score(head, options)
            seen = self._seen(head, options, before)
            logits = device_logits(terms, 0, seen, options, actions.latent)
            if actions.stay is not None:
                forerunners = jnp.stack([one for one in before if one is not None], axis=1)
                logits = kept(logits, forerunners, actions.stay)
            log_probs = _normalised(options, logits)
        unsure = entropies(log_probs).mean(axis=(0, 1))
        entropy = (unsure * free).sum() / jnp.maximum(free.sum(), 1.0)
        chosen = log_prob_of(log_probs, actions.chosen)
        return NodeLogProbs(ChoiceLogProbs(chosen, free), density), entropy

    def _latent(self, head: HeadInput) -> tuple[Float[Array, "L"], Float[Array, "L"]]:
        """Mean and log standard deviation of the graph-level numbers."""
        if not self.width:
            return jnp.zeros(0), jnp.zeros(0)
        mean, spread = jnp.split(self.latent(head.pooled), 2)
        return mean, jnp.clip(spread, *LOG_SPREAD)

    def _of_levels(
        self, head: HeadInput, options: Float[Array, "U K"], before: Int[Array, "B U"] | None
    ) -> Float[Array, "#B U K"]:
        return _normalised(options, self.score(head, before))

    @staticmethod
    def _seen(
        head: HeadInput, options: Float[Array, "U K"], before: list[Int[Array, "B U"] | None]
    ) -> Float[Array, "#B T U K S"]:
        """Inputs of the iterations whose forerunners chose ``before``."""
        exists = jnp.isfinite(options).any(axis=0)
        known = [x for x in before if x is not None]
        blank = seen_devices(head.graph, None, exists)[:, None]
        if not known:
            return jnp.concatenate([blank] * len(before), axis=1)
        batch = len(known[0])
        seen = seen_devices(head.graph, jnp.concatenate(known), exists)
        seen = jnp.swapaxes(seen.reshape(len(known), batch, *seen.shape[1:]), 0, 1)
        if len(known) == len(before):
            return seen
        return jnp.concatenate([jnp.broadcast_to(blank, (batch, *blank.shape[1:])), seen], axis=1)


def staying(
    logits: Float[Array, "B U K"],
    options: Float[Array, "U K"],
    before: Int[Array, "B U"],
    real: Float[Array, "U"],
    amount: Float[Array, "B"],
) -> Float[Array, "B"]:
    """Return what to add to the logits of where units were, so that as many units leave in
    expectation as `amount` says: sqrt(U) exp(MOVED amount), at most half of those that can.

    The network then says which units move and where to, and a graph-level number how many: a policy
    that learns to leave the best plan as it is would draw the same plan again and again.
    """
    own = jax.nn.one_hot(before, options.shape[1], dtype=jnp.bool_)
    there = jnp.isfinite(options)
    others = jax.nn.logsumexp(jnp.where(there & ~own, logits, NEVER), axis=-1)
    gap = others - jnp.where(own, logits, 0.0).sum(axis=-1)
    free = real * (there.sum(axis=-1) > 1)
    count = jnp.maximum(free.sum(), 2.0)
    wanted = jnp.clip(jnp.sqrt(count) * jnp.exp(MOVED * amount), 1.0, count / 2)
    among = jnp.where(free > 0, gap, 0.0)
    low, high = among.min(axis=1) - REACH, among.max(axis=1) + REACH
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        leaving = (nn.sigmoid(gap - middle[:, None]) * free).sum(axis=1)
        low, high = (
            jnp.where(leaving > wanted, middle, low),
            jnp.where(leaving > wanted, high, middle),
        )
    return jax.lax.stop_gradient((low + high) / 2)


def kept(
    logits: Float[Array, "B *T U K"], before: Int[Array, "B *T U"], stay: Float[Array, "B *T"]
) -> Float[Array, "B *T U K"]:
    """Return logits with ``stay`` added where units were."""
    return logits + stay[..., None, None] * jax.nn.one_hot(before, logits.shape[-1])


def _leads(leader: Int[Array, "U"]) -> Float[Array, "U"]:
    """1 where a unit decides for itself."""
    return (leader == jnp.arange(len(leader))).astype(jnp.float32)


def _normalised(options: Float[Array, "U K"], logits: Float[Array, "*X U K"]) -> Array:
    """Log-probabilities of what is possible."""
    return jax.nn.log_softmax(jnp.where(jnp.isfinite(options), logits, NEVER))
