"""`StepFineTuned`: a step policy that learns on the very graph that is to be placed (GO-one from
untrained weights, fine-tuning from pretrained ones)."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress, TrainingError
from go_rl.core.decisions import Scored
from go_rl.envs.rewards import ROOT
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import step_workspace
from go_rl.policy.makespan.agent import StepAgent
from go_rl.policy.makespan.decisions import StepDecoder, step_decoder
from go_rl.policy.makespan.search import draw_actions, draw_steps, start_from_default
from go_rl.policy.makespan.weights import DEFAULT_STEP_WEIGHTS, load_step_weights
from go_rl.train.config import TOP, StepFineTuneConfig
from go_rl.train.makespan.memory import Memory
from go_rl.train.makespan.ppo import StepBatch, update_step
from go_rl.train.ppo import Learner, new_learner

LARGEST = 4.0
"""Advantages are cut at this many standard deviations."""
LEAST_DEVIATION = 1e-3
"""Rewards nearer to each other than this count as equal."""


@dataclass(frozen=True, eq=False)
class StepFineTuned:
    """`Optimizer`: the default plan, a few of the policy as it came, then PPO on this graph, with
    the best decisions so far learned again in every update."""

    agent: StepAgent | None = None
    """Where learning starts; None: the weights that ship with the package."""
    config: StepFineTuneConfig = field(default_factory=StepFineTuneConfig)
    samples: int | None = None
    """Samples, instead of what the budget says; None: the budget decides."""
    name: str = "finetuned"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan seen while learning; see `go_rl.core.Optimizer`."""
        return self._search(problem, budget, seed, to_the_end=False)[0]

    def learn(self, problem: Problem, budget: Budget, seed: int) -> tuple[Plan, StepAgent]:
        """Return the best plan seen, and the agent after the whole budget.

        Raises:
            TrainingError: a reward or gradient is not finite.
        """
        return self._search(problem, budget, seed, to_the_end=True)

    def _search(
        self, problem: Problem, budget: Budget, seed: int, to_the_end: bool
    ) -> tuple[Plan, StepAgent]:
        """Return the best plan seen, and the agent after its last update.

        Raises:
            TrainingError: a reward or gradient is not finite.
        """
        agent = self.agent or load_step_weights(DEFAULT_STEP_WEIGHTS).agent
        workspace = step_workspace(problem)
        if self.samples is not None:
            budget = Budget(samples=self.samples)
        progress = Progress(budget, OPEN_SAMPLES, to_the_end=to_the_end)
        incumbent = Incumbent(workspace, progress)
        learner = new_learner(agent.params, self.config.ppo)
        if start_from_default(workspace, incumbent):
            decoder = step_decoder(workspace)
            if decoder.units.num_units:
                self._as_given(agent, decoder, incumbent, progress, seed)
                learner = self._learn(agent, learner, decoder, (incumbent, progress), seed)
        plan = finish_plan(workspace, incumbent, self.name, seed, progress)
        return plan, StepAgent(agent.config, learner.params)

    def _as_given(
        self,
        agent: StepAgent,
        decoder: StepDecoder,
        incumbent: Incumbent,
        progress: Progress,
        seed: int,
    ) -> None:
        if not progress.spent:
            noise = np.ones(self.config.first, np.float32)
            noise[0] = 0.0
            priced = draw_steps(agent, decoder, noise, seed)
            count = int(min(len(noise), progress.remaining_samples))
            incumbent.offer_scored(priced, range(count))

    def _learn(
        self,
        agent: StepAgent,
        learner: Learner,
        decoder: StepDecoder,
        search: tuple[Incumbent, Progress],
        seed: int,
    ) -> Learner:
        incumbent, progress = search
        memory, rounds, quickest = Memory(self.config.remembered), 0, 0.0
        while not progress.spent and quickest <= progress.remaining_seconds:
            began = progress.wall_seconds
            now = StepAgent(agent.config, learner.params)
            key = int(np.random.SeedSequence((seed, rounds)).generate_state(1)[0])
            batch, priced = collect_steps(now, decoder, self.config.batch, key, self.config.top)
            count = int(min(self.config.batch, progress.remaining_samples))
            incumbent.offer_scored(priced, range(count))
            if rounds:  # the first batch compiles, and says nothing of those that follow
                took = progress.wall_seconds - began
                quickest = min(quickest or took, took)
            if not progress.spent and quickest <= progress.remaining_seconds:
                reward = ROOT(priced.seconds, decoder.workspace.reference_seconds)
                lessons = memory.lessons(batch, reward)
                learner, _ = update_step(agent.policy, self.config.ppo, learner, lessons)
            rounds += 1
        return learner


def collect_steps(
    agent: StepAgent, decoder: StepDecoder, size: int, seed: int, top: float | None = None
) -> tuple[StepBatch, Scored]:
    """Draw, decode and price one batch; the same seed gives the same batch.

    Only the ``top`` share of the batch teaches, by default what `TOP` has for the policy's form;
    see `top_advantage`.

    Raises:
        TrainingError: a reward is not finite.
    """
    workspace, padded = decoder.workspace, decoder.padded
    actions = draw_actions(agent, decoder, np.ones(size, np.float32), seed)
    priced = workspace.evaluate(decoder.decisions(actions))
    reward = ROOT(priced.seconds, workspace.reference_seconds)
    if not np.isfinite(reward).all():
        name = workspace.problem.graph.name
        raise TrainingError(f"graph {name!r}: a plan earned a reward of NaN")
    share = TOP[agent.config.step_form] if top is None else top
    gain = jnp.asarray(top_advantage(reward, share).astype(np.float32))
    return StepBatch(padded.graph, jnp.asarray(padded.real), actions, gain), priced


def top_advantage(reward: Float64[np.ndarray, "B"], top: float) -> Float64[np.ndarray, "B"]:
    """Return [B] advantages of a risk-seeking policy gradient (Petersen et al. 2021, equation 4).

    A search keeps the best plan it sees, so it is the best that must get better, not the mean:
    learned from the mean, a policy soon leaves everything on one device, the safest plan of all.
    What lies below the (1 - ``top``) quantile earns nothing; the rest is measured from there, in
    standard deviations of the batch. With all of a batch (``top`` 1) it is GO's plain advantage:
    from the mean, and what cannot run counts as well.
    """
    if top == 1.0:
        deviation = max(float(reward.std()), LEAST_DEVIATION)
        return np.clip((reward - reward.mean()) / deviation, -LARGEST, LARGEST)
    least = np.quantile(reward, 1.0 - top)
    usable = reward[reward > ROOT.failure]
    deviation = max(float(usable.std()) if usable.size else 0.0, LEAST_DEVIATION)
    return np.clip(np.maximum(reward - least, 0.0) / deviation, 0.0, LARGEST)
