"""`FineTuned`: a policy that goes on learning on the very graph that is to be partitioned.

From pretrained weights this is fine-tuning; from untrained ones, training from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress, SearchError
from go_rl.envs.ring.rollouts import PartitionRollouts, Rollouts
from go_rl.objectives.incumbent import Incumbent, finish_plan
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.policy.agent import Agent, widened
from go_rl.policy.names import DEFAULT_WEIGHTS
from go_rl.policy.policy_search import draw, start_from_heuristic
from go_rl.policy.task_head import check_task
from go_rl.policy.weights import load_weights
from go_rl.train.baseline import RunningBaseline
from go_rl.train.collect import Case, collect
from go_rl.train.config import FineTuneConfig, SampleConfig
from go_rl.train.devices import on_all_devices, split_samples
from go_rl.train.ppo import Learner, new_learner, update


@dataclass(frozen=True, eq=False)
class FineTuned:
    """`Optimizer`: the heuristic's plan, a few of the policy as it came, then PPO on this graph."""

    agent: Agent | None = None
    """Where learning starts; None: the weights that ship with the package."""
    task: str = "order"
    """``order``: scores, cut by dynamic programming; ``placement``: chips, through the solver."""
    config: FineTuneConfig = field(default_factory=FineTuneConfig)
    solver: str = "sample"
    """How placements go through the solver: ``sample``, ``fix`` or ``none``."""
    samples: int | None = None
    """Samples, instead of what the budget says; None: the budget decides."""
    name: str = "finetuned"

    def __post_init__(self) -> None:
        check_task(self.task)
        if self.samples is not None and self.samples < 1:
            raise SearchError(f"fine-tuning: samples must be >= 1, not {self.samples}")

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan seen while learning; see `go_rl.core.Optimizer`."""
        return self._search(problem, budget, seed)[0]

    def learn(
        self, problem: Problem, budget: Budget, seed: int, workspace: RingWorkspace | None = None
    ) -> tuple[Plan, Agent]:
        """Return the best plan seen, and the agent after the whole budget.

        A ``workspace`` with a pricer of its own lets the policy learn from other prices than the
        simulator's, such as measured ones.

        Raises:
            TrainingError: a reward or gradient is not finite.
        """
        return self._search(problem, budget, seed, workspace, to_the_end=True)

    def _search(
        self,
        problem: Problem,
        budget: Budget,
        seed: int,
        workspace: RingWorkspace | None = None,
        to_the_end: bool = False,
    ) -> tuple[Plan, Agent]:
        """Return the best plan seen, and the agent after its last update."""
        given = self.agent or load_weights(DEFAULT_WEIGHTS).agent
        agent = widened(given, self.config.widen)
        workspace = workspace or ring_workspace(problem)
        if self.samples is not None:
            budget = Budget(samples=self.samples)
        progress = Progress(budget, OPEN_SAMPLES, to_the_end=to_the_end)
        incumbent = Incumbent(workspace, progress)
        case = Case(problem.graph.name, problem)
        case.rollouts = PartitionRollouts(problem, workspace=workspace)
        learner = new_learner(agent.params, self.config.ppo)
        if start_from_heuristic(case.rollouts, incumbent, seed):
            self._as_given(given, case, incumbent, progress, seed)
            learner = self._learn(agent, learner, case, (incumbent, progress), seed)
        plan = finish_plan(workspace, incumbent, self.name, seed, progress)
        return plan, Agent(agent.config, learner.params)

    def _as_given(
        self, agent: Agent, case: Case, incumbent: Incumbent, progress: Progress, seed: int
    ) -> None:
        if not progress.spent:
            graph = (case.padded, agent.encode(case.padded))
            noise = np.ones(self.config.first, np.float32)
            noise[0] = 0.0
            found = draw(agent, case.rollouts, graph, self.task, noise, seed)
            _offer(incumbent, found, int(min(len(noise), progress.remaining_samples)))

    def _learn(
        self,
        agent: Agent,
        learner: Learner,
        case: Case,
        search: tuple[Incumbent, Progress],
        seed: int,
    ) -> Learner:
        incumbent, progress = search
        size, baseline, rounds = self.config.batch, RunningBaseline(), 0
        orders = size if self.task == "order" else 0
        samples = SampleConfig(orders, size - orders, self.solver)
        while not progress.spent:
            now = Agent(agent.config, learner.params)
            found = collect(now, case, samples, baseline, _seed(seed, rounds))
            rollouts = found.order if orders else found.placement
            assert rollouts is not None
            wanted = int(min(size, progress.remaining_samples))
            _offer(incumbent, rollouts, wanted)
            if not progress.spent:
                learner, _ = update(
                    agent.policy,
                    self.config.ppo,
                    on_all_devices(learner),
                    [split_samples(found.batch)],
                )
            rounds += 1
        return learner


def _offer(incumbent: Incumbent, rollouts: Rollouts, count: int) -> None:
    incumbent.offer_scored(rollouts.priced, range(count))


def _seed(seed: int, rounds: int) -> int:
    return int(np.random.SeedSequence((seed, rounds)).generate_state(1)[0])
