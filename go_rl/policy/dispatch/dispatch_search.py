"""`DispatchSearch`: a search over the weights of a dispatcher's heads on the graph at hand, from
what the policy draws for it (``--method dispatch-search``, and what fine-tuning does)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from go_rl.core import OPEN_SAMPLES, Budget, Objective, Plan, PolicyError, Problem, Progress
from go_rl.core.stopping import ending_early
from go_rl.objectives.common.cross_entropy import BATCH, CrossEntropy
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.policy.agent import Agent
from go_rl.policy.config import check_control
from go_rl.policy.controls import controlled, noted
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.prototypes.plans import preferred, with_first
from go_rl.policy.weights import shipped_agent


@dataclass(frozen=True, eq=False)
class DispatchSearch:
    """`Optimizer`: the reference plan, the policy's prototypes, the preferred first, then the
    cross-entropy method from the best of them, until it has come to its end; with `memory`, it
    begins anew around the best weights then, for as long as it is asked."""

    agent: Agent | None = None
    """None: the weights that ship with the package."""
    control: str | None = None
    """Control arm from which the search starts, one of `CONTROLS`."""
    memory: dict[str, Any] | None = None
    """State of an earlier search to go on from, and to be kept up to date; None: begin anew."""
    name: str = "dispatch-search"

    def __post_init__(self) -> None:
        check_control(self.control)

    def prepare(self, problem: Problem) -> None:
        """Compile for graphs of this size.

        Raises:
            PolicyError: the weights are not those of a dispatch policy.
            CheckpointError: the weights cannot be read.
        """
        agent, plans = self._agent(0), _plans(problem)
        if plans.decides:
            plans.dispatch.decide(preferred(agent, plans)[:1])

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; see `go_rl.core.Optimizer`."""
        return self.learn(problem, budget, seed)[0]

    def learn(self, problem: Problem, budget: Budget, seed: int) -> tuple[Plan, Agent]:
        """Return the best plan found, and the agent with the best weights as first prototypes."""
        agent, plans = self._agent(seed), _plans(problem)
        # Encoding compiles, which no budget pays for; it takes milliseconds afterwards.
        search = self._search(agent, plans, seed) if plans.decides else None
        progress = Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(plans.workspace, progress)
        if plans.start(incumbent, seed) and search is not None:
            sample_seconds = float("inf")
            with ending_early():
                while not progress.spent and self._goes_on(search):
                    sample_seconds = _step(search, plans, incumbent, progress, sample_seconds)
            agent = with_first(agent, search.finds)
        plan = finish_plan(plans.workspace, incumbent, self.name, seed, progress)
        return noted(plan, self.control, agent), agent

    def with_memory(self, memory: dict[str, Any]) -> DispatchSearch:
        """Return the same method, which goes on where ``memory`` says (`Resumable`)."""
        return replace(self, memory=memory)

    def _search(self, agent: Agent, plans: DispatchPlans, seed: int) -> CrossEntropy:
        memory = {} if self.memory is None else self.memory
        if "search" not in memory:
            memory["search"] = CrossEntropy(preferred(agent, plans), seed)
        return memory["search"]

    def _goes_on(self, search: CrossEntropy) -> bool:
        """Whether there is more to try; a search that is kept has all the time it is given."""
        if search.settled and self.memory is not None:
            search.begin_anew()
        return not search.settled

    def _agent(self, seed: int) -> Agent:
        agent = self.agent or shipped_agent(Objective.MAKESPAN)
        if agent.config.kind != "dispatch":
            raise PolicyError(
                f"{self.name} searches the weights of a dispatch policy, not of a "
                f"{agent.config.kind} policy; give others by --weights"
            )
        return controlled(agent, self.control, seed)


def _plans(problem: Problem) -> DispatchPlans:
    found = plan_decoder(problem, "dispatch")
    assert isinstance(found, DispatchPlans)
    return found


def _step(
    search: CrossEntropy, plans: DispatchPlans, incumbent: Incumbent, progress: Progress,
    sample_seconds: float,
) -> float:  # fmt: skip
    """Price what is left of a batch, at most `BATCH` and as many as the budget has when one takes
    ``sample_seconds``; return the seconds that one took."""
    most = int(min(BATCH, max(progress.remaining_samples, 1)))
    began = progress.wall_seconds
    scored = plans.dispatch.evaluate(search.ask()[: progress.affordable(sample_seconds, most)])
    incumbent.offer_scored(scored)
    search.tell(scored.seconds)
    return (progress.wall_seconds - began) / len(scored.seconds)
