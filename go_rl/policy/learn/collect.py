"""Collecting samples: draw from the policy, make legal, price, and keep what PPO needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import TrainingError
from go_rl.core.errors import nearest
from go_rl.policy.agent import Actions, Agent, Start
from go_rl.policy.learn.advantage import RunningBaseline, top_advantage
from go_rl.policy.learn.config import WORKERS
from go_rl.policy.learn.ppo import Batch, SampleGroup
from go_rl.policy.learn.processes.group import Share, everything
from go_rl.policy.plan_decoder import PlanDecoder, ProposalArrays, Rollouts


@dataclass(frozen=True, eq=False)
class TrainingCase:
    """One problem as training sees it."""

    name: str
    decoder: PlanDecoder
    start: Start | None = None
    """Plan that draws go on from; None: the reference plan, where the policy carries plans over."""


Asked = tuple[TrainingCase, dict[str, ProposalArrays], int]
"""A problem, what was drawn for it by group, and the seed of what the solver draws."""
Pricer = Callable[[Sequence[Asked]], list[dict[str, Rollouts]]]
"""Solves and prices a batch for each problem; the answer is the same wherever it is computed."""


@dataclass
class Credit:
    """Rule that turns rewards into advantages."""

    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. None: all, against the
    running baseline of the problem."""
    baseline: RunningBaseline = field(default_factory=RunningBaseline)
    """Baseline of every problem and group."""

    def advantage(self, key: str, reward: Float64[np.ndarray, "B"]) -> np.ndarray:
        """Return [B] advantages of a batch; the baseline learns from it."""
        if self.top is None:
            return self.baseline.advantage(key, reward).astype(np.float32)
        return top_advantage(reward, self.top).astype(np.float32)


@dataclass(frozen=True, eq=False)
class DrawnBatch:
    """One batch as the network draws it, before solver and simulator."""

    actions: dict[str, Actions]
    """Actions by group."""
    proposals: dict[str, ProposalArrays]
    """Proposals by group; these travel between processes."""


@dataclass(frozen=True, eq=False)
class Collected:
    """Samples of one batch, with their rewards."""

    batch: Batch
    rollouts: dict[str, Rollouts]
    """Rollouts by group."""
    proposals: dict[str, ProposalArrays]
    """Proposals by group, from which the rollouts came."""


Rewards = dict[str, Float64[np.ndarray, "B"]]
"""Rewards of one batch, by group."""


@dataclass(frozen=True, eq=False)
class SharedCollection:
    """Batches of all processes."""

    own: list[Collected]
    """Batches of this process."""
    rewards: list[Rewards]
    """Rewards of all processes."""


def price_here(asked: Sequence[Asked]) -> list[dict[str, Rollouts]]:
    """Solve and price in this process, one batch after the other; a `Pricer`."""
    return [price(case.decoder, proposals, seed) for case, proposals, seed in asked]


def pricer(workers: str) -> Pricer:
    """Return what prices samples, by a name in `WORKERS`: this process, or Ray workers. The network
    runs here either way; a worker gets proposals and a seed, and answers with plans and prices.

    Raises:
        TrainingError: unknown name.
        MissingDependencyError: Ray is not installed.
    """
    if workers == "local":
        return price_here
    if workers == "ray":
        from go_rl.policy.learn.ray_workers import ray_pricer

        return ray_pricer()
    raise TrainingError(
        f"workers must be one of {', '.join(WORKERS)}, not {workers!r}{nearest(workers, WORKERS)}"
    )


def collect(
    agent: Agent, case: TrainingCase, sizes: Mapping[str, int], credit: Credit, seed: int
) -> Collected:
    """Collect one batch in this process; see `collect_share`."""
    return collect_share(agent, [(case, seed)], sizes, credit, everything(1)).own[0]


def collect_share(
    agent: Agent,
    cases: Sequence[tuple[TrainingCase, int]],
    sizes: Mapping[str, int],
    credit: Credit,
    share: Share,
    pricer: Pricer = price_here,
) -> SharedCollection:
    """Draw, solve and price a batch for each problem; the same seeds give the same batches.

    Args:
        agent: draws.
        cases: all problems, each with the seed of its batch.
        sizes: samples of each group.
        credit: of the run; learns from the rewards of all problems, in their order.
        share: which of them this process draws and prices.
        pricer: solves and prices.

    Raises:
        TrainingError: a reward is not finite.
    """
    own: list[tuple[int, DrawnBatch, dict[str, Rollouts]]] = []

    def rewards(mine: list[int]) -> list[Rewards]:
        drawn = [propose(agent, cases[i][0], sizes, cases[i][1]) for i in mine]
        asked = [
            (cases[i][0], one.proposals, cases[i][1]) for i, one in zip(mine, drawn, strict=True)
        ]
        own.extend(zip(mine, drawn, pricer(asked), strict=True))
        return [rewards_of(cases[i][0], rollouts) for i, _, rollouts in own]

    earned = share.compute(rewards)
    gains = [
        {name: credit.advantage(f"{case.name}/{name}", reward) for name, reward in each.items()}
        for (case, _), each in zip(cases, earned, strict=True)
    ]
    found = [assemble(cases[i][0], one, rollouts, gains[i]) for i, one, rollouts in own]
    return SharedCollection(found, earned)


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
            actions[group] = decoder.draw(agent, encoded, group, noise, one, case.start)
            proposals[group] = decoder.proposals(actions[group], noise)
    return DrawnBatch(actions, proposals)


def price(
    decoder: PlanDecoder, proposals: Mapping[str, ProposalArrays], seed: int
) -> dict[str, Rollouts]:
    """Solve and price one batch."""
    return {group: decoder.price(asked, seed) for group, asked in proposals.items()}


def rewards_of(case: TrainingCase, rollouts: Mapping[str, Rollouts]) -> Rewards:
    """Return the rewards of a batch.

    Raises:
        TrainingError: one is not finite.
    """
    for name, found in rollouts.items():
        if not np.isfinite(found.reward).all():
            wrong = found.reward[~np.isfinite(found.reward)][0]
            raise TrainingError(f"case {case.name!r}: a sample of {name!r} earned {wrong}")
    return {name: found.reward for name, found in rollouts.items()}


def assemble(
    case: TrainingCase,
    drawn: DrawnBatch,
    rollouts: dict[str, Rollouts],
    gains: Mapping[str, np.ndarray],
) -> Collected:
    """Return what PPO needs of a batch whose samples have these advantages, by group."""
    groups = {
        name: SampleGroup(case.decoder.credit(drawn.actions[name], found), jnp.asarray(gains[name]))
        for name, found in rollouts.items()
    }
    padded = case.decoder.padded
    num_devices = jnp.int32(padded.num_devices)
    batch = Batch(padded.graph, jnp.asarray(padded.real), num_devices, groups)
    return Collected(batch, rollouts, drawn.proposals)
