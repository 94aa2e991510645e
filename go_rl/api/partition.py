"""The Python twin of the command line: `load`, `trace`, `partition`, `fine_tune`, `check`; and
`execute`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from go_rl.api.options import PartitionOptions, check_type, options_from
from go_rl.core import (
    FREE,
    Hardware,
    HardwareError,
    NodeId,
    Objective,
    OpGraph,
    Optimizer,
    Plan,
    PlanError,
    Problem,
    ProblemError,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.policy.names import SHIPPED_NAMES
from go_rl.train.config import FineTuneConfig
from go_rl.verify.check_plan import Verdict, check_plan

if TYPE_CHECKING:
    from go_rl.policy.agent import Agent
    from go_rl.policy.weights import Weights
    from go_rl.portfolio.portfolio import Result
    from go_rl.readers.model_options import Inputs, Unknown
    from go_rl.run import Executed

DEFAULT_HARDWARE = "ring36"
"""Hardware when the user names none and the model brings none."""
OWN_HARDWARE = "file"
"""The hardware that a dnn-partitioning file brings with it."""


def load(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: bool = False,
    *,
    inputs: Inputs | None = None,
    trip_count: int | None = None,
    weights: Collection[int] | None = None,
) -> OpGraph:
    """Read a model file, ``module:function`` or ``zoo:NAME`` into a graph.

    See `go_rl.readers.load` for files, functions and arguments, ``go-rl zoo list`` for the names.

    Raises:
        ReadError: see there; also ``dims`` or ``training`` with a graph of the zoo.
        ZooError: the zoo has no such graph.
    """
    from go_rl.zoo.load_model import load_model

    told = {"inputs": inputs, "trip_count": trip_count, "weights": weights}
    return load_model(model, dims, unknown, training, **told)


def trace(
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    weights: Collection[int] | None = None,
    trip_count: int | None = None,
    **kwargs: Any,
) -> OpGraph:
    """Return the graph of a JAX function at these arguments; nothing is computed.

    Args:
        function: anything `jax.make_jaxpr` traces.
        args, kwargs: pytrees of arrays or `jax.ShapeDtypeStruct`.
        name: of the graph; the function's own by default.
        weights: positions of the arguments that are weights (see `readers.jax_reader.trace_jax`).
        trip_count: trips of every ``while`` whose count depends on the inputs.
    """
    from go_rl.readers.jax.inline import JaxOptions
    from go_rl.readers.jax.reader import trace_jax
    from go_rl.readers.model_options import with_trips

    options, dims = JaxOptions(trip_count=trip_count), with_trips({}, trip_count)
    return trace_jax(
        function, *args, name=name, weights=weights, options=options, dims=dims, **kwargs
    )


def partition(
    model: OpGraph | str | Path,
    hardware: str | Path | Hardware | None = None,
    *,
    memory: bool | None = None,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Place every operator of a model on a chip; the result's ``best`` is the plan to follow.

    Args:
        model: a graph, or what `load` reads.
        hardware: a preset's name, a JSON file, a `Hardware`, or ``"file"``; by default the hardware
            that the model file brings along, and else ``ring36``.
        memory: whether weights and live tensors must fit; None: unless a profile is used on
            another machine than its own.
        fixed: chips of nodes that must not move, by node name.
        dims: values for symbolic dimensions of a model given by name.
        inputs: shapes of its inputs by name, another way to give these (see `load`).
        report: called with a sentence as each method starts.
        options: fields of `PartitionOptions`.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    chosen = options_from(PartitionOptions, options, "partition")
    graph = model if isinstance(model, OpGraph) else load(model, dims, inputs=inputs)
    problem = problem_for(graph, hardware, chosen, memory, fixed)
    from go_rl.portfolio import portfolio

    extra = () if chosen.expert is None else (_expert(chosen.expert, problem),)
    agent = _agent(chosen)
    if chosen.finetune:
        from go_rl.train.fine_tune import FineTuned

        extra = (FineTuned(agent, samples=chosen.finetune), *extra)
    return portfolio.run(problem, chosen.method, chosen.budget, chosen.seed, report, extra, agent)


def _agent(options: PartitionOptions) -> Agent | None:
    """The policy that the user chose; None: the one that ships."""
    if options.weights == SHIPPED_NAMES[Objective.RING]:
        return None
    from go_rl.policy.weights import load_weights

    return load_weights(options.weights, Objective.RING).agent


def fine_tune(
    model: OpGraph | str | Path,
    hardware: str | Path | Hardware | None = None,
    *,
    memory: bool | None = None,
    samples: int = 200,
    task: str = "order",
    config: FineTuneConfig | None = None,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Result, Weights]:
    """Go on training a policy on one model; return the plans and the trained weights.

    Args:
        model, hardware, memory, fixed, dims, inputs, report: as for `partition`.
        samples: plans to learn from.
        task: ``order`` (scores, cut by dynamic programming) or ``placement`` (chips).
        config: how it learns.
        options: fields of `PartitionOptions`: ``rules``, ``cost``, ``weights``, ``seed``.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl.api.fine_tuning import learn, tuned_card
    from go_rl.policy.weights import Weights, load_weights
    from go_rl.train.fine_tune import FineTuned

    allowed = ("rules", "cost", "weights", "seed")
    chosen = options_from(PartitionOptions, options, "fine_tune", allowed)
    graph = model if isinstance(model, OpGraph) else load(model, dims, inputs=inputs)
    problem = problem_for(graph, hardware, chosen, memory, fixed)
    before = load_weights(chosen.weights, Objective.RING)
    learner = FineTuned(before.agent, task, config)
    result, agent = learn(problem, learner, samples, chosen.seed, report)
    card = tuned_card(before, problem, samples) | {"rules": problem.rules.name}
    return result, Weights(agent, f"{before.name}+{graph.name}", card)


def _expert(path: str, problem: Problem) -> Optimizer:
    from go_rl.search import Expert, read_split

    return Expert(read_split(path, problem))


def problem_for(
    graph: OpGraph,
    hardware: str | Path | Hardware | None = None,
    options: PartitionOptions | None = None,
    memory: bool | None = None,
    fixed: Mapping[NodeId, int] | None = None,
) -> Problem:
    """Return the priced problem that `partition` solves; arguments as there."""
    from go_rl.cost import ProblemOptions, make_problem, named_cost

    check_type(memory, bool | None, "memory")
    options = options or PartitionOptions()
    hardware = _hardware_for(graph, hardware, Objective(options.objective))
    chosen = ProblemOptions(
        objective=Objective(options.objective),
        rules=rule_set(options.rules),
        memory=memory,
        all_chips=options.all_chips,
        fixed=fixed_nodes(graph, fixed or {}),
        cost_model=named_cost(options.cost, hardware),
    )
    return make_problem(graph, hardware, chosen)


def check(plan: Plan | str | Path, model: OpGraph | Problem | str | Path) -> Verdict:
    """Judge a plan independently of whoever made it.

    Args:
        plan: a plan, or the path of a plan.json.
        model: what the plan is for: a graph, a problem, or what `load` reads with the plan's dims.

    Raises:
        PlanError: the plan is malformed or belongs to another graph.
    """
    if not isinstance(plan, Plan | str | Path):
        raise PlanError(f"a plan is a Plan or the path of a plan.json, not {plan!r}")
    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    if not isinstance(model, OpGraph | Problem):
        model = load(model, plan.dims)
    return check_plan(plan, model if isinstance(model, Problem) else problem_of(plan, model))


def execute(
    plan: Plan | str | Path,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    weights: Collection[int] | None = None,
    repeats: int = 5,
    share: bool = False,
) -> Executed:
    """Run a JAX function on the devices that a plan names, and time it.

    Args:
        plan: made for ``trace(function, *args, **kwargs)``; or the path of its plan.json.
        function: what was traced.
        args, kwargs: its arguments, with real arrays.
        weights: as for `trace`.
        repeats: timed steps, after one that compiles and one to warm up.
        share: let several devices of the plan share one of JAX where there are too few.

    Raises:
        PlanError: the plan is malformed, a failure, or belongs to another graph.
        ExecutionError: JAX shows too few devices; the message says how to get more.
        ReadError: the function cannot be traced or cut.
    """
    from go_rl.run import execute as run

    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    return run(plan, function, args, kwargs, weights=weights, repeats=repeats, share=share)


def problem_of(plan: Plan, graph: OpGraph) -> Problem:
    """Return the problem that a plan says it solves, rebuilt on ``graph``.

    Raises:
        PlanError: the plan's hardware, objective or cost model is malformed.
        CheckpointError, RecordError: what its cost model learned or measured is not here.
    """
    from go_rl.cost import ProblemOptions, make_problem, named_cost
    from go_rl.cost.registry import AUTO, FORMS, WORDS, is_cost

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
            colocation=not _without_colocation(plan, graph),
            allow_training=True,
        )
    except (HardwareError, ProblemError) as error:
        raise PlanError(str(error)) from error
    return make_problem(graph, hardware, options)


def _without_colocation(plan: Plan, graph: OpGraph) -> bool:
    """Whether the plan was made with the graph's colocation classes switched off."""
    if plan.graph_hash == graph.digest:
        return False
    free = replace(graph, colocation=np.full(graph.num_nodes, FREE, np.int32))
    return plan.graph_hash == free.digest


def _hardware_for(
    graph: OpGraph, chosen: str | Path | Hardware | None, objective: Objective
) -> Hardware:
    from go_rl.cost import file_hardware

    if isinstance(chosen, Hardware):
        return chosen
    own = file_hardware(graph)
    if chosen is None and own is not None and objective is not Objective.RING:
        return own
    if chosen == OWN_HARDWARE:
        if own is None:
            raise HardwareError(
                f"--hardware {OWN_HARDWARE}: {graph.name!r} brings no hardware of its own; only "
                f"dnn-partitioning JSON does. Name a preset such as {DEFAULT_HARDWARE!r}"
            )
        return own
    return load_hardware(chosen or DEFAULT_HARDWARE)


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
