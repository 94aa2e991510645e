"""Proximal policy optimisation of a policy (Schulman et al. 2017, equation 7).

Every unit's decision in every iteration has its own probability ratio, clipped apart, and so has a
graph-level decision; all share the advantage of the plan they belong to. Ratios of SAMPLE use
log-probabilities renormalised over the devices that were possible; units that others decided have
no part in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import jraph
import optax
from jaxtyping import Array, Float, Int

from go_rl.core import TrainingError
from go_rl.policy.agent import Actions
from go_rl.policy.learn.config import PPOConfig
from go_rl.policy.learn.processes.group import Share, everything
from go_rl.policy.network import Params, Policy


class SampleGroup(NamedTuple):
    """``B`` samples that share their advantages over all that was decided."""

    actions: Actions
    """Actions by decision, as `Policy.judge` takes them."""
    advantage: Float[Array, "B"]


class Batch(NamedTuple):
    """Samples of one graph."""

    graph: jraph.GraphsTuple
    real: Float[Array, "U"]
    num_devices: Int[Array, ""]
    groups: dict[str, SampleGroup]
    """Sample groups by name; see `PlanDecoder.groups`."""


class Metrics(NamedTuple):
    """Metrics of an update; means over its epochs."""

    loss: Float[Array, ""]
    entropy: Float[Array, ""]
    """Mean over the decisions."""
    clipped: Float[Array, ""]
    """Share of ratios outside the clip range."""
    gradient_norm: Float[Array, ""]


class Learner(NamedTuple):
    """Learner state that training changes."""

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
    policy: Policy,
    config: PPOConfig,
    learner: Learner,
    batches: Sequence[Batch],
    share: Share | None = None,
) -> tuple[Learner, Metrics]:
    """Return the learner after `PPOConfig.epochs` gradient steps on the batches of several graphs.

    Args:
        policy: what learns.
        config: how.
        learner: its weights so far; the same in all processes.
        batches: those of this process.
        share: whose they are; None: one process has them all. The gradients of all batches are
            averaged in their order, so that the weights are those of one process.

    Raises:
        TrainingError: a loss or gradient is not finite; the learner is left as it was.
    """
    share = share or everything(len(batches))
    old = [judge(policy, learner.params, batch) for batch in batches]

    def gradients(params: Params) -> list[tuple[Params, Metrics]]:
        cases = list(zip(batches, old, strict=True))
        return share.compute(lambda _: [gradient(policy, config, params, *case) for case in cases])

    metrics: list[Metrics] = []
    for _ in range(config.epochs):
        found = gradients(learner.params)
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


Judged = dict[str, dict[str, tuple[Any, Array]]]
"""Log-densities of a batch's decisions with their entropies, by group and decision."""


@partial(jax.jit, static_argnums=0)
def judge(policy: Policy, params: Params, batch: Batch) -> Judged:
    """Return the log-densities of the decisions; the graph is encoded once for all samples."""
    graph = batch.graph
    encoded = policy.apply(params, graph, batch.real, batch.num_devices, method=Policy.encode)
    return {
        name: {
            decision: cast(
                "tuple[Any, Array]",
                policy.apply(params, encoded, graph, decision, actions, method=Policy.judge),
            )
            for decision, actions in group.actions.items()
        }
        for name, group in batch.groups.items()
    }


def loss(
    policy: Policy, config: PPOConfig, params: Params, batch: Batch, old: Judged
) -> tuple[Float[Array, ""], Metrics]:
    """Return the clipped surrogate, negated, less the entropy bonus."""
    new = judge(policy, params, batch)
    total = jnp.float32(0.0)
    clipped: list[Array] = []
    entropies: list[Array] = []
    for name in batch.groups:
        for decision, (now, entropy) in new[name].items():
            advantage = batch.groups[name].advantage
            before = old[name][decision][0].parts(batch.real)
            for (log_prob, weight), (was, _) in zip(now.parts(batch.real), before, strict=True):
                part, share = surrogate(log_prob - was, advantage, weight, config.clip)
                total, clipped = total - part, [*clipped, share]
            entropies.append(entropy)
    entropy = jnp.stack(entropies).mean()
    total = total - config.entropy * entropy
    return total, Metrics(total, entropy, jnp.stack(clipped).mean(), jnp.float32(0.0))


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
