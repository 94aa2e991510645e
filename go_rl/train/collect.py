"""Collecting samples: draw from the policy, solve, price, and keep what PPO needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import Problem, TrainingError
from go_rl.envs.partition_rollouts import PartitionRollouts, Rollouts
from go_rl.policy.agent import Agent, padded_graph
from go_rl.policy.buckets import Padded
from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.network import Encoded
from go_rl.search.ring_workspace import RingWorkspace
from go_rl.train.baseline import RunningBaseline
from go_rl.train.config import SampleConfig
from go_rl.train.ppo import Batch, OrderBatch, PlacementBatch


class Case:
    """One problem as training sees it; everything dear is built when first used."""

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


def collect(
    agent: Agent, case: Case, config: SampleConfig, baseline: RunningBaseline, seed: int
) -> Collected:
    """Draw, solve and price one batch; the same seed gives the same batch.

    Raises:
        TrainingError: a reward is not finite.
    """
    padded = case.padded
    encoded = agent.encode(padded)
    keys = jax.random.split(jax.random.key(seed), 2)
    order = placement = order_batch = placement_batch = None
    if config.orders:
        ones = np.ones(config.orders, np.float32)
        actions = agent.draw_orders(padded, encoded, keys[0], ones)
        scores = np.asarray(actions.scores[:, -1, : padded.num_units])
        order = case.rollouts.orders(scores, seed)
        gain = _advantage(baseline, case, "order", order)
        order_batch = OrderBatch(actions, jnp.asarray(gain))
    if config.placements:
        placement, placement_batch = _placements(agent, case, config, keys[1], encoded, seed)
        gain = _advantage(baseline, case, "placement", placement)
        placement_batch = placement_batch._replace(advantage=jnp.asarray(gain))
    batch = Batch(
        padded.graph, jnp.asarray(padded.real), jnp.int32(padded.chips), order_batch,
        placement_batch,
    )  # fmt: skip
    return Collected(batch, order, placement)


def _placements(
    agent: Agent, case: Case, config: SampleConfig, key: jax.Array, encoded: Encoded, seed: int
) -> tuple[Rollouts, PlacementBatch]:
    padded = case.padded
    ones = np.ones(config.placements, np.float32)
    chosen, log_probs, place = agent.draw_placements(padded, encoded, key, ones)
    rows = np.asarray(log_probs[:, : padded.num_units, : padded.chips], np.float64)
    shape = (config.placements, len(padded.real), MAX_CHIPS)
    if config.solver == "sample":
        rollouts = case.rollouts.sample(rows, seed)
        possible = np.zeros(shape, np.bool_)
        possible[:, : padded.num_units, : padded.chips] = rollouts.possible
        last = np.zeros(shape[:2], np.int32)
        last[:, : padded.num_units] = rollouts.chip
        chosen = chosen.at[:, -1].set(last)
    else:
        proposal = np.asarray(chosen[:, -1, : padded.num_units])
        rollouts = case.rollouts.fix(proposal, rows, seed)
        possible = np.broadcast_to(np.arange(MAX_CHIPS) < padded.chips, shape)
    unpaid = jnp.zeros(config.placements)
    return rollouts, PlacementBatch(place, chosen, jnp.asarray(possible), unpaid)


def _advantage(baseline: RunningBaseline, case: Case, task: str, rollouts: Rollouts) -> np.ndarray:
    reward = rollouts.reward
    if not np.isfinite(reward).all():
        raise TrainingError(
            f"case {case.name!r}: a {task} earned {reward[~np.isfinite(reward)][0]}"
        )
    gain = baseline.advantage(f"{case.name}/{task}", reward)
    return gain.astype(np.float32)
