"""Tables of operators: names in rows of words, and one row for all operators of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Rule = TypeVar("Rule")


def names(words: str) -> frozenset[str]:
    """Return the names in a text, divided by spaces."""
    return frozenset(words.split())


def by_name(rows: Mapping[str, Rule]) -> dict[str, Rule]:
    """Return the rule of each operator from rows such as ``{"Add Sub": rule}``."""
    return {name: rule for words, rule in rows.items() for name in words.split()}
