"""The configurations of step policies as flags: without what only policies of rings read, and with
sets of tasks that can be typed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, TypeVar

import tyro

from go_rl.core import ProblemError
from go_rl.train.config import FineTuneConfig, MakespanTrainConfig, PPOConfig

T = TypeVar("T", FineTuneConfig, MakespanTrainConfig)
TaskSets = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class StepPPO(PPOConfig):
    """One update."""

    placement_entropy: Annotated[float, tyro.conf.Suppress] = PPOConfig.placement_entropy
    """Not read: a step policy has one entropy."""


def _task_sets(words: list[str]) -> TaskSets:
    """Read ``placement,schedule,fusion placement``; a ValueError, for tyro, names a wrong task."""
    from go_rl.api.joint import named_tasks

    try:
        return tuple(named_tasks(word) or () for word in words)
    except ProblemError as error:
        raise ValueError(str(error)) from error


TASK_SETS: tyro.constructors.PrimitiveConstructorSpec[TaskSets] = (
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="TASK,TASK [TASK,TASK ...]",
        instance_from_str=_task_sets,
        is_instance=lambda given: isinstance(given, tuple),
        str_from_instance=lambda sets: [",".join(tasks) for tasks in sets],
    )
)


@dataclass(frozen=True)
class StepTraining(MakespanTrainConfig):
    """One pretraining run; the same configuration and machine give the same weights."""

    tasks: Annotated[TaskSets, TASK_SETS] = MakespanTrainConfig.tasks
    """Sets of tasks, each as often as it is listed."""
    ppo: StepPPO = field(default_factory=lambda: StepPPO(**asdict(MakespanTrainConfig().ppo)))
    """The learner."""


@dataclass(frozen=True)
class StepLearner(FineTuneConfig):
    """How a step policy learns on one graph."""

    ppo: StepPPO = field(default_factory=lambda: StepPPO(**asdict(FineTuneConfig().ppo)))
    """The learner."""


def plain(kind: type[T], given: T) -> T:
    """Return the flags of a step policy as the configuration that the library knows."""
    values: dict[str, Any] = {f.name: getattr(given, f.name) for f in fields(kind)}
    values["ppo"] = PPOConfig(**asdict(given.ppo))
    return kind(**values)
