"""Rounds of doubling length: which method of ``auto`` runs next, and for how long.

The length and the seed of every turn follow from what came before it, never from the whole budget.
So a run with more samples does what a run with fewer does, and then goes on. With more seconds too,
as far as turns are counted in samples; ideal-dp, composed and CP-SAT look at the clock. The best
plan is kept, hence more never ends worse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from go_rl.core import Budget, Plan, Problem, Progress
from go_rl.objectives.common.kit import Turn

FIRST_SAMPLES = 64
"""Samples of the first round."""
FIRST_SECONDS = 1.0
"""Seconds of the first round, for graphs of up to `MIDDLING` nodes; in proportion beyond."""
MIDDLING = 4000
FAVOUR = 2.0
"""Factor on the share of a method that bettered the plan; others lose as much."""
HEAVIEST = 2.0
"""Most of the product of these factors; the least is the turn's (`Turn.lightest`)."""
EARLY = 0.45
"""Share of its seconds before which a method that stops has nothing more to try."""


@dataclass(frozen=True)
class Portion:
    """One method's part of one round."""

    turn: Turn
    round: int
    """0 for the first."""
    budget: Budget
    """Budget of the portion, however little of the whole budget is left."""

    def seed(self, seed: int) -> int:
        """Return the seed of this round: the user's in the first."""
        if self.round == 0:
            return seed
        return int(np.random.SeedSequence([seed, self.round]).generate_state(1)[0] >> 1)

    def within(self, progress: Progress) -> Budget:
        """Return the budget, or what is left of the whole one."""
        samples, seconds = progress.remaining_samples, progress.remaining_seconds
        if self.budget.samples is not None:
            samples = min(samples, self.budget.samples)
        if self.budget.seconds is not None:
            seconds = min(seconds, self.budget.seconds)
        return Budget(
            samples=max(1, int(samples)) if np.isfinite(samples) else None,
            seconds=max(1e-3, seconds) if np.isfinite(seconds) else None,
        )


@dataclass
class Rounds:
    """The turns still to come; ask for the next, then say how it ended."""

    turns: tuple[Turn, ...]
    """Turns in their order; those that have nothing more to try are taken out."""
    first: Budget
    """Length of the first round."""
    problem: Problem
    number: int = 0
    """Rounds begun."""
    _weight: dict[str, float] = field(default_factory=dict)
    _queue: list[Portion] = field(default_factory=list)
    _idle: bool = False
    """No turn of this round used its time."""

    def next(self) -> Portion | None:
        """Return the next portion; None: no method has anything more to try."""
        while not self._queue:
            if self._idle or not self.turns:
                return None
            self._queue = list(self._round())
            self.number += 1
            # Where seconds count, methods that need longer rounds will get them.
            self._idle = self.first.seconds is None or bool(self._queue)
        return self._queue.pop(0)

    def drop(self, portion: Portion) -> None:
        """Leave a method out from now on."""
        self.turns = tuple(turn for turn in self.turns if turn.name != portion.turn.name)

    def close(self, portion: Portion, plan: Plan, better: bool) -> None:
        """Say what a turn found, and whether it is better than what was known."""
        name = portion.turn.name
        weight = self._weight.get(name, 1.0) * (FAVOUR if better else 1 / FAVOUR)
        self._weight[name] = min(max(weight, portion.turn.lightest), HEAVIEST)
        if not _ended_early(portion.budget, plan):
            self._idle = False
        elif plan.evaluation.status.ok:
            self.drop(portion)

    def _round(self) -> Iterable[Portion]:
        """Turns of a round; what helped last comes first, as the last round is often cut short."""
        turns = sorted(self.turns, key=lambda turn: -self._weight.get(turn.name, 1.0))
        shares = [turn.share * self._weight.get(turn.name, 1.0) for turn in turns]
        for turn, share in zip(turns, shares, strict=True):
            length = 2**self.number * share / sum(shares)
            seconds = None if self.first.seconds is None else length * self.first.seconds
            if seconds is None or seconds >= turn.least(self.problem):
                yield Portion(turn, self.number, self._budget(turn, length, seconds))

    def _budget(self, turn: Turn, length: float, seconds: float | None) -> Budget:
        """The length of a turn, in samples where they can stand for its seconds."""
        counts = [] if self.first.samples is None else [length * self.first.samples]
        if seconds is not None and turn.pace:
            counts.append(seconds * turn.pace / max(self.problem.graph.num_nodes, 1))
            seconds = None
        return Budget(samples=max(1, int(min(counts))) if counts else None, seconds=seconds)


def first_round(problem: Problem, budget: Budget) -> Budget:
    """Return the length of the first round, in what the budget counts."""
    size = max(1.0, problem.graph.num_nodes / MIDDLING)
    return Budget(
        samples=None if budget.samples is None else FIRST_SAMPLES,
        seconds=None if budget.seconds is None else FIRST_SECONDS * size,
    )


def joined(first: Plan, second: Plan, own: bool = True) -> Plan:
    """Return the better of two plans that a method found one after the other, with the samples,
    seconds and improvements of both; not ``own``: the second is no more than it started from."""
    best = second if own and second.value < first.value else first
    later = [
        replace(
            point,
            samples=point.samples + first.samples,
            wall_seconds=point.wall_seconds + first.wall_seconds,
        )
        for point in second.curve
        if own and point.seconds < first.value
    ]
    return replace(
        best,
        bound=min(max(first.bound, second.bound), best.value),
        samples=first.samples + second.samples,
        wall_seconds=first.wall_seconds + second.wall_seconds,
        curve=(*first.curve, *later),
        seed=first.seed,
    )


def _ended_early(budget: Budget, plan: Plan) -> bool:
    enough = budget.samples is not None and plan.samples >= budget.samples
    long = budget.seconds is not None and plan.wall_seconds >= EARLY * budget.seconds
    return not (enough or long)
