"""`ObjectiveKit`: everything that one objective brings along; a row of `go_rl.objectives.kits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int16, Int64

from go_rl.core import Budget, Objective, Optimizer, Plan, Problem, Progress, Status
from go_rl.objectives.common.workspace import PlanningWorkspace, Workspace

Factory = Callable[[], Optimizer]
"""Makes a method."""
ConfirmMemory = Callable[
    [Problem, Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]],
    tuple[Status, Float64[np.ndarray, "D"]],
]
"""Looks for real memory offsets, given [N] homes and bit sets of copies; returns whether there are
any, and the bytes used on each device."""
WorkAndCopied = tuple[Float64[np.ndarray, "N"], Bool[np.ndarray, "N"]]


def _always(problem: Problem, budget: Budget) -> bool:
    return True


def _no_least(problem: Problem) -> float:
    return 0.0


class Turn(NamedTuple):
    """One method of the portfolio ``auto``."""

    name: str
    share: float
    """Share of a round."""
    suits: Callable[[Problem, Budget], bool] = _always
    least: Callable[[Problem], float] = _no_least
    """Seconds of the shortest turn; shorter ones are left out."""
    pace: float = 0.0
    """Samples a second on a graph of one node, roughly; where it is given, turns are counted in
    samples, so that what they do depends on no clock."""
    lightest: float = 0.25
    """Least factor on the share where the method does not better the plan."""
    learned: str | None = None
    """Method that takes this turn where policies may decide."""
    given: str | None = None
    """Policy of which the user gives weights, or there is no such turn; None: no weights needed."""


class PartCompilation(Protocol):
    """Context of one run that compiles an objective's code in parts."""

    @property
    def first_run(self) -> bool:
        """Whether something must be compiled on this machine."""
        ...

    def __enter__(self) -> PartCompilation: ...

    def __exit__(self, *raised: object) -> None: ...

    def need(self, *parts: str) -> None:
        """Have parts compiled."""
        ...


@dataclass(frozen=True)
class SearchKit:
    """Methods of one objective, and what running them takes."""

    methods: Mapping[str, Factory]
    """Methods by name, without `references` of `go_rl.objectives.methods` and without policies."""
    references: tuple[str, ...]
    """Methods that always run first: the heuristic, then what others are compared with."""
    turns: tuple[Turn, ...]
    """Turns of ``auto`` after the heuristic, round by round."""
    exhaust: Callable[[Problem, str, int, Progress], Plan]
    """Tries all assignments; see `go_rl.objectives.methods.Exhaustive`."""
    is_small: Callable[[Problem], bool]
    """Whether all assignments of devices can be tried."""
    in_one_round: bool = False
    """Whether methods do not start from a plan: one round of ``auto`` takes the whole budget."""
    compilation: Callable[[Problem, Callable[[str], None]], PartCompilation] | None = None
    """Compiles the code in parts, and tells of it; None: each method compiles its own."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parts of ``compilation`` by the first method that needs them."""
    confirm_memory: ConfirmMemory | None = None
    """Finds memory offsets of the best plan; None: live bytes are all that is checked."""


@dataclass(frozen=True)
class EnvironmentTraits:
    """Environments of one objective."""

    workspace: Callable[[Problem], PlanningWorkspace]
    """Makes a workspace of one environment's own."""
    work: Callable[[Problem], WorkAndCopied]
    """Returns seconds of each node as observed, and the nodes that are never decided."""
    actions: tuple[str, ...]
    """Forms of an action. ``node``: decisions for the next node. ``relative``: whether the next
    node stays on the highest chip that is used so far, or advances to the one after it. ``all``:
    decisions for every node at once. ``fix``: a chip for every node, repaired by FIX. ``sample``:
    log-probabilities for every node, drawn by SAMPLE."""
    reward: str
    """Name of the reward, unless it is given."""
    decides_fed: bool
    """Whether an action for all nodes decides inputs and constants too."""
    shaped: tuple[str, ...] = ()
    """Forms of an action that rewards of potentials work with."""


@dataclass(frozen=True)
class ObjectiveKit:
    """One objective's parts outside `go_rl.core.objective.TRAITS`."""

    objective: Objective
    workspace: Callable[[Problem], Workspace]
    """Returns the workspace that all methods of a problem share."""
    search: Callable[[], SearchKit]
    """Imports methods, which is slow, and returns them."""
    environment: EnvironmentTraits | None = None
    """Traits of environments; None: there are none."""
