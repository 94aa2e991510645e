"""`StepPolicySearch`: plans drawn from a step policy without learning on the way (zero-shot)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress
from go_rl.core.decisions import Scored
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import StepWorkspace, step_workspace
from go_rl.policy.makespan.agent import StepActions, StepAgent
from go_rl.policy.makespan.decisions import StepDecoder, step_decoder
from go_rl.policy.makespan.network import StepEncoded
from go_rl.policy.makespan.weights import DEFAULT_STEP_WEIGHTS, load_step_weights

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
        if decoder.workspace.infeasible is None and decoder.units.num_units:
            draw_steps(self._agent(), decoder, np.ones(BATCH, np.float32), 0)

    def _agent(self) -> StepAgent:
        return self.agent or load_step_weights(DEFAULT_STEP_WEIGHTS).agent

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan drawn; see `go_rl.core.Optimizer`."""
        agent, workspace = self._agent(), step_workspace(problem)
        progress = Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(workspace, progress)
        if start_from_default(workspace, incumbent) and not progress.spent:
            decoder = step_decoder(workspace)
            if decoder.units.num_units:
                _search(agent, decoder, incumbent, progress, seed)
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _search(
    agent: StepAgent,
    decoder: StepDecoder,
    incumbent: Incumbent,
    progress: Progress,
    seed: int,
) -> None:
    """Draw and price until the budget is spent.

    A batch is drawn whole, for draws of other sizes would have to be compiled, but where seconds
    count it is decoded and priced in as large pieces as there is time for, and none is begun that
    would take longer than what is left.
    """
    encoded, rounds, drawing, pace = agent.encode(decoder.padded), 0, 0.0, float("inf")
    while not progress.spent and drawing < progress.remaining_seconds:
        noise = np.resize(np.array(DOUBT, np.float32), BATCH)
        noise[0] = min(rounds, 1)
        began = progress.wall_seconds
        actions = draw_actions(agent, decoder, noise, seed * 1_000_003 + rounds, encoded)
        actions = jax.device_get(actions)
        drawing = progress.wall_seconds - began
        first, last = 0, int(min(BATCH, progress.remaining_samples))
        while first < last and (first == 0 or not progress.spent):
            began, size = progress.wall_seconds, _affordable(progress, pace, last - first)
            plans = decoder.decisions(_rows(actions, first, first + size))
            incumbent.offer_scored(decoder.workspace.evaluate(plans))
            pace = (progress.wall_seconds - began) / size
            first += size
        rounds += 1


def _rows(actions: StepActions, first: int, end: int) -> StepActions:
    return jax.tree.map(lambda x: x[first:end], actions)


def _affordable(progress: Progress, pace: float, most: int) -> int:
    """Samples to decode and price at once when one takes ``pace`` seconds; inf: not known yet."""
    left = progress.remaining_seconds
    if left == float("inf"):
        return most
    return int(min(max(left / pace, 1.0), most)) if pace > 0 else most


def draw_steps(
    agent: StepAgent, decoder: StepDecoder, noise: Float32[np.ndarray, "B"], seed: int
) -> Scored:
    """Return [B] priced samples; ``noise`` 0 gives the likeliest decision."""
    actions = draw_actions(agent, decoder, noise, seed)
    return decoder.workspace.evaluate(decoder.decisions(actions))


def draw_actions(
    agent: StepAgent,
    decoder: StepDecoder,
    noise: Float32[np.ndarray, "B"],
    seed: int,
    encoded: StepEncoded | None = None,
) -> StepActions:
    """Return [B] decisions, neither decoded nor priced; ``encoded``: the graph as the agent sees
    it, where that is known."""
    padded, key = decoder.padded, jax.random.key(seed % 2**32)
    seen = agent.encode(padded) if encoded is None else encoded
    options = decoder.options if agent.config.step_form == "nodes" else None
    return agent.draw(padded, seen, decoder.workspace.problem.tasks, key, noise, options)


def start_from_default(workspace: StepWorkspace, incumbent: Incumbent) -> bool:
    """Offer the default plan; False when no plan exists at all."""
    if incumbent.hopeless:
        return False
    incumbent.offer_scored(workspace.evaluate(workspace.reference))
    return True
