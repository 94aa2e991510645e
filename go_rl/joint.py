"""`optimize`: placement, schedule and fusion of a model on connected devices, in one plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api import DEFAULT_SECONDS, fixed_nodes, load
from go_rl.core import (
    Budget,
    NodeId,
    Objective,
    OpGraph,
    Optimizer,
    Package,
    Problem,
    SearchError,
)
from go_rl.core import (
    package as named_package,
)
from go_rl.core.errors import nearest
from go_rl.policy.names import DEFAULT_STEP_WEIGHTS

if TYPE_CHECKING:
    from go_rl.policy.step_agent import StepAgent
    from go_rl.portfolio import Result

DEFAULT_STEP_PACKAGE = "p100x4"
"""Hardware when the user names none."""


@dataclass(frozen=True)
class OptimizeOptions:
    """What `optimize` decides, and how long; the command line's flags of the same names."""

    method: str = "auto"
    """auto (a portfolio), all, or the name of one method (docs/step.md)."""
    samples: int | None = None
    """Stop after this many priced plans a method."""
    seconds: float | None = None
    """Stop after this many seconds (auto: in all; all: each method); 20 if no limit is given."""
    seed: int = 0
    """Of all randomness."""
    weights: str = DEFAULT_STEP_WEIGHTS
    """Policy: weights that ship with the package, or a file that go-rl train-step wrote."""
    finetune: int = 0
    """Plans to train the policy on this very graph with, before the search; 0: none."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SearchError(f"seed must be >= 0, not {self.seed}")
        if self.finetune < 0:
            raise SearchError(f"finetune must be >= 0, not {self.finetune}")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits as a `Budget`."""
        unlimited = self.samples is None and self.seconds is None
        return Budget(self.samples, DEFAULT_SECONDS if unlimited else self.seconds)


def optimize(
    model: OpGraph | str | Path,
    package: str | Path | Package | None = None,
    tasks: tuple[str, ...] | None = None,
    *,
    memory: bool = True,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Decide where, in which order and in which kernels the operators of a model run.

    Args:
        model: a graph, or what `go_rl.load` reads; training graphs are welcome.
        package: a preset's name, a JSON file or a `Package` with fully connected devices; by
            default ``p100x4``.
        tasks: some of ``placement``, ``schedule``, ``fusion``; by default all that make sense.
        memory: whether weights and live tensors must fit.
        fixed: devices of nodes that must not move, by node name.
        dims: values for symbolic dimensions of a model given by name.
        report: called with a sentence as each method starts.
        options: fields of `OptimizeOptions`.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl import portfolio

    allowed = [field.name for field in fields(OptimizeOptions)]
    for name in options:
        if name not in allowed:
            raise SearchError(f"unknown option {name!r}{nearest(name, allowed)}")
    chosen = OptimizeOptions(**options)
    graph = model if isinstance(model, OpGraph) else load(model, dims)
    problem = step_problem(graph, package, tasks, memory, fixed)
    agent = _agent(chosen)
    extra: tuple[Optimizer, ...] = ()
    if chosen.finetune:
        from go_rl.train.step_learning import StepFineTuned

        extra = (StepFineTuned(agent, samples=chosen.finetune),)
    return portfolio.run(problem, chosen.method, chosen.budget, chosen.seed, report, extra, agent)


def step_problem(
    graph: OpGraph,
    package: str | Path | Package | None = None,
    tasks: tuple[str, ...] | None = None,
    memory: bool = True,
    fixed: Mapping[NodeId, int] | None = None,
) -> Problem:
    """Return the priced problem that `optimize` solves; arguments as there."""
    from go_rl.cost import ProblemOptions, make_problem

    hardware = DEFAULT_STEP_PACKAGE if package is None else package
    chosen = ProblemOptions(
        objective=Objective.MAKESPAN,
        memory=memory,
        fixed=fixed_nodes(graph, fixed or {}),
        tasks=tasks,
    )
    named = hardware if isinstance(hardware, Package) else named_package(hardware)
    return make_problem(graph, named, chosen)


def _agent(options: OptimizeOptions) -> StepAgent | None:
    """The policy that the user chose; None: the one that ships."""
    if options.weights == DEFAULT_STEP_WEIGHTS:
        return None
    from go_rl.policy.step_weights import load_step_weights

    return load_step_weights(options.weights).agent
