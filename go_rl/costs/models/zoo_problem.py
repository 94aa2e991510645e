"""`priced_problem`: a named problem of the zoo as the problem that methods solve."""

from __future__ import annotations

from go_rl.core import Objective, Problem, load_hardware, rule_set
from go_rl.costs.models.make_problem import ProblemOptions, make_problem
from go_rl.costs.models.registry import named_cost
from go_rl.graphs.zoo import zoo_graph
from go_rl.graphs.zoo.problems import RULES, ZooProblem


def priced_problem(named: ZooProblem, cost: str = "analytical") -> Problem:
    """Return the problem, with memory checked, priced by a cost model (`named_cost`).

    Raises:
        ZooError: the zoo has no such graph.
        HardwareError: no such hardware, or nothing was learned for it.
        ProblemError: no such cost model.
    """
    hardware = load_hardware(named.hardware)
    objective = Objective(named.objective)
    options = ProblemOptions(
        objective=objective,
        rules=rule_set(RULES if objective.traits.has_rules else "default"),
        memory=True,
        all_chips=named.all_chips,
        cost_model=named_cost(cost, hardware),
        decisions=named.decisions,
    )
    return make_problem(zoo_graph(named.graph), hardware, options)
