"""`problem_for`: a model's graph, hardware and options as the problem that methods solve; and
`problem_of` a plan."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path

from go_rl.api.options import HardwareChoice, OptimizeOptions, PlanningOptions
from go_rl.core import (
    Hardware,
    HardwareError,
    NodeId,
    Objective,
    OpGraph,
    Plan,
    PlanError,
    Problem,
    ProblemError,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.core.objective import OF_LINKS

OWN_HARDWARE = "file"
"""The hardware that a file of dnn-partitioning or Piper brings with it."""


def problem_for(
    graph: OpGraph,
    options: PlanningOptions | None = None,
    fixed: Mapping[NodeId, int] | None = None,
) -> Problem:
    """Return the problem that `optimize` solves.

    Args:
        graph: the model's.
        options: hardware, objective, decisions, rules, memory and cost; None: the defaults.
        fixed: devices of nodes that must not move, by node name.

    Raises:
        GoRLError: bad input, also an option that has no meaning for the objective.
    """
    from go_rl.costs.models import ProblemOptions, make_problem, named_cost

    options = options or OptimizeOptions()
    given = None if options.objective is None else Objective(options.objective)
    objective, chosen = _objective_and_hardware(graph, options.hardware, given)
    options.check_for(objective)
    wanted = ProblemOptions(
        objective=objective,
        rules=rule_set(options.rules),
        memory=options.memory,
        all_chips=isinstance(options, OptimizeOptions) and options.all_chips,
        fixed=fixed_nodes(graph, fixed or {}),
        cost_model=named_cost(options.cost, chosen),
        decisions=options.decisions,
        colocation=options.colocate,
    )
    return make_problem(graph, chosen, wanted)


def _objective_and_hardware(
    graph: OpGraph, hardware: HardwareChoice, objective: Objective | None
) -> tuple[Objective, Hardware]:
    """The user's, or what the links of the hardware, the model file and the graph suggest."""
    if hardware is None:
        objective = objective or _objective_of(graph)
        return objective, _default_hardware(graph, objective)
    chosen = hardware if isinstance(hardware, Hardware) else _named_hardware(graph, hardware)
    suggested = OF_LINKS.get(chosen.links.topology, Objective.MAX_LOAD)
    if suggested.traits.is_replayed and _brings_hardware(graph):
        suggested = Objective.MAX_LOAD
    return objective or suggested, chosen


def _objective_of(graph: OpGraph) -> Objective:
    """Profiles suggest max-load; training graphs move data both ways, which a ring does not."""
    if _brings_hardware(graph) or (graph.seconds and not graph.has_flops):
        return Objective.MAX_LOAD
    return Objective.MAKESPAN if graph.is_backward.any() else Objective.RING


def _default_hardware(graph: OpGraph, objective: Objective) -> Hardware:
    if objective.traits.topology is None and _brings_hardware(graph):
        return _named_hardware(graph, OWN_HARDWARE)
    return load_hardware(objective.traits.hardware)


def _named_hardware(graph: OpGraph, name: str | Path) -> Hardware:
    from go_rl.costs.models import file_hardware

    if name != OWN_HARDWARE:
        return load_hardware(name)
    own = file_hardware(graph)
    if own is None:
        raise HardwareError(
            f"--hardware {OWN_HARDWARE}: {graph.name!r} brings no hardware of its own; only "
            "JSON of dnn-partitioning or Piper does. Name a preset such as "
            f"{Objective.RING.traits.hardware!r}"
        )
    return own


def _brings_hardware(graph: OpGraph) -> bool:
    return "accelerators" in graph.meta


def problem_of(plan: Plan, graph: OpGraph) -> Problem:
    """Return the problem that a plan says it solves, rebuilt on ``graph``.

    Raises:
        PlanError: the plan's hardware, objective or cost model is malformed.
        CheckpointError, RecordError: what its cost model learned or measured is not here.
    """
    from go_rl.costs.models import ProblemOptions, make_problem, named_cost
    from go_rl.costs.models.registry import AUTO, FORMS, WORDS, is_cost

    if plan.cost_model == AUTO or not is_cost(plan.cost_model):
        raise PlanError(
            f"the plan's cost_model is {plan.cost_model!r}{nearest(plan.cost_model, WORDS)} "
            f"It must be one of {', '.join(FORMS[1:])}"
        )
    if plan.objective not in list(Objective):
        raise PlanError(f"the plan's objective {plan.objective!r} is unknown")
    try:
        hardware = Hardware.from_json(plan.hardware, "the plan's hardware")
        options = ProblemOptions(
            objective=Objective(plan.objective),
            rules=rule_set(plan.rules),
            memory=plan.memory,
            all_chips=plan.all_chips,
            fixed=plan.fixed,
            cost_model=named_cost(plan.cost_model, hardware),
            colocation=_colocation_of(plan, graph),
            allow_training=True,
        )
    except (HardwareError, ProblemError) as error:
        raise PlanError(str(error)) from error
    return make_problem(graph, hardware, options)


def _colocation_of(plan: Plan, graph: OpGraph) -> str:
    """The colocation that the plan was made with; the graph's own where it is of another graph."""
    from go_rl.graphs.cutting.colocation import COLOCATIONS, with_colocation

    made = (each for each in COLOCATIONS if with_colocation(graph, each).digest == plan.graph_hash)
    return next(made, "graph")


def fixed_nodes(graph: OpGraph, fixed: Mapping[NodeId, int]) -> dict[int, int]:
    """Return devices by node index for devices by node name.

    Raises:
        ProblemError: the graph has no such node (the nearest is named), or a device is no number.
    """
    if not isinstance(fixed, Mapping):
        raise ProblemError(f"fixed must be devices by node name, such as {{'x': 0}}, not {fixed!r}")
    for name, device in fixed.items():
        if isinstance(name, bool) or not isinstance(name, int | str) or name not in graph.index:
            near = nearest(str(name), [str(n) for n in graph.names])
            raise ProblemError(f"fixed: {graph.name!r} has no node {name!r}{near}")
        if isinstance(device, bool) or not isinstance(device, Integral) or device < 0:
            raise ProblemError(
                f"fixed: the device of {name!r} must be an index >= 0, not {device!r}"
            )
    return {graph.index[name]: int(device) for name, device in fixed.items()}
