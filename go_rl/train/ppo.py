"""Proximal policy optimisation over orders and placements (Schulman et al. 2017, equation 7).

Every node's decision has its own probability ratio, clipped apart; all share the advantage of the
sample they belong to. Ratios of SAMPLE use log-probabilities renormalised over the chips that were
possible; nodes that others decided have no part in the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import optax
from jaxtyping import Array, Bool, Float, Int

from go_rl.core import TrainingError
from go_rl.policy.network import Params, Policy
from go_rl.policy.order_decoder import OrderActions, OrderLogProbs
from go_rl.policy.placement_decoder import PlacementLogProbs


@dataclass(frozen=True)
class PPOConfig:
    """One update."""

    learning_rate: float = 1e-3
    """Adam's step."""
    epochs: int = 3
    """Gradient steps on one batch of samples."""
    clip: float = 0.2
    """Ratios beyond 1 +- clip earn nothing more."""
    order_entropy: float = 1e-3
    """Weight of the order's entropy."""
    placement_entropy: float = 1e-3
    """Weight of the placement's entropy."""
    gradient_norm: float = 1.0
    """Largest norm of a gradient."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "clip", "gradient_norm"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"ppo: {name} must be > 0, not {getattr(self, name)}")
        for name in ("order_entropy", "placement_entropy"):
            if not getattr(self, name) >= 0:
                raise TrainingError(f"ppo: {name} must be >= 0, not {getattr(self, name)}")
        if self.epochs < 1:
            raise TrainingError(f"ppo: epochs must be >= 1, not {self.epochs}")


class OrderBatch(NamedTuple):
    """``B`` orders and what they earned."""

    actions: OrderActions
    advantage: Float[Array, "B"]


class PlacementBatch(NamedTuple):
    """``B`` placements and what they earned."""

    place: Float[Array, "U"]
    """Where the order task put the nodes when the samples were drawn."""
    chosen: Int[Array, "B T U"]
    possible: Bool[Array, "B U K"]
    """All true under FIX, which credits the proposal."""
    advantage: Float[Array, "B"]


class Batch(NamedTuple):
    """Samples of one graph; a task that was not sampled is None."""

    graph: jraph.GraphsTuple
    real: Float[Array, "U"]
    chips: Int[Array, ""]
    order: OrderBatch | None
    placement: PlacementBatch | None


class Metrics(NamedTuple):
    """What an update did; means over its epochs."""

    loss: Float[Array, ""]
    order_entropy: Float[Array, ""]
    placement_entropy: Float[Array, ""]
    clipped: Float[Array, ""]
    """Share of ratios outside the clip range."""
    gradient_norm: Float[Array, ""]


class Learner(NamedTuple):
    """What training changes."""

    params: Params
    optimizer: Any
    """State of Adam."""


def transformation(config: PPOConfig) -> optax.GradientTransformation:
    """Return the optimizer's rule."""
    return optax.chain(
        optax.clip_by_global_norm(config.gradient_norm), optax.adam(config.learning_rate)
    )


def new_learner(params: Params, config: PPOConfig) -> Learner:
    """Return a learner that has not stepped yet."""
    return Learner(params, transformation(config).init(params))


@partial(jax.jit, static_argnums=(0, 1))
def update(
    policy: Policy, config: PPOConfig, learner: Learner, batch: Batch
) -> tuple[Learner, Metrics]:
    """Return the learner after `PPOConfig.epochs` gradient steps on one batch."""
    rule = transformation(config)
    old = jax.tree.map(jax.lax.stop_gradient, judge(policy, learner.params, batch))

    def step(state: Learner, _: None) -> tuple[Learner, Metrics]:
        (_, metrics), gradient = jax.value_and_grad(loss, argnums=2, has_aux=True)(
            policy, config, state.params, batch, old
        )
        updates, optimizer = rule.update(gradient, state.optimizer, state.params)
        metrics = metrics._replace(gradient_norm=optax.global_norm(gradient))
        params = optax.apply_updates(state.params, updates)
        return Learner(params, optimizer), metrics

    learner, metrics = jax.lax.scan(step, learner, None, length=config.epochs)
    return learner, jax.tree.map(jnp.mean, metrics)


class Judged(NamedTuple):
    """Log-probabilities of a batch's decisions."""

    order: OrderLogProbs | None
    order_entropy: Float[Array, ""]
    placement: PlacementLogProbs | None


def judge(policy: Policy, params: Params, batch: Batch) -> Judged:
    """Return the log-probabilities of the decisions; the graph is encoded once for all samples."""
    encoded = policy.apply(params, batch.graph, batch.real, method=Policy.encode)
    order, entropy, placement = None, jnp.float32(0.0), None
    if batch.order is not None:
        order, entropy = policy.apply(
            params, encoded, batch.graph, batch.order.actions, method=Policy.judge_orders
        )
    if batch.placement is not None:
        placement = policy.apply(
            params,
            encoded,
            batch.graph,
            batch.chips,
            batch.placement.place,
            batch.placement.chosen,
            batch.placement.possible,
            method=Policy.judge_placements,
        )
    return Judged(order, entropy, placement)


def loss(
    policy: Policy, config: PPOConfig, params: Params, batch: Batch, old: Judged
) -> tuple[Float[Array, ""], Metrics]:
    """Return the clipped surrogate, negated, less the entropy bonus."""
    new = judge(policy, params, batch)
    total, clipped = jnp.float32(0.0), []
    order_entropy = placement_entropy = jnp.float32(0.0)
    if batch.order is not None:
        assert new.order is not None
        assert old.order is not None
        gain = batch.order.advantage
        mix = new.order.mix.sum(-1) - old.order.mix.sum(-1)
        nodes = new.order.scores - old.order.scores
        everywhere = jnp.broadcast_to(batch.real, nodes.shape)
        for log_ratio, weight in ((mix, jnp.ones_like(mix)), (nodes, everywhere)):
            part, share = surrogate(log_ratio, gain, weight, config.clip)
            total, clipped = total - part, [*clipped, share]
        order_entropy = new.order_entropy
    if batch.placement is not None:
        assert new.placement is not None
        assert old.placement is not None
        log_ratio = new.placement.chosen - old.placement.chosen
        free = (batch.placement.possible.sum(-1) > 1) * batch.real
        weight = jnp.broadcast_to(batch.real, log_ratio.shape).at[:, -1].set(free)
        part, share = surrogate(log_ratio, batch.placement.advantage, weight, config.clip)
        total, clipped = total - part, [*clipped, share]
        placement_entropy = _mean(new.placement.entropy, batch.real)
    total = total - config.order_entropy * order_entropy
    total = total - config.placement_entropy * placement_entropy
    share = jnp.stack(clipped).mean()
    return total, Metrics(total, order_entropy, placement_entropy, share, jnp.float32(0.0))


def surrogate(
    log_ratio: Float[Array, "B *X"],
    advantage: Float[Array, "B"],
    weight: Float[Array, "B *X"],
    clip: float,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the weighted mean of min(r A, clip(r) A), and the share of clipped ratios."""
    ratio = jnp.exp(jnp.clip(log_ratio, -20.0, 20.0))
    gain = advantage.reshape(-1, *(1,) * (ratio.ndim - 1))
    lowest = jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - clip, 1 + clip) * gain)
    outside = (jnp.abs(ratio - 1.0) > clip).astype(jnp.float32)
    return _mean(lowest, weight), _mean(outside, weight)


def _mean(values: Float[Array, "*X"], weight: Float[Array, "*X"]) -> Float[Array, ""]:
    weight = jnp.broadcast_to(weight, values.shape)
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1.0)
