"""`optimize`: a model in, the best plan that a portfolio of methods finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.load import graph_of
from go_rl.api.options import (
    FIT,
    FOR_NAMES,
    HardwareChoice,
    OptimizeOptions,
    check_objective,
    objective_of,
    options_from,
)
from go_rl.api.problem import problem_for
from go_rl.core import NodeId, OpGraph, Optimizer, Problem, SearchError
from go_rl.core.errors import nearest

if TYPE_CHECKING:
    from go_rl.compare.portfolio import Result as Result
    from go_rl.graphs.readers.model_options import Inputs


def optimize(
    model: OpGraph | str | Path,
    hardware: HardwareChoice = None,
    *,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    micro_batches: int | None = None,
    for_: str | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Decide where, in which order and in which kernels the operators of a model run.

    Args:
        model: a graph, or what `go_rl.load` reads.
        hardware: a preset's name, a JSON file, a `Hardware`, or ``"file"`` for the hardware that
            the model file brings along.
        fixed: devices of nodes that must not move, by node name, or by a pattern such as
            ``encoder/*``.
        dims: values for symbolic dimensions of a model given by name.
        inputs: shapes of its inputs by name, another way to give these (see `go_rl.load`).
        micro_batches: parts of the batch of a training iteration given by name (see there).
        for_: tool that counts whole layers, one of `FOR_NAMES`: only plans that it can be told are
            looked for, by `LayerCuts` in place of a method.
        report: called with a sentence as each method starts.
        options: further fields of `OptimizeOptions`.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl.compare.portfolio import run, run_fit

    chosen = options_from(OptimizeOptions, {"hardware": hardware, **options}, "optimize")
    graph = graph_of(model, dims, inputs=inputs, micro_batches=micro_batches)
    problem = problem_for(graph, chosen, fixed)
    if for_ is not None:
        return _for_layers(problem, for_, chosen, fixed, report)
    agent = None
    if chosen.weights is not None:
        from go_rl.policy.weights import load_weights

        agent = load_weights(chosen.weights, problem.objective).agent
    extra = _extra_methods(problem, chosen, agent)
    budget, seed = chosen.budget, chosen.seed
    search = run_fit if chosen.objective == FIT else run
    return search(problem, chosen.method, budget, seed, report, extra, agent, chosen.control)


def _for_layers(
    problem: Problem,
    sink: str,
    options: OptimizeOptions,
    fixed: Mapping[NodeId, int] | None,
    report: Callable[[str], None] | None,
) -> Result:
    """The best plan of whole layers after the reference plans, which it need not beat."""
    from go_rl.api.plans.check_split import pipelined
    from go_rl.plans.splits.layer_cuts import optimize_layers
    from go_rl.plans.splits.notations import STAGED

    if sink not in FOR_NAMES:
        raise SearchError(f"no tool {sink!r}{nearest(sink, FOR_NAMES)} Use {', '.join(FOR_NAMES)}")
    unused = {"method", "weights", "control", "finetune", "expert"}
    given = [f.name for f in fields(options)
             if f.name in unused and getattr(options, f.name) != f.default]  # fmt: skip
    if given or options.objective == FIT:
        raise SearchError(
            f"--for {sink} has a search of its own; leave out {', '.join(given) or 'objective fit'}"
        )
    posed = pipelined(problem, options, fixed) if sink in STAGED else problem
    return optimize_layers(posed, sink, options.budget, options.seed, report)


def methods(objective: Any) -> tuple[str, ...]:
    """Return the names of the methods that work on an objective, the heuristic first.

    Raises:
        ProblemError: there is no such objective.
    """
    from go_rl.compare.portfolio import METHODS

    check_objective(str(objective))
    return tuple(METHODS[objective_of(str(objective))])


def _extra_methods(problem: Problem, options: OptimizeOptions, agent: Any) -> tuple[Optimizer, ...]:
    """Methods that only some users ask for, in the order in which they run."""
    extra: list[Optimizer] = []
    if options.finetune:
        from go_rl.policy.learn.fine_tune import FineTuned

        extra.append(
            FineTuned(
                agent, samples=options.finetune, seconds=options.seconds, control=options.control
            )
        )
    if options.expert is not None:
        from go_rl.objectives.methods import Expert
        from go_rl.plans.splits import read_split

        split = read_split(options.expert, problem.graph, problem.hardware)
        extra.append(Expert(dict(zip(problem.graph.names, split.device.tolist(), strict=True))))
    return tuple(extra)
