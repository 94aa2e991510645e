"""Learning the offsets around the prototypes, with rollouts.

On each problem the preferred prototypes are moved by noise, once one way and once the other. What
the best of the first k gains by a move, with all others as they are, summed over ``k``, teaches the
offset (antithetic score function). Encoder and choice stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import PrototypeTrainConfig
from go_rl.policy.learn.descent import descend
from go_rl.policy.learn.prototypes.choice import choice_of, descent_of
from go_rl.policy.learn.prototypes.cover import priced
from go_rl.policy.learn.prototypes.kept import EVERY, Kept
from go_rl.policy.network import Params, Policy
from go_rl.policy.prototypes.decoder import DEVIATION
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.policy.prototypes.policy import PLAN

OFFSET_LAYERS = ("look", "know", "offset")
"""Layers that learn here."""
CLIP = 4.0
"""Largest gain that counts, in the mean size of a problem's gains."""


def gains(
    one: Float64[np.ndarray, "B"], other: Float64[np.ndarray, "B"], best_of: Sequence[int]
) -> Float64[np.ndarray, "B"]:
    """Return [B] what the logarithm of the best of the first k gains where a sample is as in
    ``one`` and not as in ``other``, all others as in ``one``; mean over k.

    Args:
        one: [B] seconds of plans, inf where there is none.
        other: [B] those of the opposite moves.
        best_of: numbers k of samples.
    """
    here, there = _costs(one, other)
    found = np.zeros(len(here))
    for k in best_of:
        for i in range(min(k, len(here))):
            rest = np.delete(here[:k], i).min(initial=np.inf)
            found[i] += min(there[i], rest) - min(here[i], rest)
    return found / len(best_of)


def _costs(*seconds: Float64[np.ndarray, "B"]) -> list[Float64[np.ndarray, "B"]]:
    """Logarithms; of plans that do not exist, one more than the worst that does."""
    finite = np.concatenate([row[np.isfinite(row)] for row in seconds])
    worst = np.log(finite.max(initial=1e-300)) + 1.0
    with np.errstate(divide="ignore"):
        return [np.where(np.isfinite(row), np.log(row), worst) for row in seconds]


def learn_offsets(
    agent: Agent, problems: Sequence[Callable[[], PrototypePlans]],
    share: Float64[np.ndarray, "P"], config: PrototypeTrainConfig, kept: Kept,
    report: Callable[[str, int], None],
) -> Agent:  # fmt: skip
    """Return the agent after ``config.updates``.

    Args:
        agent: whose choice has been learned.
        problems: make the problems.
        share: [P] weights by which they are drawn.
        config: of the run.
        kept: where the stage stands; it goes on from there.
        report: called with a sentence and the updates done.

    Raises:
        TrainingError: a slope is not finite.
        CheckpointError: what is kept is damaged.
    """
    descent = descent_of(config, config.updates)
    now = {"update": 0, "learning": _learning(agent.params)}
    now = kept.load({**now, "state": descent.rule.init(now["learning"])})
    noise = np.zeros(max(config.best_of), np.float32)
    for update in range(now["update"] + 1, config.updates + 1):
        params = _joined(agent.params, now["learning"])
        rng = np.random.default_rng((config.seed, update))
        slopes, sizes = [], []
        for i in rng.choice(len(problems), config.problems, p=share / share.sum()):
            plans, learner = problems[i](), agent.having(params)
            encoded = learner.encode(plans.padded)
            drawn = plans.draw(learner, encoded, PLAN, noise, jax.random.key(0))
            drawn = jax.device_get(drawn[PLAN])
            moved = rng.standard_normal(drawn.deviations.shape).astype(np.float32)
            both = [drawn.deviations + sign * DEVIATION * moved for sign in (1, -1)]
            one, other = np.split(priced(plans, np.concatenate(both)), 2)
            gained = gains(one, other, config.best_of)
            scale = max(float(np.abs(gained).mean()), 1e-9)
            sizes.append(float(np.abs(gained).mean()))
            padded, worth = plans.padded, np.clip(gained / scale, -CLIP, CLIP)
            slopes.append(
                _slope(
                    agent.policy, params, padded.graph, padded.real, jnp.int32(padded.num_devices),
                    jnp.asarray(drawn.prototype), jnp.asarray(worth[:, None] * moved),
                )
            )  # fmt: skip
        now["learning"], now["state"] = descend(descent, now["learning"], now["state"], slopes)
        now["update"] = update
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(now["learning"])):
            raise TrainingError(
                f"offsets: update {update} gave numbers that are not finite; lower the learning "
                f"rate ({config.learning_rate})"
            )
        if update % EVERY == 0:
            kept.save(now)
        moved_by = f"mean gain of a move {np.mean(sizes):.5f}"
        report(f"offsets {update}/{config.updates}: {moved_by}", update)
    return agent.having(_joined(agent.params, now["learning"]))


def _learning(params: Params) -> Params:
    """The parameters that learn here."""
    decoder = params["params"]["decoders_plan"]
    return {name: decoder[name] for name in OFFSET_LAYERS}


def _joined(params: Params, changed: Params) -> Params:
    own = params["params"]
    return {**params, "params": {**own, "decoders_plan": {**own["decoders_plan"], **changed}}}


@partial(jax.jit, static_argnums=0)
def _slope(
    policy: Policy, params: Params, graph: Any, real: Any, chips: Any,
    prototype: Int[Array, "B"], wanted: Float[Array, "B W"],
) -> Params:  # fmt: skip
    """Slope of minus the sum of the means of ``prototype``, along the moves that are wanted."""

    def loss(learning: Params) -> Array:
        mean = choice_of(policy, _joined(params, learning), graph, real, chips).mean
        return -(mean[prototype] * wanted).mean()

    return jax.grad(loss)(_learning(params))
