"""Collecting samples: draw from the policy, make legal, price, and keep what PPO needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import Objective, TrainingError
from go_rl.policy.agent import Actions, Agent
from go_rl.policy.plan_decoders.plan_decoder import PlanDecoder, ProposalArrays, Rollouts
from go_rl.train.advantage import RunningBaseline, top_advantage
from go_rl.train.config import TOP
from go_rl.train.ppo import Batch, SampleGroup


@dataclass(frozen=True, eq=False)
class TrainingCase:
    """One problem as training sees it."""

    name: str
    decoder: PlanDecoder


Asked = tuple[TrainingCase, dict[str, ProposalArrays], int]
"""A problem, what was drawn for it by group, and the seed of what the solver draws."""
Pricer = Callable[[Sequence[Asked]], list[dict[str, Rollouts]]]
"""Solves and prices a batch for each problem; the answer is the same wherever it is computed."""


@dataclass
class Credit:
    """How rewards become advantages."""

    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. None: on a ring all,
    against the running baseline of the problem; for makespan as `TOP` has it."""
    baseline: RunningBaseline = field(default_factory=RunningBaseline)
    """Of every problem and group."""

    def advantage(self, agent: Agent, key: str, reward: Float64[np.ndarray, "B"]) -> np.ndarray:
        """Return [B] advantages of a batch; the baseline learns from it."""
        top = self.top
        if top is None and agent.objective is not Objective.RING:
            top = TOP[agent.config.form]
        gain = self.baseline.advantage(key, reward) if top is None else top_advantage(reward, top)
        return gain.astype(np.float32)


@dataclass(frozen=True, eq=False)
class DrawnBatch:
    """One batch as the network draws it, before solver and simulator."""

    actions: dict[str, Actions]
    """By group."""
    proposals: dict[str, ProposalArrays]
    """By group; these travel between processes."""


@dataclass(frozen=True, eq=False)
class Collected:
    """What one batch of samples brought."""

    batch: Batch
    rollouts: dict[str, Rollouts]
    """By group."""
    proposals: dict[str, ProposalArrays]
    """By group, what became the rollouts."""


def price_here(asked: Sequence[Asked]) -> list[dict[str, Rollouts]]:
    """Solve and price in this process, one batch after the other; a `Pricer`."""
    return [price(case.decoder, proposals, seed) for case, proposals, seed in asked]


def collect(
    agent: Agent, case: TrainingCase, sizes: Mapping[str, int], credit: Credit, seed: int
) -> Collected:
    """Collect one batch in this process; see `collect_all`."""
    return collect_all(agent, [(case, seed)], sizes, credit)[0]


def collect_all(
    agent: Agent,
    cases: Sequence[tuple[TrainingCase, int]],
    sizes: Mapping[str, int],
    credit: Credit,
    pricer: Pricer = price_here,
) -> list[Collected]:
    """Draw, solve and price a batch for each problem; the same seeds give the same batches.

    Args:
        agent: draws.
        cases: the problems, each with the seed of its batch.
        sizes: samples of each group.
        credit: of the run.
        pricer: solves and prices.

    Raises:
        TrainingError: a reward is not finite.
    """
    drawn = [propose(agent, case, sizes, seed) for case, seed in cases]
    asked = [(case, one.proposals, seed) for (case, seed), one in zip(cases, drawn, strict=True)]
    priced = pricer(asked)
    return [
        assemble(agent, case, one, rollouts, credit)
        for (case, _), one, rollouts in zip(cases, drawn, priced, strict=True)
    ]


def propose(agent: Agent, case: TrainingCase, sizes: Mapping[str, int], seed: int) -> DrawnBatch:
    """Draw one batch from the policy."""
    decoder = case.decoder
    key, encoded = jax.random.key(seed % 2**32), agent.encode(decoder.padded)
    count = len(decoder.groups)
    keys = [key] if count == 1 else jax.random.split(key, count)
    actions: dict[str, Actions] = {}
    proposals: dict[str, ProposalArrays] = {}
    for group, one in zip(decoder.groups, keys, strict=True):
        if size := sizes.get(group, 0):
            noise = np.ones(size, np.float32)
            actions[group] = decoder.draw(agent, encoded, group, noise, one)
            proposals[group] = decoder.proposals(actions[group], noise)
    return DrawnBatch(actions, proposals)


def price(
    decoder: PlanDecoder, proposals: Mapping[str, ProposalArrays], seed: int
) -> dict[str, Rollouts]:
    """Solve and price one batch."""
    return {group: decoder.price(asked, seed) for group, asked in proposals.items()}


def assemble(
    agent: Agent,
    case: TrainingCase,
    drawn: DrawnBatch,
    rollouts: dict[str, Rollouts],
    credit: Credit,
) -> Collected:
    """Return what PPO needs of a batch; the baseline learns from its rewards.

    Raises:
        TrainingError: a reward is not finite.
    """
    groups: dict[str, SampleGroup] = {}
    for name, found in rollouts.items():
        if not np.isfinite(found.reward).all():
            wrong = found.reward[~np.isfinite(found.reward)][0]
            raise TrainingError(f"case {case.name!r}: a sample of {name!r} earned {wrong}")
        gain = credit.advantage(agent, f"{case.name}/{name}", found.reward)
        actions = case.decoder.credit(drawn.actions[name], found)
        groups[name] = SampleGroup(actions, jnp.asarray(gain))
    padded = case.decoder.padded
    chips = jnp.int32(padded.chips)
    batch = Batch(padded.graph, jnp.asarray(padded.real), chips, groups)
    return Collected(batch, rollouts, drawn.proposals)
