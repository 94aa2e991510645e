"""`StepCase`: one makespan problem as the environment needs it, and the price of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core import TASKS, Problem, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.makespan.observation import UNDECIDED, step_features
from go_rl.envs.observation import GraphFeatures
from go_rl.envs.rewards import REWARDS
from go_rl.objectives.makespan.choices import Choices
from go_rl.objectives.makespan.workspace import MakespanWorkspace


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """How an episode ended, before pricing."""

    device: Int16[np.ndarray, "N"]
    """[N] devices chosen."""
    levels: Int64[np.ndarray, "N 2"]
    """[N, 2] scheduling and fusion priority of each node."""
    status: Status = Status.OK
    """``ok`` for a plan that is still to be priced."""
    detail: str = ""
    """What failed and where, in words."""


@dataclass(frozen=True, eq=False)
class StepResult:
    """How an episode ended, priced."""

    status: Status
    reward: float
    seconds: float
    """Makespan; inf for a failure."""
    baseline_seconds: float
    """Makespan of the default plan."""
    detail: str
    device: Int16[np.ndarray, "N"]
    """[N] device of each node."""
    priority: Int64[np.ndarray, "N"]
    """[N] larger first; 0 without the task schedule."""
    fusion_group: Int64[np.ndarray, "N"]
    """[N] lowest node of each node's kernel; the node itself without the task fusion."""


class StepCase:
    """One problem; everything expensive is made when first needed and kept. Not thread-safe."""

    def __init__(
        self, problem: Problem, reward: str = "root", failure_reward: float | None = None
    ) -> None:
        self.problem = problem
        self._reward, self._failure = REWARDS[reward], failure_reward
        self.workspace = MakespanWorkspace(problem)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What is decided, in the order of `TASKS`."""
        return tuple(task for task in TASKS if task in self.problem.tasks)

    @cached_property
    def features(self) -> GraphFeatures:
        """The fixed part of the observations."""
        return step_features(self.problem)

    @cached_property
    def choices(self) -> Choices:
        """Which devices each node may have."""
        return self.workspace.choices

    @cached_property
    def order(self) -> Int64[np.ndarray, "M"]:
        """[M] nodes that are decided, in topological order: all but inputs and constants."""
        return np.flatnonzero(~self.problem.graph.is_fed)

    def price(self, outcomes: Sequence[StepOutcome]) -> list[StepResult]:
        """Price finished episodes of this problem, all plans at once."""
        planned = [outcome for outcome in outcomes if outcome.status.ok]
        priced = iter(self._priced(planned) if planned else ())
        return [next(priced) if o.status.ok else self._lost(o) for o in outcomes]

    def _priced(self, outcomes: Sequence[StepOutcome]) -> list[StepResult]:
        workspace = self.workspace
        levels = np.stack([outcome.levels for outcome in outcomes])
        plans = workspace.decisions(
            np.stack([outcome.device for outcome in outcomes]), levels[:, :, 0], levels[:, :, 1]
        )
        priced = workspace.evaluate(plans)
        rewards = self._reward(priced.seconds, workspace.default_seconds, self._failure)
        own = np.arange(workspace.num_nodes)
        results = []
        for i in range(len(outcomes)):
            status = STATUS_CODES[int(priced.status[i])]
            results.append(
                StepResult(
                    status=status,
                    reward=float(rewards[i]),
                    seconds=float(priced.seconds[i]),
                    baseline_seconds=workspace.default_seconds,
                    detail="" if status.ok else status.sentence,
                    device=plans.device[i],
                    priority=own * 0 if plans.priority is None else plans.priority[i],
                    fusion_group=own if plans.kernel_leader is None else plans.kernel_leader[i],
                )
            )
        return results

    def _lost(self, outcome: StepOutcome) -> StepResult:
        nothing = np.full(self.workspace.num_nodes, UNDECIDED, np.int64)
        return StepResult(
            status=outcome.status,
            reward=self._reward.failure if self._failure is None else self._failure,
            seconds=np.inf,
            baseline_seconds=self.workspace.default_seconds,
            detail=outcome.detail,
            device=nothing.astype(np.int16),
            priority=nothing,
            fusion_group=nothing,
        )
