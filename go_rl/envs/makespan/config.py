"""`StepConfig`: everything a user may choose about the makespan environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from go_rl.core import (
    TASKS,
    EnvironmentUseError,
    Hardware,
    Objective,
    OpGraph,
    Problem,
    load_hardware,
    task_names,
)
from go_rl.cost import ProblemOptions, make_problem, named_cost
from go_rl.envs.environment_config import (
    EnvironmentConfig,
    check_choice,
    check_reward,
    from_arguments,
)

STEP_ACTIONS = ("node", "all")
"""Forms of an action: decisions for the next node; decisions for every node at once."""


@dataclass(frozen=True, eq=False)
class StepConfig(EnvironmentConfig):
    """Configuration of the makespan environments; give ``problem`` or ``graph``."""

    actions = STEP_ACTIONS
    devices = "devices"

    hardware: str | Hardware = "p100x4"
    """Hardware, or the name of some, for ``graph``."""
    memory: bool = True
    """Whether weights and live tensors must fit, for ``graph``."""
    tasks: str | tuple[str, ...] | None = None
    """What is decided, some of `TASKS`, as names or with commas between; None: what the problem
    asks for, for ``graph`` all."""
    reward: str = "root"
    """Name of the reward (`go_rl.envs.rewards`)."""
    failure_reward: float | None = None
    """Reward of an episode that ends without a usable plan; None: as the reward has it."""

    def check_own_fields(self) -> None:
        """See `EnvironmentConfig`."""
        if self.tasks is not None:
            object.__setattr__(self, "tasks", task_names(self.tasks))
        for task in self.tasks or ():
            check_choice("task", task, TASKS)
        if self.tasks is not None and not self.tasks:
            raise EnvironmentUseError(f"tasks: name at least one of {list(TASKS)}")
        check_reward(self.reward, self.failure_reward)

    def price(self, graph: OpGraph) -> Problem:
        """Return the makespan problem of one graph."""
        devices = (
            self.hardware if isinstance(self.hardware, Hardware) else load_hardware(self.hardware)
        )
        options = ProblemOptions(
            objective=Objective.MAKESPAN,
            memory=self.memory,
            cost_model=named_cost(self.cost, devices),
            tasks=self.tasks or TASKS,
        )
        return make_problem(graph, devices, options)

    def check_problem(self, problem: Problem, first: Problem) -> None:
        """Raise an `EnvironmentUseError` for another objective or other tasks."""
        name, tasks = problem.graph.name, task_names(self.tasks or first.tasks)
        if problem.objective is not Objective.MAKESPAN:
            raise EnvironmentUseError(
                f"graph {name!r}: the objective is {problem.objective}; this environment "
                "shortens the makespan only"
            )
        if set(problem.tasks) != set(tasks):
            raise EnvironmentUseError(
                f"graph {name!r}: the problem's tasks are {', '.join(problem.tasks)}; this "
                f"environment decides {', '.join(tasks)}: make the problem with those tasks"
            )


def read_step_config(config: StepConfig | None, given: Mapping[str, Any]) -> StepConfig:
    """Return ``config``, or one made of keyword arguments.

    ``tasks``, which the registered environments give, may go with a ``config`` that agrees.

    Raises:
        EnvironmentUseError: both are given, or an argument is unknown (the nearest is named).
    """
    if config is None:
        return from_arguments(StepConfig, given)
    if others := sorted(set(given) - {"tasks"}):
        raise EnvironmentUseError(f"give config= or {others}, not both")
    tasks = given.get("tasks", config.tasks)
    mine, theirs = task_names(tasks or ()), task_names(config.tasks or ())
    if config.tasks is not None and set(mine) != set(theirs):
        raise EnvironmentUseError(
            f"config.tasks are {', '.join(theirs)}; this environment decides {', '.join(mine)}"
        )
    return replace(config, tasks=tasks)
