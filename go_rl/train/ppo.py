"""Proximal policy optimisation over orders and placements (Schulman et al. 2017, equation 7).

Every node's decision has its own probability ratio, clipped apart; all share the advantage of the
sample they belong to. Ratios of SAMPLE use log-probabilities renormalised over the chips that were
possible; nodes that others decided have no part in the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import jraph
import optax
from jaxtyping import Array, Bool, Float, Int

from go_rl.core import TrainingError
from go_rl.policy.decoders.order_decoder import OrderActions, OrderLogProbs
from go_rl.policy.decoders.placement_decoder import PlacementLogProbs
from go_rl.policy.network import Params, Policy
from go_rl.train.config import PPOConfig

B = TypeVar("B")
"""A batch of one graph."""
M = TypeVar("M", bound=Any)
"""Metrics with a loss and a gradient norm, a named tuple."""


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
    rate = config.learning_rate
    if config.decay_updates:
        rate = optax.cosine_decay_schedule(rate, config.decay_updates * config.epochs, alpha=0.1)
    return optax.chain(optax.clip_by_global_norm(config.gradient_norm), optax.adam(rate))


def new_learner(params: Params, config: PPOConfig) -> Learner:
    """Return a learner that has not stepped yet."""
    return Learner(params, transformation(config).init(params))


def update(
    policy: Policy, config: PPOConfig, learner: Learner, batches: Sequence[Batch]
) -> tuple[Learner, Metrics]:
    """Return the learner after `PPOConfig.epochs` gradient steps on the batches of several graphs.

    Raises:
        TrainingError: a gradient is not finite; the learner is left as it was.
    """
    judged = partial(judge, policy)
    return take_epochs(config, learner, batches, judged, partial(gradient, policy, config))


def take_epochs(
    config: PPOConfig,
    learner: Learner,
    batches: Sequence[B],
    judge: Callable[[Params, B], Any],
    gradient: Callable[[Params, B, Any], tuple[Params, M]],
) -> tuple[Learner, M]:
    """Return the learner after the gradient steps of an update, and the means of their metrics.

    Args:
        config: of the update.
        learner: before it.
        batches: one a graph.
        judge: log-probabilities of a batch under some parameters.
        gradient: of the loss on a batch, given the log-probabilities before the update.

    Raises:
        TrainingError: a loss or gradient is not finite; the learner is left as it was.
    """
    old = [judge(learner.params, batch) for batch in batches]
    metrics: list[M] = []
    for _ in range(config.epochs):
        pairs = zip(batches, old, strict=True)
        found = [gradient(learner.params, batch, before) for batch, before in pairs]
        learner, norm = descend(config, learner, [g for g, _ in found])
        metrics += [m._replace(gradient_norm=norm) for _, m in found]
    means = jax.tree.map(lambda *x: jnp.stack(x).mean(), *metrics)
    if not all(bool(jnp.isfinite(x)) for x in means):
        raise TrainingError(
            f"an update gave loss {float(means.loss)} and gradient norm "
            f"{float(means.gradient_norm)}; lower ppo.learning_rate "
            f"({config.learning_rate}), or look for a graph with extreme costs"
        )
    return learner, means


@partial(jax.jit, static_argnums=(0, 1))
def gradient(
    policy: Policy, config: PPOConfig, params: Params, batch: Batch, old: Judged
) -> tuple[Params, Metrics]:
    """Return the gradient of the loss on one batch."""
    return jax.grad(loss, argnums=2, has_aux=True)(policy, config, params, batch, old)


@partial(jax.jit, static_argnums=0)
def descend(
    config: PPOConfig, learner: Learner, gradients: list[Params]
) -> tuple[Learner, Float[Array, ""]]:
    """Return the learner after one step along the mean gradient, and the gradient's norm."""
    mean = jax.tree.map(lambda *g: sum(g) / len(g), *gradients)
    updates, optimizer = transformation(config).update(mean, learner.optimizer, learner.params)
    return Learner(optax.apply_updates(learner.params, updates), optimizer), optax.tree.norm(mean)


class Judged(NamedTuple):
    """Log-probabilities of a batch's decisions."""

    order: OrderLogProbs | None
    order_entropy: Float[Array, ""]
    placement: PlacementLogProbs | None


@partial(jax.jit, static_argnums=0)
def judge(policy: Policy, params: Params, batch: Batch) -> Judged:
    """Return the log-probabilities of the decisions; the graph is encoded once for all samples."""
    encoded = policy.apply(params, batch.graph, batch.real, method=Policy.encode)
    order, entropy, placement = None, jnp.float32(0.0), None
    if batch.order is not None:
        judged = policy.apply(
            params, encoded, batch.graph, batch.order.actions, method=Policy.judge_orders
        )
        order, entropy = cast("tuple[OrderLogProbs, Array]", judged)
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
    return Judged(order, entropy, cast("PlacementLogProbs | None", placement))


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


def _mean(values: Float[Array, "*X"], weight: Float[Array, "*#X"]) -> Float[Array, ""]:
    weight = jnp.broadcast_to(weight, values.shape)
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1.0)
