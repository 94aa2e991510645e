"""The registry of methods by objective and name, policies included."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from go_rl.core import Objective, Problem
from go_rl.objectives.common.kit import Factory
from go_rl.objectives.kits import KITS
from go_rl.objectives.methods import Greedy
from go_rl.policy.dispatch.dispatch_search import DispatchSearch
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.policy_search import PolicySearch

LEARNED: Mapping[str, Mapping[str, Factory]] = {
    "ring": {"policy": PolicySearch, "order-policy": OrderPolicySearch},
    "makespan": {"policy": PolicySearch, "dispatch-search": DispatchSearch},
}
"""Methods with a policy, by objective."""


def _methods(objective: Objective) -> dict[str, Factory]:
    search = KITS[objective].search()
    known: dict[str, Factory] = {"greedy": Greedy, **search.methods}
    found = {name: known[name] for name in search.references}
    return found | dict(LEARNED.get(objective.value, {})) | dict(search.methods)


METHODS: Mapping[Objective, Mapping[str, Factory]] = MappingProxyType(
    {objective: _methods(objective) for objective in Objective}
)
"""Optimizers by objective, and by the name that ``--method`` takes. The first of an objective is
the heuristic, whose plan comes first."""
ONE_DEVICE = "one-device"
"""The method whose plan, where several devices may be used, is what others are compared with."""


def methods_for(problem: Problem) -> tuple[str, ...]:
    """Return the names of the methods that work on the problem's objective."""
    return tuple(METHODS[problem.objective])
