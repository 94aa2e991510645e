"""Imitation: a step policy learns the decisions that searches found (`go_rl.train.elites`).

Maximum likelihood of each problem's best decisions, weighted by how near they come to the very
best; PPO then goes on from there.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from go_rl.policy.buckets import Padded
from go_rl.policy.network import Params
from go_rl.policy.step_agent import StepActions
from go_rl.policy.step_network import StepPolicy
from go_rl.train.config import EliteConfig
from go_rl.train.elites import Elites
from go_rl.train.step_ppo import StepBatch, judge_step

NEAR = 0.1
"""Rewards this much below the best count 1 / e of it."""


class Imitator(NamedTuple):
    """What imitation changes."""

    params: Params
    optimizer: Any


def transformation(config: EliteConfig, steps: int) -> optax.GradientTransformation:
    """Return the optimizer's rule for ``steps`` steps."""
    rate = optax.cosine_decay_schedule(config.learning_rate, max(steps, 1), alpha=0.05)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))


def lesson(padded: Padded, elites: Elites) -> StepBatch:
    """Return a problem's decisions with weights that sum to 1 in place of advantages."""
    weight = np.exp((elites.reward - elites.reward.max()) / NEAR)
    weight = jnp.asarray((weight / weight.sum()).astype(np.float32))
    actions: StepActions = jax.tree.map(jnp.asarray, elites.actions)
    return StepBatch(padded.graph, jnp.asarray(padded.real), actions, weight)


@partial(jax.jit, static_argnums=(0, 1, 2))
def imitate(
    policy: StepPolicy, config: EliteConfig, steps: int, imitator: Imitator, batch: StepBatch
) -> tuple[Imitator, Float[Array, ""]]:
    """Return the imitator after one step on one problem, and the loss before it."""
    loss, gradient = jax.value_and_grad(likelihood_loss, argnums=1)(policy, imitator.params, batch)
    change, state = transformation(config, steps).update(gradient, imitator.optimizer)
    return Imitator(optax.apply_updates(imitator.params, change), state), loss


def likelihood_loss(policy: StepPolicy, params: Params, batch: StepBatch) -> Float[Array, ""]:
    """Return minus the mean log-density of the graph-level decisions, a number of theirs on
    average. Node-level scores are not imitated: with each draw they vary by chance only."""
    judged = judge_step(policy, params, batch)
    loss = jnp.float32(0.0)
    for found in judged.tasks.values():
        loss -= (batch.advantage * found.mix.mean(-1)).sum()
    return loss / len(judged.tasks)
