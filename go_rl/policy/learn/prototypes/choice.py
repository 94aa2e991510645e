"""Learning to choose among prototypes from their known results: no rollouts, thousands of updates.

The first updates (`PrototypeTrainConfig.listwise`) learn which prototypes are good at all:
preferences are to be a soft minimum of the regrets (listwise cross-entropy). Then for each ``k``
the expected regret of the best of the first k samples is lowered, by the score function over the
order in which prototypes are drawn; the mean of the other orders of the same problem is the
baseline (Kool, van Hoof, Welling 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import PrototypeTrainConfig
from go_rl.policy.learn.descent import Descent, descend
from go_rl.policy.learn.prototypes.kept import EVERY, Kept
from go_rl.policy.network import Params, Policy
from go_rl.policy.observations.buckets import Padded
from go_rl.policy.prototypes.decoder import Choice
from go_rl.policy.prototypes.policy import PrototypePolicy

ORDERS = 32
"""Orders drawn of each problem in an update."""
VALIDATIONS = 20
"""Times that the weights are judged on the problems that are held out."""
SOFTNESS = 0.05
"""Regret that makes a prototype e times less wanted."""


@dataclass(frozen=True, eq=False)
class Example:
    """A problem whose prototypes have been priced."""

    padded: Padded
    regret: Float[np.ndarray, "K"]
    """[K] see `regrets`."""
    share: float
    """Weight of the problem; 1 together."""


def having_prototypes(agent: Agent, prototypes: Float[np.ndarray, "K W"]) -> Agent:
    """Return the agent with these prototypes; before training all are preferred alike, and come in
    their own order."""
    params = jax.tree.map(jnp.asarray, agent.params)
    decoder = params["params"]["decoders_plan"]
    decoder["prototypes"] = jnp.asarray(prototypes, jnp.float32)
    return agent.having(params)


def learn_choice(
    agent: Agent, examples: Sequence[Example], held_out: Sequence[Example],
    config: PrototypeTrainConfig, kept: Kept, report: Callable[[str], None],
) -> tuple[Agent, list[tuple[int, float]]]:  # fmt: skip
    """Return the agent with the best choice on ``held_out``, and (updates, regret) of the
    judgements: the mean over ``k`` of the regret of the k preferred. The stage goes on from what is
    ``kept``.

    Raises:
        TrainingError: a loss is not finite.
        CheckpointError: what is kept is damaged.
    """
    descent = descent_of(config, config.choices)
    now = {
        "update": 0, "params": agent.params, "state": descent.rule.init(agent.params),
        "best": agent.params, "curve": np.full((VALIDATIONS + 2, 2), np.nan), "judged": 0,
    }  # fmt: skip
    now = kept.load(now)
    share = np.array([one.share for one in examples])
    every = max(1, -(-config.choices // VALIDATIONS))

    def judge(update: int) -> None:
        score = judged(agent.having(now["params"]), held_out, config.best_of)
        if not now["judged"] or score < np.nanmin(now["curve"][:, 1]):
            now["best"] = now["params"]
        now["curve"] = np.array(now["curve"])
        now["curve"][now["judged"]] = update, score
        now["judged"] += 1
        report(f"choice {update}/{config.choices}: regret {score:.4f} of problems held out")

    if not now["update"]:
        judge(0)
    for update in range(now["update"] + 1, config.choices + 1):
        rng, params = np.random.default_rng((config.seed, update)), now["params"]
        chosen = rng.choice(len(examples), config.problems, p=share / share.sum())
        key = jax.random.key(int(rng.integers(1 << 31)))
        best_of = () if update <= config.listwise * config.choices else config.best_of
        found = [
            _slope(agent.policy, best_of, params, *_arrays(examples[i]), one)
            for i, one in zip(chosen, jax.random.split(key, len(chosen)), strict=True)
        ]
        slopes = [slope for _, slope in found]
        now["params"], now["state"] = descend(descent, params, now["state"], slopes)
        now["update"] = update
        if not all(np.isfinite(float(loss)) for loss, _ in found):
            raise TrainingError(
                f"choice: update {update} gave a loss that is not finite; lower the learning rate "
                f"({config.learning_rate})"
            )
        if update % every == 0 or update == config.choices:
            judge(update)
        if update % EVERY == 0:
            kept.save(now)
    curve = [(int(at), float(score)) for at, score in now["curve"][: now["judged"]]]
    return agent.having(now["best"]), curve


def judged(agent: Agent, examples: Sequence[Example], best_of: tuple[int, ...]) -> float:
    """Return the mean regret of the best of the k preferred prototypes, mean over ``best_of``."""
    total = sum(
        example.share * np.mean([preferred(agent, example)[:k].min() for k in best_of])
        for example in examples
    )
    return float(total / max(sum(example.share for example in examples), 1e-300))


def preferred(agent: Agent, example: Example) -> Float[np.ndarray, "K"]:
    """Return [K] regrets in the order of preference."""
    padded = example.padded
    odds = _odds(
        agent.policy, agent.params, padded.graph, padded.real, jnp.int32(padded.num_devices)
    )
    return example.regret[np.argsort(-np.asarray(odds), kind="stable")]


def choice_of(policy: Policy, params: Params, graph: Any, real: Any, chips: Any) -> Choice:
    """Return the distribution of a graph."""
    encoded = policy.apply(params, graph, real, chips, method="encode")
    return cast(Choice, policy.apply(params, encoded, method=PrototypePolicy.choice))


@partial(jax.jit, static_argnums=0)
def _odds(policy: Policy, params: Params, graph: Any, real: Any, chips: Any) -> Float[Array, "K"]:
    return choice_of(policy, params, graph, real, chips).preference


def descent_of(config: PrototypeTrainConfig, updates: int) -> Descent:
    """Return how the parameters of a stage move."""
    return Descent(config.learning_rate, updates, config.weight_decay)


def _arrays(example: Example) -> tuple[jraph.GraphsTuple, Any, Any, Any]:
    padded = example.padded
    return padded.graph, padded.real, jnp.int32(padded.num_devices), jnp.asarray(example.regret)


@partial(jax.jit, static_argnums=(0, 1))
def _slope(
    policy: Policy, best_of: tuple[int, ...], params: Params, graph: Any, real: Any, chips: Any,
    regret: Float[Array, "K"], key: Array,
) -> tuple[Float[Array, ""], Params]:  # fmt: skip
    """Regret of one problem, the mean over ``best_of``, and the slope of its expectation; without
    ``best_of`` the listwise loss and its slope."""

    def loss(params: Params) -> tuple[Array, Array]:
        odds = choice_of(policy, params, graph, real, chips).preference
        if best_of:
            return expected_best(odds, regret, best_of, key)
        value = -(jax.nn.softmax(-regret / SOFTNESS) * jax.nn.log_softmax(odds)).sum()
        return value, value

    slope, value = jax.grad(loss, has_aux=True)(params)
    return value, slope


def expected_best(
    odds: Float[Array, "K"], regret: Float[Array, "K"], best_of: tuple[int, ...], key: Array
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return a loss whose slope is that of the expected regret of the best of k, and the regret."""
    gumbel = jax.random.gumbel(key, (ORDERS, odds.shape[0]))
    order = jnp.argsort(-(odds + gumbel), axis=1)
    drawn = odds[order]
    left = jax.lax.cumlogsumexp(drawn, axis=1, reverse=True)
    log_prob = jnp.cumsum(drawn - left, axis=1)
    best = jax.lax.cummin(regret[order], axis=1)
    total, value = jnp.float32(0.0), jnp.float32(0.0)
    for k in best_of:
        found = best[:, k - 1]
        others = (found.sum() - found) / (ORDERS - 1)
        total += ((found - others) * log_prob[:, k - 1]).mean()
        value += found.mean()
    return total / len(best_of), value / len(best_of)
