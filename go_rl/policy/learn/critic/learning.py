"""A critic learns from searches which graph-level decisions of a policy are worth pricing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32

from go_rl.core import TrainingError
from go_rl.envs.rewards import ROOT
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import CriticConfig
from go_rl.policy.learn.critic.searches import Search
from go_rl.policy.network import Policy

INVALID_SCORE = 3.0
"""Score of a plan that cannot run."""
LEAST_DEVIATION = 1e-3
"""Problems whose decisions differ by less, in the log of seconds, teach nothing."""
JITTER = 0.1
"""Noise on what is known of a graph, in standard deviations: unseen graphs are not quite like it.
"""
CRITIC = "critic"
"""Name of the critic's parameters among the policy's."""


@dataclass(frozen=True, eq=False)
class Experience:
    """One problem."""

    known: Float32[np.ndarray, "K"]
    """[K] see `known_of`."""
    mixes: dict[str, Float32[np.ndarray, "S _"]]
    """[S, G] graph-level decisions of every decision."""
    score: Float32[np.ndarray, "S"]
    """[S] standardised; see `go_rl.policy.critic`."""


class Group(NamedTuple):
    """``P`` problems with the same decisions."""

    known: Float[Array, "P K"]
    mixes: dict[str, Float[Array, "P S _"]]
    score: Float[Array, "P S"]


def experience(known: Float32[np.ndarray, "K"], search: Search) -> Experience | None:
    """Return what a search found on a problem; None: all plans are equally good, or none runs."""
    runs = search.reward > ROOT.failure
    log_seconds = 2.0 * np.log(np.where(runs, -search.reward, 1.0))  # reward: -sqrt(seconds / base)
    deviation = float(log_seconds[runs].std()) if runs.any() else 0.0
    if deviation < LEAST_DEVIATION:
        return None
    score = (log_seconds - log_seconds[runs].mean()) / deviation
    score = np.where(runs, np.minimum(score, INVALID_SCORE), INVALID_SCORE)
    return Experience(known, search.mixes, score.astype(np.float32))


def with_critic(
    agent: Agent, experiences: Sequence[Experience], config: CriticConfig, seed: int
) -> tuple[Agent, Float32[np.ndarray, "steps"]]:
    """Return the agent with a critic that learned from all problems, and its loss at every step.

    Args:
        agent: whose critic is replaced.
        experiences: at least one.
        config: how it learns.
        seed: of batches.

    Raises:
        TrainingError: the loss is not finite.
    """
    groups = _groups(experiences)
    known = np.stack([each.known for each in experiences])
    params = dict(agent.params["params"])
    fresh = {
        **params[CRITIC],
        "mean": jnp.asarray(known.mean(0)),
        "deviation": jnp.asarray(known.std(0) + 1e-3),
    }
    key = jax.random.key(seed)
    learned, losses = _learn(agent.policy, config, params | {CRITIC: fresh}, groups, key)
    if not bool(jnp.isfinite(losses[-1])):
        raise TrainingError(
            f"critic: its loss became {float(losses[-1])}; lower critic.learning_rate "
            f"({config.learning_rate})"
        )
    return agent.having({**agent.params, "params": learned}), np.asarray(losses)


def _groups(experiences: Sequence[Experience]) -> list[Group]:
    alike: dict[tuple[str, ...], list[Experience]] = {}
    for each in experiences:
        alike.setdefault(tuple(each.mixes), []).append(each)
    return [
        Group(
            jnp.stack([e.known for e in same]),
            {name: jnp.stack([e.mixes[name] for e in same]) for name in names},
            jnp.stack([e.score for e in same]),
        )
        for names, same in alike.items()
    ]


@partial(jax.jit, static_argnums=(0, 1))
def _learn(
    policy: Policy,
    config: CriticConfig,
    params: dict[str, Any],
    groups: list[Group],
    key: Array,
) -> tuple[dict[str, Any], Float[Array, "steps"]]:
    rate = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    rule = optax.adamw(rate, weight_decay=config.weight_decay)
    deviation = params[CRITIC]["deviation"]
    count = sum(len(group.known) for group in groups)

    def batch(group: Group, key: Array) -> Group:
        which, row, noise = jax.random.split(key, 3)
        problem = jax.random.randint(which, (config.problems, 1), 0, len(group.known))
        rows = (config.problems, config.decisions)
        row = jax.random.randint(row, rows, 0, group.score.shape[1])
        blur = JITTER * deviation * jax.random.normal(noise, (config.problems, len(deviation)))
        mixes = {name: mix[problem, row] for name, mix in group.mixes.items()}
        return Group(group.known[problem[:, 0]] + blur, mixes, group.score[problem, row])

    def loss(members: Any, batches: list[Group]) -> Float[Array, ""]:
        now = {"params": params | {CRITIC: params[CRITIC] | {"members": members}}}
        criticise = partial(policy.apply, now, method=Policy.criticise)
        total = jnp.float32(0.0)
        for group, drawn in zip(groups, batches, strict=True):
            scores: Any = jax.vmap(criticise)(drawn.known, drawn.mixes)  # [P, M, R]
            error = jnp.square(scores - drawn.score[:, None])
            total += len(group.known) / count * error.mean()
        return total

    def step(carry: Any, key: Array) -> tuple[Any, Array]:
        members, state = carry
        keys = jax.random.split(key, len(groups))
        batches = [batch(group, one) for group, one in zip(groups, keys, strict=True)]
        value, gradient = jax.value_and_grad(loss)(members, batches)
        change, state = rule.update(gradient, state, members)
        return (optax.apply_updates(members, change), state), value

    members = params[CRITIC]["members"]
    keys = jax.random.split(key, config.steps)
    (members, _), losses = jax.lax.scan(step, (members, rule.init(members)), keys)
    return params | {CRITIC: params[CRITIC] | {"members": members}}, losses
