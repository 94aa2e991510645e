"""`RingLesson`: what a policy of rings learns from the best cuts known of one problem; `imitate`: a
policy learns to decide as searches found best.

The likelihood of the best decisions known of each problem is maximised, as in the cross-entropy
method (Rubinstein 1999), but for all graphs at once, through the network. Three losses, each a
mean: the chips of the plan are likely under the placement head, smoothed by about a chip; the
likeliest order puts units of earlier chips first, pair by pair; and the graph-level decisions whose
orders were cut best are likely (expert iteration).

Dimension letters: ``U`` padded units, ``K`` chips, ``M`` graph-level decisions of ``G`` numbers,
``P`` pairs of units, ``T`` iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Array, Float, Int, Int16

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.learn.config import ImitationConfig
from go_rl.policy.learn.descent import Descent, descend
from go_rl.policy.network import Params, Policy
from go_rl.policy.ring.order_decoder import OrderActions
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import RingPolicy

ROUND = 50
"""Updates between two sentences of a report."""
PAIRS = 1024
"""Pairs of units that a gradient compares."""
BLUR = 0.6
"""Standard deviation of the chips that are imitated, in chips."""
STEP = 0.25
"""Difference of scores that counts as clear, in places of a mean chip."""
MIX_WEIGHT = 0.1
"""Weight of the graph-level decisions against the other losses."""


class RingTarget(NamedTuple):
    """Target that one gradient imitates."""

    chip: Int[Array, "U"]
    """[U] chips of the plan."""
    seen: Int[Array, "U"]
    """[U] chips that every iteration but the first sees: the plan's, some of them astray."""
    mixes: Float[Array, "M G"]
    """[M, G] graph-level decisions."""
    taught: Float[Array, ""]
    """1 where these made a difference, else 0."""
    pairs: Int[Array, "P 2"]
    """[P, 2] units, the first on a lower chip; equal ones count for nothing."""


@dataclass(frozen=True, eq=False)
class RingLesson:
    """The best cuts known of one problem."""

    name: str
    decoder: RingPlans
    chip: Int16[np.ndarray, "U"]
    """[U] chip of each unit."""
    mixes: Float[np.ndarray, "M G"]
    """[M, G] graph-level decisions whose orders were cut best."""
    taught: bool
    """Whether other decisions were worse."""

    def gradient(
        self, policy: Policy, params: Params, offset: int, astray: float
    ) -> tuple[Array, Params]:
        """Return the loss of imitation and its gradient; ``offset`` chooses what is looked at,
        ``astray`` is as in `ImitationConfig`."""
        padded = self.decoder.padded
        target = self._target(np.random.default_rng(offset), astray)
        real, chips = jnp.asarray(padded.real), jnp.int32(padded.num_devices)
        return ring_unlikelihood(policy, params, padded.graph, real, chips, target)

    def _target(self, rng: np.random.Generator, astray: float) -> RingTarget:
        units, rows = len(self.chip), len(self.decoder.padded.real)
        chip = np.zeros(rows, np.int32)
        chip[:units] = self.chip
        lost = rng.random(rows) < astray
        seen = np.where(lost, chip + rng.integers(-2, 3, rows), chip)
        seen = np.clip(seen, 0, self.decoder.padded.num_devices - 1).astype(np.int32)
        pairs = _pairs(self.chip, rng)
        taught = np.float32(self.taught)
        return RingTarget(chip, seen, self.mixes.astype(np.float32), taught, pairs)  # type: ignore[arg-type]


def _pairs(chip: Int16[np.ndarray, "U"], rng: np.random.Generator) -> Int[np.ndarray, "P 2"]:
    """Pairs of units: half of them anywhere, half on chips at most two apart."""
    by_chip = np.argsort(chip, kind="stable")
    one = rng.integers(len(chip), size=PAIRS)
    reach = max(2 * len(chip) // (int(chip.max()) + 1), 1)
    step = rng.integers(1, reach + 1, size=PAIRS)
    near = np.minimum(one + step, len(chip) - 1)
    other = np.where(np.arange(PAIRS) % 2 == 0, near, rng.integers(len(chip), size=PAIRS))
    pair = np.stack([by_chip[np.minimum(one, other)], by_chip[np.maximum(one, other)]], axis=1)
    same = chip[pair[:, 0]] == chip[pair[:, 1]]
    pair[same] = 0
    return pair.astype(np.int32)


@partial(jax.jit, static_argnums=0)
def ring_unlikelihood(
    policy: RingPolicy,
    params: Params,
    graph: jraph.GraphsTuple,
    real: Float[Array, "U"],
    chips: Int[Array, ""],
    target: RingTarget,
) -> tuple[Array, Params]:
    """Return the sum of the three losses and its gradient."""

    def loss(params: Params) -> Array:
        encoded = policy.apply(params, graph, real, chips, method=Policy.encode)
        likeliest = cast(
            "OrderActions",
            policy.apply(
                params, encoded, graph, "order", jax.random.key(0), jnp.zeros(1),
                method=RingPolicy.draw,
            ),
        )  # fmt: skip
        seen = jnp.broadcast_to(target.seen, (policy.config.iterations, len(real)))
        log_probs = policy.apply(
            params, encoded, graph, seen[None], method=RingPolicy.chip_log_probs
        )
        mix = policy.apply(params, encoded, target.mixes, method=RingPolicy.mix_log_prob)
        total = _unlike_chips(cast("Array", log_probs)[0], target.chip, chips, real)
        total += _disorder(likeliest.scores[0], target.pairs, chips)
        return total - MIX_WEIGHT * target.taught * cast("Array", mix).mean()

    return jax.value_and_grad(loss)(params)


def _unlike_chips(
    log_probs: Float[Array, "T U K"], chip: Int[Array, "U"], chips: Int[Array, ""], real: Array
) -> Array:
    """Cross-entropy of a chip, between a bell around the plan's and the distribution."""
    every = jnp.arange(MAX_CHIPS)
    bell = jnp.exp(-0.5 * jnp.square((every - chip[:, None]) / BLUR)) * (every < chips)
    bell = bell / bell.sum(-1, keepdims=True)
    missed = -(bell * jnp.where(every < chips, log_probs, 0.0)).sum(-1)
    return (missed * real).sum() / jnp.maximum(real.sum() * len(log_probs), 1.0)


def _disorder(
    scores: Float[Array, "T U"], pairs: Int[Array, "P 2"], chips: Int[Array, ""]
) -> Array:
    """Mean logistic loss of the pairs."""
    clear = STEP / chips.astype(jnp.float32)
    gap = (scores[:, pairs[:, 1]] - scores[:, pairs[:, 0]]) / clear
    counts = (pairs[:, 0] != pairs[:, 1]).astype(jnp.float32)
    lost = jax.nn.softplus(-gap) * counts
    return lost.sum() / jnp.maximum(counts.sum() * len(scores), 1.0)


def imitate(
    agent: Agent,
    lessons: Sequence[RingLesson],
    config: ImitationConfig,
    seed: int,
    report: Callable[[str], None] = lambda sentence: None,
) -> tuple[Agent, Float[np.ndarray, "updates"]]:
    """Return the agent after imitating, and the negative log-density of weights by update.

    Args:
        agent: ring policy.
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
    descent = Descent(config.learning_rate, config.updates, config.weight_decay)
    state = descent.rule.init(params)
    losses: list[float] = []
    for update in range(config.updates):
        chosen = rng.integers(len(lessons), size=config.problems)
        offsets = [int(rng.integers(1 << 30)) for _ in chosen]
        found = [
            lessons[i].gradient(agent.policy, params, offset, config.astray)
            for i, offset in zip(chosen, offsets, strict=True)
        ]
        params, state = descend(descent, params, state, [gradient for _, gradient in found])
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
