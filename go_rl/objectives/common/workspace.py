"""`Workspace`: what an objective offers to all methods and environments; made once per problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Int16, Int64

from go_rl.core import Evaluation, Plan, Problem, Status
from go_rl.core.decisions import Decisions, Legalized, Proposals, Scored
from go_rl.core.evaluation import failed

UNDECIDED = -1
"""Device, or priority, that has not been chosen."""


class Workspace(ABC):
    """Abstract: what every objective offers; see its own class for what else it has."""

    problem: Problem
    """Problem to solve."""

    @property
    @abstractmethod
    def target(self) -> float:
        """Bound that a value must meet to be the optimum; 0: none."""

    @property
    @abstractmethod
    def infeasible(self) -> Evaluation | None:
        """Evaluation that says why no plan exists, if that is easily proved; else None."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """A proven lower bound on the seconds of any plan, quick to compute."""

    @property
    @abstractmethod
    def reference(self) -> Decisions:
        """The reference plan: the compiler heuristic's."""

    @property
    @abstractmethod
    def reference_seconds(self) -> float:
        """Seconds of the reference plan; where it fails, of all work one after the other."""

    def failed(self, status: Status, detail: str = "") -> Evaluation:
        """Return a failure's evaluation; without detail it says what the status means."""
        return failed(status, self.problem.hardware.num_devices, detail or status.sentence)

    @abstractmethod
    def evaluate(self, decisions: Decisions) -> Scored:
        """Simulate a batch of plans."""

    @abstractmethod
    def detail(self, decisions: Decisions, row: int = 0) -> Evaluation:
        """Evaluate one plan in full."""

    def on(self, device: Int16[np.ndarray, "B N"], like: Plan | None = None) -> Decisions:
        """Return plans on devices [B, N], with the order and kernels of a plan where the objective
        has these; without one, operators in topological order, fused greedily."""
        return Decisions(device)

    @abstractmethod
    def with_copies(self, decisions: Decisions) -> Decisions:
        """Return one plan with its copies placed, for objectives that copy nodes."""


class PlanningWorkspace(Workspace):
    """Abstract: what environments need further; thread-safe after `prepare`."""

    @abstractmethod
    def prepare(self) -> None:
        """Build what `legalize` needs."""

    @abstractmethod
    def legalize(self, proposals: Proposals, seed: int = 0) -> Legalized:
        """Make proposals legal, as far as the objective's rules allow."""

    @abstractmethod
    def assignment(self) -> Assignment:
        """Return an empty assignment, which decides node by node."""


def first_usable(
    problem: Problem, found: Iterable[tuple[Decisions | None, Evaluation, *tuple[object, ...]]]
) -> Decisions:
    """Return the first plan that can run, else the first that could be placed, else everything on
    device 0."""
    placed = None
    for decisions, evaluation, *_ in found:
        if decisions is not None and evaluation.status.ok:
            return decisions
        placed = placed or decisions
    return placed or Decisions(np.zeros((1, problem.graph.num_nodes), np.int16))


class Assignment(Protocol):
    """A placement that is decided node by node."""

    @property
    def nodes(self) -> Int64[np.ndarray, "M"]:
        """[M] nodes that are decided, in topological order."""
        ...

    @property
    def device(self) -> Int16[np.ndarray, "N"]:
        """[N] the device of each node, or `UNDECIDED`."""
        ...

    @property
    def infeasible(self) -> Evaluation | None:
        """Evaluation that says why no plan exists, if that is proved; else None."""
        ...

    def reset(self) -> None:
        """Take back all decisions."""
        ...

    def possible(self, node: int) -> Bool[np.ndarray, "D"]:
        """Return [D] where a node may go, given the decisions so far."""
        ...

    def assign(self, node: int, device: int) -> str:
        """Put a node on a device; return why no legal plan can follow, or nothing."""
        ...

    def decisions(
        self, priority: Int64[np.ndarray, "N"], fusion: Int64[np.ndarray, "N"]
    ) -> Decisions:
        """Return the plan, once all nodes are assigned, with scheduling and fusion priorities."""
        ...
