"""FLOP of an Einstein summation, for every reader that has one."""

from __future__ import annotations

import math
from collections.abc import Sequence


def einsum(equation: str, shapes: Sequence[Sequence[int]], result_rank: int) -> float:
    """Pairwise contractions from left to right, each ``2 *`` the product of its letters.

    Raises:
        ValueError: the equation does not fit the shapes.
    """
    equation = equation.replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    named: list[set[str]] = []
    for term, shape in zip(terms, shapes, strict=True):
        letters = _letters(term, len(shape))
        for letter, size in zip(letters, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
        named.append(set(letters))
    if "->" in equation:
        out = set(_letters(right, result_rank))
    else:
        joined = "".join(terms)
        out = {x for letters in named for x in letters if len(x) > 1 or joined.count(x) == 1}
    return _contract(named, out, sizes)


def _letters(term: str, rank: int) -> list[str]:
    head, dots, tail = term.partition("...")
    spread = rank - len(head) - len(tail) if dots else 0
    return [*head, *(f"...{spread - i}" for i in range(spread)), *tail]


def _contract(named: list[set[str]], out: set[str], sizes: dict[str, int]) -> float:
    def volume(letters: set[str]) -> float:
        return float(math.prod(sizes[x] for x in letters))

    total, current = 0.0, named[0]
    if len(named) == 1:
        return volume(current) - volume(current & out)
    for i, other in enumerate(named[1:], start=1):
        needed = out.union(*named[i + 1 :]) if i + 1 < len(named) else out
        joint = current | other
        contracted = (current & other) - needed
        total += (2.0 if contracted else 1.0) * volume(joint)
        current = joint & needed
    return total
