"""`PolicySearch`: plans drawn from a policy without learning anything on the way (zero-shot)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.policy.agent import Agent
from go_rl.policy.config import PrototypePolicyConfig, check_control, check_solver_mode
from go_rl.policy.controls import controlled, noted
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.nodes.carried import Carried
from go_rl.policy.plan_decoder import PlanDecoder, ProposalArrays
from go_rl.policy.weights import shipped_agent

DOUBT = (1.0, 2.0, 1.0, 4.0)
"""Factors on the standard deviations of successive samples: a pretrained policy has small ones,
too small for a graph that it has never seen. Chips, and what units choose by themselves, are drawn
unscaled."""


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """`Optimizer`: the reference plan, then samples of a policy; the best of all."""

    agent: Agent | None = None
    """None: the weights that ship with the package."""
    solver: str = "sample"
    """Solver mode of placements, one of `SOLVER_MODES`."""
    control: str | None = None
    """Control arm that decides in the policy's place, one of `CONTROLS`."""
    name: str = "policy"

    def __post_init__(self) -> None:
        check_solver_mode(self.solver)
        check_control(self.control)

    def prepare(self, problem: Problem) -> None:
        """Load the weights and compile for graphs of this size.

        Raises:
            PolicyError: the graph is larger than any bucket, or no policy solves the objective.
            CheckpointError: the weights cannot be read.
        """
        agent = self._agent(problem, 0)
        decoder = plan_decoder(problem, agent.config.kind, solver=self.solver)
        if decoder.decides:
            group = decoder.groups[0]
            noise = np.ones(decoder.round_size(agent), np.float32)
            actions = decoder.draw(
                agent, agent.encode(decoder.padded), group, noise, jax.random.key(0)
            )
            decoder.price(_rows(decoder.proposals(actions, noise), 0, 1), 0)

    def _agent(self, problem: Problem, seed: int) -> Agent:
        agent = self.agent or shipped_agent(problem.objective)
        return controlled(agent, self.control, seed)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan drawn; see `go_rl.core.Optimizer`."""
        agent = self._agent(problem, seed)
        decoder = plan_decoder(problem, agent.config.kind, solver=self.solver)
        progress = Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(decoder.workspace, progress)
        if decoder.start(incumbent, seed) and not progress.spent:
            _search(agent, decoder, (incumbent, progress), seed)
        plan = finish_plan(decoder.workspace, incumbent, self.name, seed, progress)
        return noted(plan, self.control, agent)


def _search(
    agent: Agent, decoder: PlanDecoder, search: tuple[Incumbent, Progress], seed: int
) -> None:
    """Draw and price until the budget is spent.

    A batch is drawn whole, for draws of other sizes would have to be compiled, but where seconds
    count it is decoded and priced in as large pieces as there is time for, and none is begun that
    would take longer than what is left.
    """
    incumbent, progress = search
    group = decoder.groups[0]
    carried = Carried(decoder.workspace.reference_seconds)
    encoded, rounds, drawing, sample_seconds = agent.encode(decoder.padded), 0, 0.0, float("inf")
    while not progress.spent and drawing < progress.remaining_seconds:
        noise = _noise(agent, rounds, decoder.round_size(agent))
        number = seed * 1_000_003 + rounds
        began = progress.wall_seconds
        key = jax.random.key(number % 2**32)
        actions = decoder.draw(agent, encoded, group, noise, key, carried.start)
        proposals = decoder.proposals(actions, noise)
        drawing = progress.wall_seconds - began
        first, last = 0, int(min(len(noise), progress.remaining_samples))
        while first < last and (first == 0 or not progress.spent):
            began = progress.wall_seconds
            size = progress.affordable(sample_seconds, last - first)
            mine = _rows(proposals, first, first + size)
            rollouts = decoder.price(mine, number + first)
            carried.offer(mine, rollouts, size)
            fidelity = partial(decoder.fidelity, mine, rollouts)
            incumbent.offer_scored(rollouts.priced, fidelity=fidelity)
            sample_seconds = (progress.wall_seconds - began) / size
            first += size
        rounds += 1


def _noise(agent: Agent, rounds: int, size: int) -> Float32[np.ndarray, "B"]:
    """[B] scales of a round's draws; the first of all is the likeliest decision, and so is the
    whole first round of a policy of prototypes."""
    few = isinstance(agent.config, PrototypePolicyConfig)
    if few and not rounds:
        return np.zeros(size, np.float32)
    noise = np.resize(np.array(DOUBT if few else (1.0,), np.float32), size)
    noise[0] = min(rounds, 1)
    return noise


def _rows(proposals: ProposalArrays, first: int, end: int) -> ProposalArrays:
    return jax.tree.map(lambda x: x[first:end], proposals)
