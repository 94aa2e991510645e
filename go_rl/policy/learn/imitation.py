"""Imitation: a policy learns to decide as searches found best.

The likelihood of the best decisions known of each problem is maximised, as in the cross-entropy
method (Rubinstein 1999), but for all graphs at once, through the network. What teaches are the
finds of searches; see `go_rl.policy.learn.dispatch_teachers` (dispatch: weights of the heads) and
`go_rl.policy.learn.ring_imitation` (rings: chips and orders).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.dispatch.dispatch_decoder import DispatchActions
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.rollout import HeadWeights
from go_rl.policy.learn.config import ImitationConfig
from go_rl.policy.learn.ppo import Batch, SampleGroup, judge
from go_rl.policy.network import Params, Policy

ROUND = 50
"""Updates between two sentences of a report."""


class Lesson(ABC):
    """Abstract: decisions on one problem that are worth imitating."""

    name: str

    @abstractmethod
    def gradient(
        self, policy: Policy, params: Params, offset: int, astray: float
    ) -> tuple[Array, Params]:
        """Return the loss and its gradient; ``offset`` chooses what is looked at, ``astray`` is as
        in `ImitationConfig`."""


@dataclass(frozen=True, eq=False)
class DispatchLesson(Lesson):
    """Weights of a dispatcher's heads that are worth imitating on one problem."""

    name: str
    decoder: DispatchPlans
    weights: HeadWeights
    """[K] of the heads, the best first."""

    def gradient(
        self, policy: Policy, params: Params, offset: int, astray: float
    ) -> tuple[Array, Params]:
        """Return the loss and its gradient: the unlikelihood of the lesson's batch."""
        return unlikelihood(policy, params, _batch(self))


def imitate(
    agent: Agent,
    lessons: Sequence[Lesson],
    config: ImitationConfig,
    seed: int,
    report: Callable[[str], None] = lambda sentence: None,
) -> tuple[Agent, Float[np.ndarray, "updates"]]:
    """Return the agent after imitating, and the negative log-density of weights by update.

    Args:
        agent: ring or dispatch policy.
        lessons: what to imitate.
        config: gradient steps, lessons in each of them, and the learner.
        seed: chooses lessons.
        report: called with a sentence now and then.

    Raises:
        TrainingError: there is nothing to imitate, or a loss is not finite.
    """
    if not lessons:
        raise TrainingError("imitation: no problem has weights to imitate")
    rng, params = np.random.default_rng(seed), agent.params
    rule = _rule(config)
    state = rule.init(params)
    losses: list[float] = []
    for update in range(config.updates):
        chosen = rng.integers(len(lessons), size=config.problems)
        offsets = [int(rng.integers(1 << 30)) for _ in chosen]
        found = [
            lessons[i].gradient(agent.policy, params, offset, config.astray)
            for i, offset in zip(chosen, offsets, strict=True)
        ]
        params, state = _descend(config, params, state, [gradient for _, gradient in found])
        losses.append(float(np.mean([float(loss) for loss, _ in found])))
        if not np.isfinite(losses[-1]):
            names = ", ".join(lessons[i].name for i in chosen)
            raise TrainingError(
                f"imitation: update {update} on {names} gave loss {losses[-1]}; lower the "
                f"learning rate ({config.learning_rate})"
            )
        if (update + 1) % ROUND == 0:
            report(f"imitation {update + 1}/{config.updates}: loss {np.mean(losses[-ROUND:]):.4f}")
    return agent.having(params), np.array(losses)


def _rule(config: ImitationConfig) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(config.learning_rate, config.updates, alpha=0.1)
    adam = optax.adamw(rate, weight_decay=config.weight_decay, mask=_matrices)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


def _matrices(params: Params) -> Any:
    """Parameters that decay: matrices; not the weights and biases that an untrained list scheduler
    has."""
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


@partial(jax.jit, static_argnums=0)
def _descend(
    config: ImitationConfig, params: Params, state: Any, gradients: list[Params]
) -> tuple[Params, Any]:
    """One step along the mean gradient."""
    mean = jax.tree.map(lambda *g: sum(g) / len(g), *gradients)
    change, state = _rule(config).update(mean, state, params)
    return optax.apply_updates(params, change), state


def _batch(lesson: DispatchLesson) -> Batch:
    padded = lesson.decoder.padded
    select, place = (DispatchActions(jnp.asarray(rows)) for rows in lesson.weights)
    worth = jnp.ones(len(lesson.weights.select))
    group = SampleGroup({"schedule": select, "placement": place}, worth)
    real = jnp.asarray(padded.real)
    return Batch(padded.graph, real, jnp.int32(padded.num_devices), {"plan": group})


@partial(jax.jit, static_argnums=0)
def unlikelihood(policy: Policy, params: Params, batch: Batch) -> tuple[Float[Array, ""], Params]:
    """Return the negative log-density of weights, means over those of each head, summed over heads;
    and its gradient."""

    def loss(params: Params) -> Float[Array, ""]:
        total = jnp.float32(0.0)
        for judged in judge(policy, params, batch).values():
            for log_probs, _ in judged.values():
                for density, weight in log_probs.parts(batch.real):
                    total -= (density * weight).sum() / jnp.maximum(weight.sum(), 1.0)
        return total

    return jax.value_and_grad(loss)(params)
