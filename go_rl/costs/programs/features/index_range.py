"""Bounds and strides of index expressions, by TVM's rules.

Bounds are exact for an affine expression, and TVM's approximation elsewhere: the two sides of an
operation count as independent. A remainder is taken for what it is where all loops stand at 0, for
TVM's extractor fixes the loops' variables there before it widens their bounds, and its analysis of
divisibility, which narrows the bounds of remainders, is not told that they run. Strides are TVM's
too, which reads them from the form of the expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from go_rl.costs.programs.nests import Index, IndexOperation, LoopVariable
from go_rl.costs.programs.nests.index import loops_in

Bounds = tuple[int, int]
"""Least and greatest value."""


def index_bounds(index: Index, loops: Mapping[int, Bounds]) -> Bounds:
    """Return the bounds of an expression, given those of each loop's variable."""
    if isinstance(index, int):
        return index, index
    if isinstance(index, LoopVariable):
        return loops[index.loop]
    left, right = index_bounds(index.left, loops), index_bounds(index.right, loops)
    if index.kind == "%":
        return _remainder(left, right[0], _residue(index.left))
    return _joined(index.kind, left, right)


def _joined(kind: str, left: Bounds, right: Bounds) -> Bounds:
    if kind == "+":
        return left[0] + right[0], left[1] + right[1]
    if kind == "-":
        return left[0] - right[1], left[1] - right[0]
    if kind == "min":
        return min(left[0], right[0]), min(left[1], right[1])
    if kind == "max":
        return max(left[0], right[0]), max(left[1], right[1])
    if kind == "//":
        return left[0] // right[0], left[1] // right[0]
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _remainder(left: Bounds, divisor: int, residue: Residue) -> Bounds:
    step = gcd(residue.step, divisor)
    if step > 1:
        least = residue.base % divisor
        return least, (divisor - step + least) % divisor
    if left[0] < 0:
        return 0, divisor - 1
    return left if left[1] < divisor else (0, min(left[1], divisor - 1))


@dataclass(frozen=True, slots=True)
class Residue:
    """The numbers ``step * n + base``: of step 0, one number."""

    step: int
    base: int

    @staticmethod
    def of(step: int, base: int) -> Residue:
        """Return the numbers with the base in [0, step)."""
        return Residue(abs(step), base % abs(step) if step else base)


ANY = Residue(1, 0)


def _residue(index: Index) -> Residue:
    """Return the numbers among which an expression is while all loops stand at 0."""
    if isinstance(index, int):
        return Residue(0, index)
    if isinstance(index, LoopVariable):
        return Residue(0, 0)
    left = _residue(index.left)
    if index.kind in ("//", "%"):
        assert isinstance(index.right, int)
        return _divided(index.kind, left, index.right)
    right = _residue(index.right)
    if index.kind in "+-":
        sign = 1 if index.kind == "+" else -1
        return Residue.of(gcd(left.step, right.step), left.base + sign * right.base)
    if index.kind == "*":
        mixed = gcd(left.step * right.base, right.step * left.base)
        return Residue.of(gcd(left.step * right.step, mixed), left.base * right.base)
    return Residue.of(gcd(left.step, right.step, left.base - right.base), left.base)


def _divided(kind: str, left: Residue, divisor: int) -> Residue:
    if kind == "%":
        step = gcd(left.step, divisor)
        known = left.base % step == 0 or left.base > 0
        return Residue.of(step, left.base % step) if known else ANY
    if left.step % divisor or left.base < 0:
        return ANY
    return Residue.of(left.step // divisor, left.base // divisor)


def bounds_by_level(index: Index, around: Sequence[tuple[int, int]]) -> list[Bounds]:
    """Return, for each loop around a statement, the bounds of an expression while that loop and
    those inside of it run and the others stand at 0.

    Args:
        index: the expression.
        around: number and extent of each loop, the outermost first; at least one.
    """
    named = frozenset(loops_in(index))
    running: dict[int, Bounds] = {number: (0, 0) for number, _ in around}
    bounds = index_bounds(index, running)
    levels: list[Bounds] = []
    for number, extent in reversed(around):
        if number in named:
            running[number] = (0, extent - 1)
            bounds = index_bounds(index, running)
        levels.append(bounds)
    return levels[::-1]


@dataclass
class _Stride:
    """Stride seen so far: of the variable, and of the sums and products after it."""

    loop: int
    stride: int = 0
    seen: bool = False
    added: bool = False
    multiplied: bool = False

    def visit(self, index: Index) -> None:
        if isinstance(index, LoopVariable) and index.loop == self.loop:
            self.seen, self.stride = True, 2
        if not isinstance(index, IndexOperation):
            return
        self.visit(index.left)
        self.visit(index.right)
        if index.kind == "*" and self.seen and not self.added:
            for side in (index.left, index.right):
                if isinstance(side, int):
                    self.multiplied, self.stride = True, side
                    return
        if index.kind == "+" and self.seen and not self.multiplied:
            self.added, self.stride = True, 1


def index_stride(index: Index, loop: int) -> int:
    """Return the stride of a loop in an expression; 0: it does not depend on the loop.

    It is the factor of the last product at or behind the variable where no sum comes first, else
    1: TVM's reading, which differs from the coefficient where products nest.
    """
    found = _Stride(loop)
    found.visit(index)
    if not found.seen:
        return 0
    return found.stride if found.added or found.multiplied else 1
