"""Index expressions: where in a buffer a statement reads or writes, from the numbers of loops.

An expression is a whole number, a `LoopVariable` or an `IndexOperation` on two expressions. It is
kept in the form in which the compiler has it, for TVM's stride depends on that form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, Union

from go_rl.core import GoRLError
from go_rl.core.files.strict_json import shown


class NestError(GoRLError):
    """A loop nest breaks one of its rules, or cannot be made from what was given."""


OPERATIONS = ("+", "-", "*", "//", "%", "min", "max")
"""Names of the operations; ``//`` and ``%`` round down, by a divisor above 0."""
VARIABLE = "i"
"""Prefix of the JSON name of a loop's variable: ``i3`` is that of loop 3."""


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """The number of the iteration of a loop, from 0."""

    loop: int
    """Number of the loop, in pre-order."""


@dataclass(frozen=True, slots=True)
class IndexOperation:
    """Two expressions and what joins them."""

    kind: str
    """Kind of operation, one of `OPERATIONS`."""
    left: Index
    right: Index


Index: TypeAlias = Union[int, LoopVariable, IndexOperation]  # noqa: UP007 - refers to itself


def loops_in(index: Index) -> Iterator[int]:
    """Yield the number of each loop that an expression names, as often as it does."""
    if isinstance(index, LoopVariable):
        yield index.loop
    elif isinstance(index, IndexOperation):
        yield from loops_in(index.left)
        yield from loops_in(index.right)


def index_to_json(index: Index) -> object:
    """Return an expression as JSON: a number, ``"i3"``, or ``[operation, left, right]``."""
    if isinstance(index, int):
        return index
    if isinstance(index, LoopVariable):
        return f"{VARIABLE}{index.loop}"
    return [index.kind, index_to_json(index.left), index_to_json(index.right)]


def index_from_json(document: object) -> Index:
    """Read what `index_to_json` wrote.

    Raises:
        NestError: it is no expression.
    """
    if type(document) is int:
        return document
    if isinstance(document, str) and document[:1] == VARIABLE and document[1:].isdecimal():
        return LoopVariable(int(document[1:]))
    if isinstance(document, list) and len(document) == 3 and document[0] in OPERATIONS:
        return IndexOperation(
            document[0], index_from_json(document[1]), index_from_json(document[2])
        )
    raise NestError(
        f"an index is a whole number, a loop such as 'i3', or [operation, left, right] with one of "
        f"{', '.join(OPERATIONS)}, not {shown(document)}"
    )
