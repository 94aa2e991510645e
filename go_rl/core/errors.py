"""Every error that go_rl raises for bad input, a subclass for each package; words of messages."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable
from itertools import islice

NAMED = 3
"""Number of items that a message names."""


class GoRLError(Exception):
    """Base class of all errors raised by go_rl; the message is one clear sentence for the user."""


class GraphError(GoRLError):
    """An operator graph breaks one of its invariants (a cycle, a negative cost, no nodes)."""


class ReadError(GoRLError):
    """A model file or function cannot be read into a graph."""


class UnknownOperatorError(ReadError):
    """A model uses operators whose cost go_rl does not know."""


class HardwareError(GoRLError):
    """Hardware is unknown or described wrongly."""


class ProblemError(GoRLError):
    """Graph, hardware, objective and rules do not fit together."""


class PlanError(GoRLError):
    """A plan is malformed, belongs to another graph, or violates a rule of its problem."""


class SplitError(GoRLError):
    """A split is malformed, is of another model or hardware, or cannot be said in a notation."""


class SolverError(GoRLError):
    """A solver was called with arguments of the wrong shape or meaning."""


class SearchError(GoRLError):
    """An optimizer is unknown, or cannot work on this problem."""


class EnvironmentUseError(GoRLError):
    """A Gymnasium environment was configured or used wrongly."""


class ZooError(GoRLError):
    """The model zoo has no such graph or split, or its frozen files do not fit its index."""


class PolicyError(GoRLError):
    """A policy's configuration, weights or graph do not fit."""


class TrainingError(GoRLError):
    """Training cannot continue: a bad configuration, values that are not finite, a worker that
    died."""


class CheckpointError(GoRLError):
    """A checkpoint or weights file is missing, damaged or of another version."""


class ExecutionError(GoRLError):
    """A plan cannot be run here: too few devices."""


class RecordError(GoRLError):
    """A measurement is malformed, or the store of measurements cannot be read or written."""


class MissingDependencyError(GoRLError):
    """An optional dependency is needed; the message carries the command that installs it."""


LONGEST_WORD, MOST_CHOICES = 100, 5_000
"""Longest words that `nearest` compares: similarity takes time in the product of the lengths."""
NEAR = 0.65
"""Similarity (`difflib.SequenceMatcher`) from which a word counts as a misspelling;
``nope`` and ``unet`` reach 0.5."""
LEAST_BEGINNING = 3
"""Letters from which a prefix of a choice counts as near."""


def nearest(word: object, choices: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown ``word``: ``; did you mean 'x'?`` with the
    choice nearest to it, or a full stop when none is near. What follows is a new sentence.

    Near is a prefix of a choice, the shortest one first, or a misspelling (`NEAR`), in any case.
    """
    known = list(islice((c for c in choices if len(c) <= LONGEST_WORD), MOST_CHOICES))
    spelt = {choice.lower(): choice for choice in reversed(known)}
    text = str(word)[: LONGEST_WORD + 1].lower()
    match: list[str] = []
    if len(text.lstrip("-")) >= LEAST_BEGINNING:
        match = sorted((c for c in spelt if c.startswith(text)), key=len)
    match = match or difflib.get_close_matches(text, spelt, n=1, cutoff=NEAR)
    return f"; did you mean {spelt[match[0]]!r}?" if match else "."


def name_difference(things: Iterable[tuple[str, float]], excess: float) -> str:
    """Return which of some things, given with their bytes, makes the difference of ``excess``
    bytes: the smallest that is as large, else how many of the largest are."""
    sizes = sorted(((size, what) for what, size in things), reverse=True)
    enough = [(size, what) for size, what in sizes if size >= excess]
    if enough:
        size, what = min(enough)
        return f"the difference is {what}: without its {size:.6g} bytes all would fit"
    total, count = 0.0, 0
    while total < excess and count < len(sizes):
        total, count = total + sizes[count][0], count + 1
    return f"no single one is the difference of {excess:.6g} bytes; the {count} largest are"


def name_largest(things: Iterable[tuple[str, float]]) -> str:
    """Return ``weights of 'a' 9e+06, result of 'b' 300``: the `NAMED` largest of some things with
    their bytes, of equal ones the first; empty when all are 0 bytes."""
    heavy = ((what, size) for what, size in things if size > 0)
    largest = heapq.nlargest(NAMED, heavy, key=lambda thing: thing[1])
    return ", ".join(f"{what} {size:.6g}" for what, size in largest)
