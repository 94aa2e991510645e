"""`optimize`: placement, schedule and fusion of a model on connected devices, in one plan; and
`fine_tune_step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.options import OptimizeOptions, check_type, options_from
from go_rl.api.partition import fixed_nodes, load
from go_rl.core import (
    TASKS,
    Hardware,
    NodeId,
    Objective,
    OpGraph,
    Optimizer,
    Problem,
    ProblemError,
    load_hardware,
    task_names,
)
from go_rl.core.errors import nearest
from go_rl.policy.names import SHIPPED_NAMES
from go_rl.train.config import FineTuneConfig

if TYPE_CHECKING:
    from go_rl.cost import CostModel
    from go_rl.policy.agent import Agent
    from go_rl.policy.weights import Weights
    from go_rl.portfolio.portfolio import Result
    from go_rl.readers.model_options import Inputs

DEFAULT_STEP_HARDWARE = "p100x4"
"""Hardware when the user names none."""


def optimize(
    model: OpGraph | str | Path,
    hardware: str | Path | Hardware | None = None,
    tasks: str | Sequence[str] | None = None,
    *,
    memory: bool = True,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Decide where, in which order and in which kernels the operators of a model run.

    Args:
        model: a graph, or what `go_rl.load` reads; training graphs are welcome.
        hardware: a preset's name, a JSON file or a `Hardware` with fully connected devices; by
            default ``p100x4``.
        tasks: some of ``placement``, ``schedule``, ``fusion``, as names or with commas between;
            by default all that make sense.
        memory: whether weights and live tensors must fit.
        fixed: devices of nodes that must not move, by node name.
        dims: values for symbolic dimensions of a model given by name.
        inputs: shapes of its inputs by name, another way to give these (see `go_rl.load`).
        report: called with a sentence as each method starts.
        options: fields of `OptimizeOptions`.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl.portfolio import portfolio

    chosen = options_from(OptimizeOptions, options, "optimize")
    graph = model if isinstance(model, OpGraph) else load(model, dims, inputs=inputs)
    problem = step_problem(graph, hardware, tasks, memory, fixed, chosen.cost)
    agent = _agent(chosen)
    extra: tuple[Optimizer, ...] = ()
    if chosen.finetune:
        from go_rl.train.fine_tune import FineTuned

        extra = (FineTuned(agent, samples=chosen.finetune),)
    return portfolio.run(problem, chosen.method, chosen.budget, chosen.seed, report, extra, agent)


def fine_tune_step(
    model: OpGraph | str | Path,
    hardware: str | Path | Hardware | None = None,
    tasks: str | Sequence[str] | None = None,
    *,
    memory: bool = True,
    samples: int = 200,
    config: FineTuneConfig | None = None,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Result, Weights]:
    """Go on training a step policy on one model; return the plans and the trained weights.

    Args:
        model, hardware, tasks, memory, fixed, dims, inputs, report: as for `optimize`.
        samples: plans to learn from.
        config: how it learns.
        options: fields of `OptimizeOptions`: ``cost``, ``weights``, ``seed``.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl.api.fine_tuning import learn, tuned_card
    from go_rl.policy.weights import Weights, load_weights
    from go_rl.train.fine_tune import FineTuned

    allowed = ("cost", "weights", "seed")
    chosen = options_from(OptimizeOptions, options, "fine_tune_step", allowed)
    graph = model if isinstance(model, OpGraph) else load(model, dims, inputs=inputs)
    problem = step_problem(graph, hardware, tasks, memory, fixed, chosen.cost)
    before = load_weights(chosen.weights, Objective.MAKESPAN)
    learner = FineTuned(before.agent, config=config)
    result, agent = learn(problem, learner, samples, chosen.seed, report)
    card = tuned_card(before, problem, samples) | {"tasks": list(problem.tasks)}
    return result, Weights(agent, f"{before.name}+{graph.name}", card)


def step_problem(
    graph: OpGraph,
    hardware: str | Path | Hardware | None = None,
    tasks: str | Sequence[str] | None = None,
    memory: bool = True,
    fixed: Mapping[NodeId, int] | None = None,
    cost: str | CostModel = "auto",
) -> Problem:
    """Return the priced problem that `optimize` solves; arguments as there."""
    from go_rl.cost import ProblemOptions, make_problem, named_cost

    check_type(memory, bool, "memory")
    hardware = DEFAULT_STEP_HARDWARE if hardware is None else hardware
    named = hardware if isinstance(hardware, Hardware) else load_hardware(hardware)
    chosen = ProblemOptions(
        objective=Objective.MAKESPAN,
        memory=memory,
        fixed=fixed_nodes(graph, fixed or {}),
        cost_model=named_cost(cost, named),
        tasks=named_tasks(tasks),
    )
    return make_problem(graph, named, chosen)


def named_tasks(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the tasks in ``placement,schedule,fusion`` or a sequence of names; None: all that
    make sense.

    Raises:
        ProblemError: nothing is named, or no task (the nearest is named).
    """
    if given is None:
        return None
    if not isinstance(given, str) and not (
        isinstance(given, Sequence) and all(isinstance(task, str) for task in given)
    ):
        raise ProblemError(f"tasks must be names, as a text or in a list, not {given!r}")
    tasks = tuple(name for name in task_names(given) if name)
    if not tasks:
        raise ProblemError(f"tasks: name some of {', '.join(TASKS)}, with commas between")
    for task in tasks:
        if task not in TASKS:
            near = nearest(task, TASKS)
            raise ProblemError(f"unknown task {task!r}{near} Tasks: {', '.join(TASKS)}")
    return tasks


def _agent(options: OptimizeOptions) -> Agent | None:
    """The policy that the user chose; None: the one that ships."""
    if options.weights == SHIPPED_NAMES[Objective.MAKESPAN]:
        return None
    from go_rl.policy.weights import load_weights

    return load_weights(options.weights, Objective.MAKESPAN).agent
