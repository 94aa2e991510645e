"""`PolicySearch`: plans drawn from a policy without learning anything on the way (zero-shot)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Float32

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.envs.ring.rollouts import PartitionRollouts, Rollouts
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.policy.agent import Agent, padded_graph
from go_rl.policy.buckets import Padded
from go_rl.policy.names import DEFAULT_WEIGHTS
from go_rl.policy.network import Encoded
from go_rl.policy.task_head import check_task
from go_rl.policy.weights import load_weights

BATCH = 16
"""Samples drawn at a time; the first of all is the policy's likeliest decision."""
DOUBT = (1.0, 2.0, 1.0, 4.0)
"""Factors on the standard deviations of successive samples: a pretrained policy is sure of itself,
and a graph that it has never seen deserves some doubt. For orders only."""
LIKELIEST = 20.0
"""Inverse temperature of SAMPLE where the likeliest decision is asked for."""


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """`Optimizer`: the compiler heuristic's plan, then samples of a policy; the best of all."""

    agent: Agent | None = None
    """None: the weights that ship with the package."""
    task: str = "order"
    """``order``: scores, cut by dynamic programming; ``placement``: chips, through SAMPLE."""
    name: str = "policy"

    def __post_init__(self) -> None:
        check_task(self.task)

    def prepare(self, problem: Problem) -> None:
        """Load the weights and compile for graphs of this size.

        Raises:
            PolicyError: the graph is larger than any bucket.
            CheckpointError: the weights cannot be read.
        """
        agent, workspace = self._agent(), ring_workspace(problem)
        if workspace.solver.feasible_so_far and workspace.units.num_units > 0:
            padded = padded_graph(workspace)
            graph, noise = (padded, agent.encode(padded)), np.ones(BATCH, np.float32)
            propose(agent, graph, self.task, noise, 0)

    def _agent(self) -> Agent:
        return self.agent or load_weights(DEFAULT_WEIGHTS).agent

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan drawn; see `go_rl.core.Optimizer`."""
        agent = self._agent()
        workspace, progress = ring_workspace(problem), Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(workspace, progress)
        rollouts = PartitionRollouts(problem)
        if start_from_heuristic(rollouts, incumbent, seed):
            padded = padded_graph(workspace)
            graph, rounds = (padded, agent.encode(padded)), 0
            while not progress.spent:
                size = int(min(BATCH, progress.remaining_samples))
                noise = np.ones(BATCH, np.float32)
                if self.task == "order":
                    noise = np.resize(np.array(DOUBT, np.float32), BATCH)
                noise[0] = min(rounds, 1)
                number = seed * 1_000_003 + rounds
                priced = draw(agent, rollouts, graph, self.task, noise, number).priced
                incumbent.offer_scored(priced, range(size))
                rounds += 1
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def draw(
    agent: Agent,
    rollouts: PartitionRollouts,
    graph: tuple[Padded, Encoded],
    task: str,
    noise: Float32[np.ndarray, "B"],
    seed: int,
) -> Rollouts:
    """Return [B] priced samples of a task; ``noise`` 0 gives the likeliest decision."""
    proposed = propose(agent, graph, task, noise, seed)
    if task == "placement":
        return rollouts.sample(proposed, seed)
    return rollouts.orders(proposed, seed)


def propose(
    agent: Agent,
    graph: tuple[Padded, Encoded],
    task: str,
    noise: Float32[np.ndarray, "B"],
    seed: int,
) -> Float[np.ndarray, "B U *k"]:
    """Return [B, U] scores, or [B, U, k] log-probabilities of chips."""
    padded, encoded = graph
    key = jax.random.key(seed % 2**32)
    if task == "placement":
        drawn = agent.draw_placements(padded, encoded, key, noise)
        rows = np.array(drawn.log_probs[:, : padded.num_units, : padded.chips], np.float64)
        rows[noise == 0] *= LIKELIEST
        return rows
    actions = agent.draw_orders(padded, encoded, key, noise)
    return np.asarray(actions.scores[:, -1, : padded.num_units])


def start_from_heuristic(rollouts: PartitionRollouts, incumbent: Incumbent, seed: int) -> bool:
    """Offer the compiler heuristic's plan; False when no plan exists at all."""
    workspace = rollouts.workspace
    legal, evaluation = workspace.repair(rollouts.heuristic, seed)
    incumbent.offer(legal, evaluation)
    return workspace.solver.feasible_so_far and workspace.units.num_units > 0
