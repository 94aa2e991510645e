"""How long-running functions report progress."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

Progress = Callable[[int, int, str], None]
"""Receives the work that is done, all of it, and a sentence."""


def ignore(done: int, total: int, sentence: str) -> None:
    """Report nothing."""


def count_updates(
    progress: Progress, members: int, updates: int
) -> Callable[[int, int, float], None]:
    """Return what an ensemble of networks, trained one after the other, reports its loss to."""

    def report(member: int, update: int, loss: float) -> None:
        sentence = f"network {member + 1}/{members}, update {update}, loss {loss:.4f}"
        progress(member * updates + update, members * updates, sentence)

    return report


def one_by_one(progress: Progress, total: int) -> Callable[[str], None]:
    """Return what functions that tell a sentence whenever one more is done report to."""
    done = count(1)
    return lambda sentence: progress(next(done), total, sentence)


def of_total(progress: Progress, total: int) -> Callable[[int, str], None]:
    """Return what functions that know only how much is done report to."""
    return lambda done, sentence: progress(done, total, sentence)
