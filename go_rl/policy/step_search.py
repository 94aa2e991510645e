"""`StepPolicySearch`: plans drawn from a step policy without learning on the way (zero-shot)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.policy.step_agent import StepActions, StepAgent
from go_rl.policy.step_decisions import StepDecoder, step_decoder
from go_rl.policy.step_weights import DEFAULT_STEP_WEIGHTS, load_step_weights
from go_rl.search.step_workspace import PricedSteps, StepIncumbent, StepWorkspace, step_workspace

BATCH = 16
"""Samples drawn at a time; the first of all is the policy's likeliest decision."""
DOUBT = (1.0, 2.0, 1.0, 4.0)
"""Factors on the standard deviations of successive samples."""


@dataclass(frozen=True, eq=False)
class StepPolicySearch:
    """`Optimizer`: the default plan, then samples of a policy; the best of all."""

    agent: StepAgent | None = None
    """None: the weights that ship with the package."""
    name: str = "policy"

    def prepare(self, problem: Problem) -> None:
        """Load the weights and compile for graphs of this size.

        Raises:
            PolicyError: the graph is larger than any bucket.
            CheckpointError: the weights cannot be read.
        """
        decoder = step_decoder(step_workspace(problem))
        if decoder.workspace.impossible is None and decoder.units.num_units:
            draw_steps(self._agent(), decoder, np.ones(BATCH, np.float32), 0)

    def _agent(self) -> StepAgent:
        return self.agent or load_step_weights(DEFAULT_STEP_WEIGHTS).agent

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan drawn; see `go_rl.core.Optimizer`."""
        agent, workspace = self._agent(), step_workspace(problem)
        progress = Progress(budget, OPEN_SAMPLES)
        incumbent = StepIncumbent(workspace, progress)
        if start_from_default(workspace, incumbent):
            decoder, rounds = step_decoder(workspace), 0
            while not progress.spent and decoder.units.num_units:
                size = int(min(BATCH, progress.remaining_samples))
                noise = np.resize(np.array(DOUBT, np.float32), BATCH)
                noise[0] = min(rounds, 1)
                priced = draw_steps(agent, decoder, noise, seed * 1_000_003 + rounds)
                incumbent.offer(priced, size)
                rounds += 1
        return workspace.plan(incumbent, self.name, seed, progress)


def draw_steps(
    agent: StepAgent, decoder: StepDecoder, noise: Float32[np.ndarray, "B"], seed: int
) -> PricedSteps:
    """Return [B] priced samples; ``noise`` 0 gives the likeliest decision."""
    actions = draw_actions(agent, decoder, noise, seed)
    return decoder.workspace.price(decoder.decisions(actions))


def draw_actions(
    agent: StepAgent, decoder: StepDecoder, noise: Float32[np.ndarray, "B"], seed: int
) -> StepActions:
    """Return [B] decisions, neither decoded nor priced."""
    padded, key = decoder.padded, jax.random.key(seed % 2**32)
    tasks = decoder.workspace.problem.tasks
    return agent.draw(padded, agent.encode(padded), tasks, key, noise, decoder.options)


def start_from_default(workspace: StepWorkspace, incumbent: StepIncumbent) -> bool:
    """Offer the default plan; False when no plan exists at all."""
    if incumbent.hopeless:
        return False
    incumbent.offer(workspace.price(workspace.default))
    return True
