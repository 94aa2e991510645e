"""The rule by which every rival is trained until it stops improving.

A fit of twice the length is made, from the start and with its schedule to the end, until the error
on tasks that were not learned from falls by less than `LEVEL`; the best fit counts. Early stopping
inside one fit would stop learning rates that have not fallen yet, and has no meaning for trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from go_rl.costs.learning.splits import by_task
from go_rl.costs.programs.learn.examples import ProgramExamples

LEVEL = 0.02
"""Share of the error by which a doubling must lower it."""
Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Converged(Generic[Fitted]):
    """The best of several fits."""

    best: Fitted
    length: int
    """Updates, or trees, of the best."""
    level: bool
    """Whether the last doubling brought less than `LEVEL`; else the longest fit allowed did not."""


def converged(
    fit: Callable[[int], Fitted], judge: Callable[[Fitted], float], first: int, most: int
) -> Converged[Fitted]:
    """Double the length of a fit, in updates or trees, from ``first`` to at most ``most``, until
    its error on the tasks that judge is level."""
    length, level = first, False
    found = Converged(fit(first), first, level)
    least = judge(found.best)
    while 2 * length <= most and not level:
        length *= 2
        longer = fit(length)
        error = judge(longer)
        level = error > (1 - LEVEL) * least
        if error < least:
            found, least = Converged(longer, length, level), error
    return replace(found, level=level)


def judging_tasks(examples: ProgramExamples, seed: int) -> tuple[ProgramExamples, ProgramExamples]:
    """Return the programs that are learned from, and those of a tenth of the tasks, which judge."""
    split = by_task(examples.inputs.task, seed)
    learned = np.concatenate([split.train, split.test])
    judges = split.validation[
        np.isin(examples.inputs.leaves[split.validation], examples.inputs.leaves[learned])
    ]
    return examples.take(learned), examples.take(judges)
