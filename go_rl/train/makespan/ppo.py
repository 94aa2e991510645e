"""Proximal policy optimisation of a step policy; all tasks share the advantage of their plan.

Each unit and iteration of a task has a ratio, clipped apart, as in `go_rl.train.ppo`; in the form
``orders``, the graph-level decision has one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float

from go_rl.policy.makespan.agent import StepActions
from go_rl.policy.makespan.network import StepPolicy
from go_rl.policy.network import Params
from go_rl.train.config import PPOConfig
from go_rl.train.ppo import Learner, surrogate, take_epochs


class StepBatch(NamedTuple):
    """``B`` plans of one graph and what they earned."""

    graph: jraph.GraphsTuple
    real: Float[Array, "U"]
    actions: StepActions
    advantage: Float[Array, "B"]


class StepMetrics(NamedTuple):
    """What an update did; means over its epochs."""

    loss: Float[Array, ""]
    entropy: Float[Array, ""]
    clipped: Float[Array, ""]
    gradient_norm: Float[Array, ""]


class StepJudged(NamedTuple):
    """Log-densities by task (`OrderLogProbs` or `NodeLogProbs`), and the mean entropy."""

    tasks: dict[str, Any]
    entropy: Float[Array, ""]


def update_step(
    policy: StepPolicy, config: PPOConfig, learner: Learner, batches: Sequence[StepBatch]
) -> tuple[Learner, StepMetrics]:
    """Return the learner after `PPOConfig.epochs` gradient steps on the batches of several graphs.

    Raises:
        TrainingError: a loss or gradient is not finite; the learner is left as it was.
    """
    judge = partial(judge_step, policy)
    return take_epochs(config, learner, batches, judge, partial(step_gradient, policy, config))


@partial(jax.jit, static_argnums=0)
def judge_step(policy: StepPolicy, params: Params, batch: StepBatch) -> StepJudged:
    """Return the log-densities of the decisions; the graph is encoded once for all samples."""
    encoded = policy.apply(params, batch.graph, batch.real, method=StepPolicy.encode)
    judged = {
        task: cast(
            "tuple[Any, Array]",
            policy.apply(params, encoded, batch.graph, task, actions, method=StepPolicy.judge),
        )
        for task, actions in batch.actions.items()
    }
    entropy = jnp.stack([entropy for _, entropy in judged.values()]).mean()
    return StepJudged({task: found for task, (found, _) in judged.items()}, entropy)


@partial(jax.jit, static_argnums=(0, 1))
def step_gradient(
    policy: StepPolicy, config: PPOConfig, params: Params, batch: StepBatch, old: StepJudged
) -> tuple[Params, StepMetrics]:
    """Return the gradient of the loss on one batch."""
    return jax.grad(step_loss, argnums=2, has_aux=True)(policy, config, params, batch, old)


def step_loss(
    policy: StepPolicy, config: PPOConfig, params: Params, batch: StepBatch, old: StepJudged
) -> tuple[Float[Array, ""], StepMetrics]:
    """Return the clipped surrogate, negated, less the entropy bonus."""
    new = judge_step(policy, params, batch)
    total, clipped = jnp.float32(0.0), []
    for task, now in new.tasks.items():
        before = old.tasks[task].parts(batch.real)
        for (log_prob, weight), (was, _) in zip(now.parts(batch.real), before, strict=True):
            part, share = surrogate(log_prob - was, batch.advantage, weight, config.clip)
            total, clipped = total - part, [*clipped, share]
    total = total - config.order_entropy * new.entropy
    share = jnp.stack(clipped).mean()
    return total, StepMetrics(total, new.entropy, share, jnp.float32(0.0))
