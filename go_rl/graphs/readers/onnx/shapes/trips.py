"""Trips of a `Loop` by its own condition, where that compares counters with constants.

A counter is the number of the trip, or a state of the loop to which each trip adds a constant.
Every scalar of the body that follows from counters is written as ``constant + slope * trip``, and
every comparison of them as the first trips at which it is false and true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from go_rl.graphs.readers.arithmetic.closed_forms import Comparison, first_failure
from go_rl.graphs.readers.onnx.costs.operators import RULES
from go_rl.graphs.readers.onnx.fold import constant_tensor, small_value
from go_rl.graphs.readers.onnx.scope import Scope
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS
from go_rl.graphs.tables import by_name, names

Trip = int | float
"""The number of a trip, or infinity."""


@dataclass(frozen=True)
class Truth:
    """First trips at which a condition is false, and at which it is true; infinite: never."""

    false_from: Trip
    """At most; the very trip where ``false_known``."""
    true_from: Trip = math.inf
    false_known: bool = True
    true_known: bool = True


UNKNOWN = Truth(math.inf, math.inf, false_known=False, true_known=False)
_ALWAYS, _NEVER = Truth(math.inf, 0), Truth(0, math.inf)


@dataclass(frozen=True)
class _Linear:
    """A whole number: a constant, and multiples of the trip ("") and of states by name."""

    constant: int
    slopes: Mapping[str, int]

    def plus(self, other: _Linear, times: int = 1) -> _Linear:
        slopes = {
            name: self.slopes.get(name, 0) + times * other.slopes.get(name, 0)
            for name in {*self.slopes, *other.slopes}
        }
        kept = {name: slope for name, slope in slopes.items() if slope}
        return _Linear(self.constant + times * other.constant, kept)

    def times(self, other: _Linear) -> _Linear | None:
        """The product with a constant; None: neither is one."""
        if other.slopes:
            return None if self.slopes else other.times(self)
        return _Linear(0, {}).plus(self, other.constant)


_TRIP = ""
_ARITHMETIC = names(
    "Add Cast CastLike Concat Div Identity Max Min Mod Mul Neg Range Reshape Squeeze Sub Unsqueeze"
)
"""Operators that make a number of the number of the trip."""
_Value = _Linear | Truth


def condition_of(node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope) -> Truth:
    """Return what the condition of a `Loop` is at the end of each trip.

    Args:
        node: the loop.
        body: its body, completed.
        scope: values before the loop.
        inner: values in its body.
    """
    states = [value.name for value in body.input][2:]
    results = [value.name for value in body.output]
    counter, going = (value.name for value in body.input[:2])
    linear: dict[str, _Value] = {counter: _Linear(0, {_TRIP: 1}), going: _ALWAYS}
    after = _values(body, inner, linear | {name: _Linear(0, {name: 1}) for name in states})
    for name, result, start in zip(states, results[1:], node.input[2:], strict=False):
        first, step = _constant(scope.constants.get(start)), after.get(result)
        if isinstance(first, _Linear) and isinstance(step, _Linear):
            found = _counter(name, first.constant, step)
            linear |= {name: found} if found else {}
    found = _values(body, inner, linear).get(results[0])
    return found if isinstance(found, Truth) else UNKNOWN


def sized_by_trip(body: onnx.GraphProto) -> bool:
    """Return whether the number of the trip sets up an operator of a body, such as a slice."""
    return _sized_by({body.input[0].name}, body)


def _sized_by(names: set[str], graph: onnx.GraphProto) -> bool:
    """Whether one of these numbers, or what follows from them, sets up an operator of a graph."""
    following = set(names)
    for node in graph.node:
        held = (a.g for a in node.attribute if a.HasField("g"))
        if any(_sized_by(following, inner) for inner in held):
            return True
        read = [p for p, name in enumerate(node.input) if name in following]
        rule = RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
        if rule is not None and not rule.settings.isdisjoint(read):
            return True
        if read and node.op_type in _ARITHMETIC:
            following.update(node.output)
    return False


def _counter(name: str, start: int, after: _Linear) -> _Linear | None:
    """A state by the trip, from its value after one; None: it is no counter."""
    if after.slopes == {name: 1}:
        return _Linear(start, {_TRIP: after.constant} if after.constant else {})
    slope = after.slopes.get(_TRIP, 0)
    # What the body makes of the trip alone is there one trip later: constant + slope * (trip - 1).
    follows = set(after.slopes) <= {_TRIP} and after.constant - slope == start
    return _Linear(start, after.slopes) if follows else None


def _values(body: onnx.GraphProto, inner: Scope, given: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the scalars of a body, in order, that follow from those ``given``."""
    found: dict[str, _Value] = dict(given)
    stored = ((t.name, _constant(small_value(t))) for t in body.initializer)
    found.update((name, value) for name, value in stored if value is not None)
    for node in body.node:
        if node.op_type == "Constant" and node.attribute[0].name != "ref":
            held = _constant(small_value(constant_tensor(node)))
            found.update(zip(node.output, [held] if held else [], strict=False))
        rule = _RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
        operands = [found.get(i) or _constant(inner.constants.get(i)) for i in node.input if i]
        made = None if rule is None else rule(node.op_type, operands)
        if made is not None:
            found[node.output[0]] = made
    for value in body.output:
        constant = _constant(inner.constants.get(value.name))
        if value.name not in found and constant is not None:
            found[value.name] = constant
    return found


def _constant(array: np.ndarray | None) -> _Value | None:
    """The value of an array of one truth or whole number."""
    if array is None or array.size != 1:
        return None
    value = array.reshape(-1)[0]
    if array.dtype.kind == "b":
        return _ALWAYS if value else _NEVER
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and float(value).is_integer())
    return _Linear(int(value), {}) if whole else None


_Operands = Sequence[_Value | None]
_Rule = Callable[[str, _Operands], _Value | None]


def _same(op: str, operands: _Operands) -> _Value | None:
    return operands[0]


def _of_numbers(count: int, rule: Callable[..., _Linear | None]) -> _Rule:
    """A rule for operands that are so many whole numbers."""

    def value(op: str, operands: _Operands) -> _Value | None:
        numbers = [each for each in operands if isinstance(each, _Linear)]
        return rule(*numbers) if len(numbers) == len(operands) == count else None

    return value


_DIFFERENCE = _of_numbers(2, lambda left, right: left.plus(right, -1))


_COMPARISONS: dict[str, tuple[Comparison, Comparison]] = {
    "Equal": ("EQ", "NE"),
    "Greater": ("GT", "LE"),
    "GreaterOrEqual": ("GE", "LT"),
    "Less": ("LT", "GE"),
    "LessOrEqual": ("LE", "GT"),
}
"""Comparison that an operator makes, and the opposite."""


def _compared(op: str, operands: _Operands) -> _Value | None:
    difference = _DIFFERENCE(op, operands)
    if not isinstance(difference, _Linear) or not set(difference.slopes) <= {_TRIP}:
        return UNKNOWN
    first, step = difference.constant, difference.slopes.get(_TRIP, 0)
    fails, holds = (first_failure(first, step, each, 0) for each in _COMPARISONS[op])
    return Truth(math.inf if fails is None else fails, math.inf if holds is None else holds)


def _truth(value: _Value | None) -> Truth:
    return value if isinstance(value, Truth) else UNKNOWN


def _opposite(op: str, operands: _Operands) -> Truth:
    given = _truth(operands[0])
    return Truth(given.true_from, given.false_from, given.true_known, given.false_known)


def _both(op: str, operands: _Operands) -> Truth:
    left, right = map(_truth, operands)
    for one, other in ((left, right), (right, left)):
        if one == _ALWAYS:
            return other
    first = min(left.false_from, right.false_from)
    known = (left.false_known and right.false_known) or not first
    return Truth(first, math.inf, known, true_known=False)


def _either(op: str, operands: _Operands) -> Truth:
    opposites = [_opposite(op, [each]) for each in operands]
    return _opposite(op, [_both(op, opposites)])


_RULES: Mapping[str, _Rule] = by_name(
    {
        "Cast CastLike Identity Reshape Squeeze Unsqueeze": _same,
        "Add": _of_numbers(2, _Linear.plus),
        "Sub": _DIFFERENCE,
        "Mul": _of_numbers(2, _Linear.times),
        "Neg": _of_numbers(1, lambda only: _Linear(0, {}).plus(only, -1)),
        " ".join(_COMPARISONS): _compared,
        "And": _both,
        "Or": _either,
        "Not": _opposite,
    }
)
"""Values of operators on scalars, by what their operands are; None: none of these."""
