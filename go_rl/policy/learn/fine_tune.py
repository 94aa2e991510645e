"""`FineTuned`: a policy that goes on learning on the very graph that is to be planned, by PPO; a
policy of prototypes searches from its distribution instead.

From pretrained weights this is fine-tuning; from untrained ones, training from scratch (GO-one).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from go_rl.core import OPEN_SAMPLES, Budget, Plan, Problem, Progress, SearchError
from go_rl.core.stopping import ending_early
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.workspace import Workspace
from go_rl.policy.agent import Agent
from go_rl.policy.config import check_control, check_solver_mode
from go_rl.policy.controls import controlled, noted
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.learn.collect import Credit, TrainingCase, collect
from go_rl.policy.learn.config import FINE_TUNING, FineTuneConfig
from go_rl.policy.learn.devices import on_all_devices, split_samples
from go_rl.policy.learn.memory import Memory
from go_rl.policy.learn.ppo import Learner, new_learner, update
from go_rl.policy.nodes.carried import Carried
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.plan_decoder import ProposalArrays, Rollouts
from go_rl.policy.weights import shipped_agent

SEARCHES = {"dispatch": DispatchSearch, "orders": OrderPolicySearch}
"""Searches that learn in place of PPO, by the name of the policy."""


@dataclass(frozen=True, eq=False)
class FineTuned:
    """`Optimizer`: the reference plan, a few of the policy as it came, then learning on this
    graph."""

    agent: Agent | None = None
    """Agent from which learning starts; None: the weights that ship with the package."""
    config: FineTuneConfig | None = None
    """None: what `FINE_TUNING` has for the policy."""
    solver: str = "sample"
    """Solver mode of placements, one of `SOLVER_MODES`."""
    samples: int | None = None
    """Samples, instead of the budget's; None: the budget decides."""
    seconds: float | None = None
    """Seconds beside `samples`, where these are given; None: no limit."""
    control: str | None = None
    """Control arm where learning starts instead, one of `CONTROLS`."""
    name: str = "finetuned"

    def __post_init__(self) -> None:
        check_solver_mode(self.solver)
        check_control(self.control)
        if self.samples is not None and self.samples < 1:
            raise SearchError(f"fine-tuning: samples must be >= 1, not {self.samples}")

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan seen while learning; see `go_rl.core.Optimizer`."""
        return self._search(problem, budget, seed)[0]

    def learn(
        self, problem: Problem, budget: Budget, seed: int, workspace: Workspace | None = None
    ) -> tuple[Plan, Agent]:
        """Return the best plan seen, and the agent after the whole budget.

        A ring's ``workspace`` with a pricer of its own lets the policy learn from other prices than
        the simulator's, such as measured ones.

        Raises:
            TrainingError: a reward or gradient is not finite.
        """
        return self._search(problem, budget, seed, workspace, to_the_end=True)

    def _search(
        self,
        problem: Problem,
        budget: Budget,
        seed: int,
        workspace: Workspace | None = None,
        to_the_end: bool = False,
    ) -> tuple[Plan, Agent]:
        """Return the best plan seen, and the agent after its last update."""
        start = self.agent or shipped_agent(problem.objective)
        if self.samples is not None:
            budget = Budget(self.samples, self.seconds)
        if start.config.kind in SEARCHES:
            search = SEARCHES[start.config.kind](start, self.control, name=self.name)
            return search.learn(problem, budget, seed)
        agent = controlled(start, self.control, seed)
        config = self.config or FINE_TUNING[agent.config.kind]
        decoder = plan_decoder(problem, agent.config.kind, workspace, self.solver)
        progress = Progress(budget, OPEN_SAMPLES, to_the_end=to_the_end)
        incumbent = Incumbent(decoder.workspace, progress)
        learner = new_learner(agent.params, config.ppo)
        with ending_early():
            if decoder.start(incumbent, seed):
                lesson = _Lesson(
                    TrainingCase(problem.graph.name, decoder),
                    decoder.groups[0],
                    config,
                    incumbent,
                    progress,
                    seed,
                    Carried(decoder.workspace.reference_seconds),
                )
                lesson.as_given(agent)
                for each in lesson.learn(agent, learner):
                    learner = each
        plan = finish_plan(decoder.workspace, incumbent, self.name, seed, progress)
        return noted(plan, self.control, agent), agent.having(learner.params)


@dataclass(frozen=True, eq=False)
class _Lesson:
    """One run of fine-tuning."""

    case: TrainingCase
    group: str
    config: FineTuneConfig
    incumbent: Incumbent
    progress: Progress
    seed: int
    carried: Carried

    def as_given(self, agent: Agent) -> None:
        """Sample the policy as it came."""
        if not self.progress.spent:
            noise = np.ones(self.config.first, np.float32)
            noise[0] = 0.0
            decoder = self.case.decoder
            actions, found = decoder.sample(agent, self.group, noise, self.seed)
            self._offer(decoder.proposals(actions, noise), found, len(noise))

    def _offer(self, proposals: ProposalArrays, rollouts: Rollouts, size: int) -> None:
        """Count the samples of a batch that the budget pays for."""
        count = int(min(size, self.progress.remaining_samples))
        self.carried.offer(proposals, rollouts, count)
        fidelity = partial(self.case.decoder.fidelity, proposals, rollouts)
        self.incumbent.offer_scored(rollouts.priced, range(count), fidelity)

    def learn(self, agent: Agent, learner: Learner) -> Iterator[Learner]:
        """Collect and update until the budget is spent; no batch is begun for which the seconds
        that are left do not suffice. Yields the learner after each update."""
        config, progress, sizes = self.config, self.progress, {self.group: self.config.batch}
        credit, memory = Credit(config.top), Memory(config.remembered)
        rounds, quickest = 0, 0.0
        while not progress.spent and quickest <= progress.remaining_seconds:
            began = progress.wall_seconds
            key = int(np.random.SeedSequence((self.seed, rounds)).generate_state(1)[0])
            case = replace(self.case, start=self.carried.start)
            found = collect(agent.having(learner.params), case, sizes, credit, key)
            rollouts = found.rollouts[self.group]
            self._offer(found.proposals[self.group], rollouts, config.batch)
            if rounds:  # the first batch compiles; later ones are faster
                took = progress.wall_seconds - began
                quickest = min(quickest or took, took)
            if not progress.spent and quickest <= progress.remaining_seconds:
                lessons = memory.lessons(found.batch, rollouts.reward)
                batches = [split_samples(batch) for batch in lessons]
                learner, _ = update(agent.policy, config.ppo, on_all_devices(learner), batches)
                yield learner
            rounds += 1
