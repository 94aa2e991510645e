"""`Optimizer`: the protocol of all methods."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Protocol, runtime_checkable

from go_rl.core.errors import SearchError
from go_rl.core.evaluation import proved_optimal
from go_rl.core.plan import CurvePoint, Plan
from go_rl.core.problem import Problem
from go_rl.core.stopping import stop_asked

OPEN_SAMPLES = 10_000
"""Samples of a search without an end of its own when its budget counts seconds only."""


class Milestone(str):
    """A sentence about the search that stays on screen; others are replaced by the next one."""

    __slots__ = ()


MOST_SAMPLES = 10**15
"""Most samples of a budget, and most seconds where they are a whole number: beyond, floating-point
numbers no longer tell one from the next."""


@dataclass(frozen=True)
class Budget:
    """Limit of a run, in priced samples or in seconds: whichever is reached first."""

    samples: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.samples is None and self.seconds is None:
            raise SearchError("a budget needs samples, seconds or both")
        if self.samples is not None and self.samples < 1:
            raise SearchError(f"budget: samples must be >= 1, not {self.samples}")
        if self.samples is not None and self.samples > MOST_SAMPLES:
            raise SearchError(f"budget: samples must be at most {MOST_SAMPLES:,}")
        if self.seconds is not None and not 0 < self.seconds < inf:
            raise SearchError(f"budget: seconds must be finite and > 0, not {self.seconds}")
        if isinstance(self.seconds, int) and self.seconds > MOST_SAMPLES:
            raise SearchError(f"budget: seconds must be at most {MOST_SAMPLES:,}")


@runtime_checkable
class Optimizer(Protocol):
    """Proposes a plan for a problem within a budget; deterministic in the seed when the budget
    counts samples only."""

    @property
    def name(self) -> str:
        """Name in tables and on the command line."""
        ...

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan found; a search that fails returns a plan whose status says so."""
        ...


@runtime_checkable
class Compiled(Protocol):
    """An `Optimizer` with something to compile for each size of problem."""

    def prepare(self, problem: Problem) -> None:
        """Compile, so that no budget pays for it."""
        ...


@runtime_checkable
class Restartable(Protocol):
    """An `Optimizer` that improves a given plan."""

    def with_start(self, plan: Plan) -> Optimizer:
        """Return the same method, to start from a legal plan for the same problem."""
        ...


@runtime_checkable
class Cooled(Protocol):
    """An `Optimizer` whose moves grow more careful as its budget is spent."""

    def with_cooling(self, budget: Budget) -> Optimizer:
        """Return the same method, as careful after ``budget`` as at the end of its own one."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An `Optimizer` that goes on where it was when its budget was spent."""

    def with_memory(self, memory: dict[str, Any]) -> Optimizer:
        """Return the same method, which keeps its state in ``memory`` and goes on from there."""
        ...


@runtime_checkable
class PolicyMethod(Protocol):
    """An `Optimizer` with a policy, a dataclass: both fields can be replaced."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def agent(self) -> Any:
        """The policy; None: the one that ships."""
        ...

    @property
    def control(self) -> str | None:
        """Control arm that decides in the policy's place; see `go_rl.policy.controls`."""
        ...


@dataclass
class Progress:
    """Counts priced samples against a budget and keeps the best-so-far curve."""

    budget: Budget
    open_samples: int | None = None
    """Samples when the budget counts seconds only; None: no limit."""
    started: float = field(default_factory=lambda: time.perf_counter())
    samples: int = 0
    best: float = float("inf")
    curve: list[CurvePoint] = field(default_factory=list)
    bound: float = 0.0
    """Proven lower bound on the objective, seconds: a best value that meets it ends the search."""
    to_the_end: bool = False
    """Search to the end of the budget instead; learners do, which return the weights."""

    @property
    def wall_seconds(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.started

    @property
    def spent(self) -> bool:
        """True when the budget is used up, the best plan is proven optimal, or the user asked to
        stop."""
        over = self.remaining_samples <= 0 or self.remaining_seconds <= 0 or stop_asked()
        return over or (self.proved and not self.to_the_end)

    @property
    def proved(self) -> bool:
        """True when the best value is the optimum, by the bound known so far."""
        return proved_optimal(self.best, self.bound)

    @property
    def remaining_samples(self) -> float:
        """Samples still allowed (inf when not limited)."""
        limit = self.budget.samples or self.open_samples
        return float("inf") if limit is None else float(limit - self.samples)

    @property
    def remaining_seconds(self) -> float:
        """Seconds still allowed (inf when not limited)."""
        limit = self.budget.seconds
        return float("inf") if limit is None else limit - self.wall_seconds

    def affordable(self, sample_seconds: float, most: int) -> int:
        """Return how many samples, 1 to ``most``, fit into the seconds that are left when one takes
        ``sample_seconds``; inf: not known yet."""
        left = self.remaining_seconds
        if left == float("inf"):
            return most
        return int(min(max(left / sample_seconds, 1.0), most)) if sample_seconds > 0 else most

    @property
    def share(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        share = self.samples / (self.samples + self.remaining_samples)
        if self.budget.seconds is not None:
            share = max(share, self.wall_seconds / self.budget.seconds)
        return min(1.0, share)

    def share_of(self, budget: Budget | None) -> float:
        """Return the share of another budget that is used up, 0 to 1; None: of this one."""
        if budget is None:
            return self.share
        share = 0.0 if budget.samples is None else self.samples / budget.samples
        if budget.seconds is not None:
            share = max(share, self.wall_seconds / budget.seconds)
        return min(1.0, share)

    def raise_bound(self, bound: float) -> None:
        """Take over a proven lower ``bound``, seconds, where it is above the one known so far."""
        self.bound = max(self.bound, bound)

    def record(self, value: float, samples: int = 1) -> bool:
        """Count ``samples`` priced plans, the best worth ``value``; True when it is a new best."""
        self.samples += samples
        improved = value < self.best
        if improved:
            self.best = value
            self.curve.append(CurvePoint(self.samples, self.wall_seconds, value))
        return improved
