"""`PartitionCase`: one problem as the environment needs it, and the price of finished proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int16

from go_rl.core import Problem, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.envs.observation import GraphFeatures, graph_features
from go_rl.envs.rewards import REWARDS
from go_rl.objectives.ring.greedy import greedy_partition
from go_rl.simulate import Pricer, pricer
from go_rl.solvers import RingInstance, RingSolver, SolverOptions, ring_instance


@dataclass(frozen=True, eq=False)
class Outcome:
    """How an episode ended, before pricing."""

    status: Status
    """``ok`` for a legal partition that is still to be priced."""
    device: Int16[np.ndarray, "N"]
    """[N] its chips; -1 where there is none."""
    detail: str = ""
    """What failed and where, in words."""


@dataclass(frozen=True, eq=False)
class CaseResult:
    """How an episode ended, priced."""

    status: Status
    reward: float
    seconds: float
    """Seconds a step of the partition; inf for a failure."""
    baseline_seconds: float
    """What the reward compares with."""
    detail: str


class PartitionCase:
    """One problem; everything expensive is made when first needed and kept. Not thread-safe."""

    def __init__(
        self, problem: Problem, reward: str = "speed-up", failure_reward: float | None = None
    ) -> None:
        self.problem = problem
        self._reward, self._failure = REWARDS[reward], failure_reward
        self._solvers: list[RingSolver] = []

    @cached_property
    def features(self) -> GraphFeatures:
        """The fixed part of the observations."""
        return graph_features(self.problem)

    @cached_property
    def instance(self) -> RingInstance:
        """The problem reduced to blocks."""
        return ring_instance(self.problem)

    @cached_property
    def pricer(self) -> Pricer:
        """What prices partitions."""
        return pricer(self.problem)

    @cached_property
    def baseline_seconds(self) -> float:
        """Seconds a step of the compiler heuristic; where it fails, of everything on one chip."""
        device = np.asarray(greedy_partition(self.problem), np.int16)
        seconds = float(self.pricer.price(device[None])[0][0])
        return seconds if np.isfinite(seconds) else self.one_chip_seconds

    @property
    def one_chip_seconds(self) -> float:
        """The whole work, seconds a step."""
        return float(self.problem.work.sum())

    def solver(self, thread: int = 0) -> RingSolver:
        """Return the solver of one thread."""
        while len(self._solvers) <= thread:
            self._solvers.append(RingSolver(self.problem, SolverOptions(threads=1)))
        return self._solvers[thread]

    def price(self, outcomes: Sequence[Outcome]) -> list[CaseResult]:
        """Price finished episodes of this problem, all partitions at once."""
        legal = [i for i, outcome in enumerate(outcomes) if outcome.status.ok]
        seconds = np.full(len(outcomes), np.inf)
        status = [outcome.status for outcome in outcomes]
        if legal:
            devices = np.stack([outcomes[i].device for i in legal])
            seconds[legal], codes = self.pricer.price(devices)
            for i, code in zip(legal, codes.tolist(), strict=True):
                status[i] = STATUS_CODES[code]
        return [
            self._result(status[i], float(seconds[i]), outcomes[i].detail)
            for i in range(len(outcomes))
        ]

    def _result(self, status: Status, seconds: float, detail: str) -> CaseResult:
        proved = status is Status.INFEASIBLE
        baseline = self.one_chip_seconds if proved else self.baseline_seconds
        if not status.ok:
            seconds = np.inf
            detail = detail if proved else detail or status.sentence
        reward = float(self._reward(np.array([seconds]), baseline, self._failure)[0])
        return CaseResult(status, reward, seconds, baseline, detail)
