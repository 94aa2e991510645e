"""`OrderPolicySearch`: the search over orders of a ring's units, from what the policy draws for the
problem (``--method order-policy``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from go_rl.core import Budget, Objective, Plan, PolicyError, Problem
from go_rl.objectives.ring.methods.order_search import OrderSearch
from go_rl.policy.agent import Agent
from go_rl.policy.config import check_control
from go_rl.policy.controls import controlled, noted
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.orders.orders_plans import OrdersPlans
from go_rl.policy.prototypes.plans import preferred, with_first
from go_rl.policy.weights import shipped_agent


@dataclass(frozen=True, eq=False)
class OrderPolicySearch:
    """`Optimizer`: the policy's prototypes, the preferred first, then `OrderSearch` from the best
    of them."""

    agent: Agent | None = None
    """None: the weights that ship with the package."""
    control: str | None = None
    """Control arm from which the search starts, one of `CONTROLS`."""
    memory: dict[str, Any] | None = None
    """Where the search is kept, so that it goes on from there; None: it begins anew."""
    name: str = "order-policy"

    def __post_init__(self) -> None:
        check_control(self.control)

    def prepare(self, problem: Problem) -> None:
        """Compile for graphs of this size, where the network has a say.

        Raises:
            CheckpointError: the weights cannot be read.
            PolicyError: the weights are not those of an orders policy, or the graph is larger than
                any bucket.
        """
        plans = _plans(problem)
        if plans.decides:
            preferred(self._agent(0), plans)

    def with_memory(self, memory: dict[str, Any]) -> OrderPolicySearch:
        """Return the same method, which goes on where ``memory`` says (`Resumable`)."""
        return replace(self, memory=memory)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan; see `go_rl.core.Optimizer`."""
        return self.learn(problem, budget, seed)[0]

    def learn(self, problem: Problem, budget: Budget, seed: int) -> tuple[Plan, Agent]:
        """Return the best plan, and the agent with the best weights as first prototypes."""
        agent, plans = self._agent(seed), _plans(problem)
        memory = {} if self.memory is None else self.memory
        first = preferred(agent, plans) if plans.decides and not memory else None
        plan = OrderSearch(first, memory, self.name).optimize(problem, budget, seed)
        if plans.decides:
            agent = with_first(agent, memory["search"].search.finds)
        return noted(plan, self.control, agent), agent

    def _agent(self, seed: int) -> Agent:
        agent = self.agent or shipped_agent(Objective.RING)
        if agent.config.kind != "orders":
            raise PolicyError(
                f"{self.name} searches the weights of an orders policy, not of a "
                f"{agent.config.kind} policy; give others by --weights"
            )
        return controlled(agent, self.control, seed)


def _plans(problem: Problem) -> OrdersPlans:
    found = plan_decoder(problem, "orders")
    assert isinstance(found, OrdersPlans)
    return found
