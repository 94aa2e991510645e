"""Collecting samples: draw from the policy, solve, price, and keep what PPO needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32

from go_rl.core import Problem, TrainingError
from go_rl.envs.ring.rollouts import PartitionRollouts, Rollouts
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent, Placements, padded_graph
from go_rl.policy.buckets import Padded
from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.decoders.order_decoder import OrderActions
from go_rl.train.baseline import RunningBaseline
from go_rl.train.config import SampleConfig
from go_rl.train.ppo import Batch, OrderBatch, PlacementBatch


class Case:
    """One problem as training sees it; everything expensive is built when first used."""

    def __init__(self, name: str, problem: Problem) -> None:
        self.name = name
        self.problem = problem

    @cached_property
    def rollouts(self) -> PartitionRollouts:
        """Solver, pricer and rewards."""
        return PartitionRollouts(self.problem, workspace=RingWorkspace(self.problem))

    @cached_property
    def padded(self) -> Padded:
        """What the network sees."""
        return padded_graph(self.rollouts.workspace)


@dataclass(frozen=True, eq=False)
class Collected:
    """What one batch of samples brought."""

    batch: Batch
    order: Rollouts | None
    placement: Rollouts | None

    def rewards(self, task: str) -> Float64[np.ndarray, "B"]:
        """Return the rewards of a task's samples."""
        found = self.order if task == "order" else self.placement
        return found.reward if found is not None else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Proposals:
    """One batch as the network draws it, before solver and simulator."""

    orders: OrderActions | None
    placements: Placements | None


@dataclass(frozen=True, eq=False)
class Question:
    """What solver and simulator must know of a batch: arrays that travel between processes."""

    scores: Float32[np.ndarray, "B U"] | None
    """[B, U] scores of orders."""
    chip: Int32[np.ndarray, "C U"] | None
    """[C, U] proposed chips."""
    log_probs: Float64[np.ndarray, "C U k"] | None
    """[C, U, k] distributions of the chips."""
    solver: str
    """One of `SOLVER_MODES`."""
    seed: int


@dataclass(frozen=True, eq=False)
class Answer:
    """What solver and simulator made of a `Question`."""

    order: Rollouts | None
    placement: Rollouts | None


def collect(
    agent: Agent, case: Case, config: SampleConfig, baseline: RunningBaseline, seed: int
) -> Collected:
    """Draw, solve and price one batch; the same seed gives the same batch.

    Raises:
        TrainingError: a reward is not finite.
    """
    drawn = propose(agent, case, config, seed)
    found = answer(case.rollouts, question(drawn, case, config, seed))
    return assemble(drawn, found, case, config, baseline)


def propose(agent: Agent, case: Case, config: SampleConfig, seed: int) -> Proposals:
    """Draw one batch from the policy."""
    padded = case.padded
    encoded = agent.encode(padded)
    keys = jax.random.split(jax.random.key(seed), 2)
    orders = placements = None
    if config.orders:
        ones = np.ones(config.orders, np.float32)
        orders = agent.draw_orders(padded, encoded, keys[0], ones)
    if config.placements:
        ones = np.ones(config.placements, np.float32)
        placements = agent.draw_placements(padded, encoded, keys[1], ones)
    return Proposals(orders, placements)


def question(drawn: Proposals, case: Case, config: SampleConfig, seed: int) -> Question:
    """Return what solver and simulator are asked."""
    units, chips = case.padded.num_units, case.padded.chips
    scores = chip = log_probs = None
    if drawn.orders is not None:
        scores = np.asarray(drawn.orders.scores[:, -1, :units])
    if drawn.placements is not None:
        chip = np.asarray(drawn.placements.chosen[:, -1, :units])
        log_probs = np.asarray(drawn.placements.log_probs[:, :units, :chips], np.float64)
    return Question(scores, chip, log_probs, config.solver, seed)


def answer(rollouts: PartitionRollouts, asked: Question) -> Answer:
    """Solve and price one batch."""
    order = placement = None
    if asked.scores is not None:
        order = rollouts.orders(asked.scores, asked.seed)
    if asked.chip is not None and asked.log_probs is not None:
        if asked.solver == "sample":
            placement = rollouts.sample(asked.log_probs, asked.seed)
        elif asked.solver == "fix":
            placement = rollouts.fix(asked.chip, asked.log_probs, asked.seed)
        else:
            placement = rollouts.unsolved(asked.chip)
    return Answer(order, placement)


def assemble(
    drawn: Proposals, found: Answer, case: Case, config: SampleConfig, baseline: RunningBaseline
) -> Collected:
    """Return what PPO needs of a batch; the baseline learns from its rewards.

    Raises:
        TrainingError: a reward is not finite.
    """
    padded, order, placement = case.padded, None, None
    if drawn.orders is not None and found.order is not None:
        gain = _advantage(baseline, case, "order", found.order)
        order = OrderBatch(drawn.orders, jnp.asarray(gain))
    if drawn.placements is not None and found.placement is not None:
        gain = _advantage(baseline, case, "placement", found.placement)
        chosen, possible = _credit(drawn.placements, found.placement, case)
        place = drawn.placements.place
        placement = PlacementBatch(place, chosen, possible, jnp.asarray(gain))
    chips = jnp.int32(padded.chips)
    batch = Batch(padded.graph, jnp.asarray(padded.real), chips, order, placement)
    return Collected(batch, found.order, found.placement)


def _credit(
    drawn: Placements, found: Rollouts, case: Case
) -> tuple[Int32[jax.Array, "C T U"], Bool[jax.Array, "C U K"]]:
    """Return the decisions to credit, and between which chips the last ones chose.

    SAMPLE: what the solver drew, within the domains it drew from; otherwise the proposal.
    """
    padded, count = case.padded, len(found.reward)
    shape = (count, len(padded.real), MAX_CHIPS)
    if found.possible is None:
        return drawn.chosen, jnp.asarray(
            np.broadcast_to(np.arange(MAX_CHIPS) < padded.chips, shape)
        )
    possible = np.zeros(shape, np.bool_)
    possible[:, : padded.num_units, : padded.chips] = found.possible
    last = np.zeros(shape[:2], np.int32)
    last[:, : padded.num_units] = found.chip
    return drawn.chosen.at[:, -1].set(last), jnp.asarray(possible)


def _advantage(baseline: RunningBaseline, case: Case, task: str, rollouts: Rollouts) -> np.ndarray:
    reward = rollouts.reward
    if not np.isfinite(reward).all():
        raise TrainingError(
            f"case {case.name!r}: a {task} earned {reward[~np.isfinite(reward)][0]}"
        )
    gain = baseline.advantage(f"{case.name}/{task}", reward)
    return gain.astype(np.float32)
