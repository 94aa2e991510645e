"""Imitation: a policy learns to decide as searches found best.

The likelihood of the best decisions known of each problem is maximised, as in the cross-entropy
method (Rubinstein 1999), but for all graphs at once, through the network. What teaches are the
finds of searches; see `go_rl.policy.learn.ring_imitation` (chips and orders).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Array, Float

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import ImitationConfig
from go_rl.policy.learn.descent import Descent, descend
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


def imitate(
    agent: Agent,
    lessons: Sequence[Lesson],
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
