"""Loops of a jaxpr: what is carried, how many trips, how large a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.interpreters import partial_eval
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun, jaxprs_in_params

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.jax.values import Value

TRIP_LIMIT = 10_000_000
"""A loop that counts further than this is treated as infinite."""


@dataclass(frozen=True)
class JaxLoop:
    """One loop: its body reads constants, then the carry, then one row of each sequence."""

    body: ClosedJaxpr
    trips: int
    constants: Sequence[Value]
    carry: Sequence[Value]
    sequences: Sequence[Value] = ()


def scan_loop(eqn: Any, inputs: Sequence[Value]) -> JaxLoop:
    """Describe a ``scan``."""
    params = eqn.params
    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    return JaxLoop(
        params["jaxpr"], params["length"], inputs[:first], inputs[first:last], inputs[last:]
    )


def while_loop(eqn: Any, inputs: Sequence[Value], given: int | None, line: str) -> JaxLoop:
    """Describe a ``while``; its trips are derived, else ``given``.

    Raises:
        ReadError: the trips depend on the inputs and none were given.
    """
    params = eqn.params
    first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    condition, constants, carry = inputs[:first], inputs[first:last], inputs[last:]
    trips = _derived_trips(params, condition, constants, carry)
    trips = given if trips is None else trips
    if trips is None:
        scope = str(eqn.source_info.name_stack)
        where = " ".join(s for s in (scope, line) if s) or "top level"
        raise ReadError(
            f"while loop ({where}): its trip count depends on the inputs; give trip_count=N "
            "(--trip-count N), or write it with jax.lax.scan or fixed fori_loop bounds"
        )
    return JaxLoop(params["body_jaxpr"], trips, constants, carry)


def _derived_trips(
    params: dict[str, Any],
    condition: Sequence[Value],
    constants: Sequence[Value],
    carry: Sequence[Value],
) -> int | None:
    """Run only the counters that the condition depends on, if all of them start known."""
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    check, reads = _only(test, [True])
    needed = reads[len(condition) :]
    while True:
        step, used = _only(body, needed)
        wider = [a or b for a, b in zip(needed, used[len(constants) :], strict=True)]
        if wider == needed:
            break
        needed = wider
    first = _picked(condition, reads[: len(condition)])
    fixed = _picked(constants, used[: len(constants)])
    start = _picked(carry, needed)
    if any(v.known is None for v in (*first, *fixed, *start)):
        return None
    tested = _picked(reads[len(condition) :], needed)
    stepped = _picked(used[len(constants) :], needed)

    def advance(state: tuple[Any, Any]) -> tuple[Any, Any]:
        return state[0] + 1, step(*map(_concrete, fixed), *_picked(state[1], stepped))

    def again(state: tuple[Any, Any]) -> Any:
        going = check(*map(_concrete, first), *_picked(state[1], tested))[0]
        return going & (state[0] < TRIP_LIMIT)

    counters = [_concrete(v) for v in start]
    trips = int(jax.jit(lambda s: jax.lax.while_loop(again, advance, (0, s)))(counters)[0])
    return trips if trips < TRIP_LIMIT else None


def _only(
    closed: ClosedJaxpr, outputs: Sequence[bool]
) -> tuple[Callable[..., list[Any]], list[bool]]:
    """Return the part of a jaxpr that makes the marked outputs, and which inputs it reads."""
    jaxpr, used = partial_eval.dce_jaxpr(closed.jaxpr, list(outputs))
    return jaxpr_as_fun(ClosedJaxpr(jaxpr, closed.consts)), list(used)


def _picked(items: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    return [item for item, mark in zip(items, marks, strict=True) if mark]


def _concrete(value: Value) -> Any:
    return jax.numpy.asarray(value.known, value.dtype).reshape(value.shape)


_SIZES: dict[tuple[int, bool], tuple[Any, int]] = {}


def body_size(body: Any, deep: bool) -> int:
    """Count the equations of a jaxpr with all it calls; ``deep`` multiplies inner scans out."""
    jaxpr = body.jaxpr if isinstance(body, ClosedJaxpr) else body
    key = (id(jaxpr), deep)
    if key not in _SIZES:
        count = 0
        for eqn in jaxpr.eqns:
            inner = sum(body_size(j, deep) for j in jaxprs_in_params(eqn.params))
            loop = eqn.primitive.name in ("scan", "while")
            if loop and not deep:
                inner = 0
            count += 1 + inner * (eqn.params.get("length", 1) if loop else 1)
        _SIZES[key] = (jaxpr, count)
    return _SIZES[key][1]
