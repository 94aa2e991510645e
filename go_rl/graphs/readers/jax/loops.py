"""Loops of a jaxpr: what is carried, how many trips, how large a body; in the flat program they are
unrolled while that stays small, else one folded node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
from jax._src.interpreters import partial_eval
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun, jaxprs_in_params

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Cost
from go_rl.graphs.readers.jax.values import Equation, LoopPart, Value, join_scopes

if TYPE_CHECKING:
    from go_rl.graphs.readers.jax.inline import Context, Finish, Inliner

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


def read_loop(
    inliner: Inliner, eqn: Any, inputs: list[Value], bind: Finish, context: Context
) -> None:
    """Unroll a loop if the limit allows, else with its inner loops folded, else fold it.

    The rule: unrolling adds trips × equations of the body (inner loops multiplied out) and all
    unrolled loops of a program share one limit. Scans within an unrolled loop are either all
    unrolled or all folded, so that every trip looks alike.
    """
    if eqn.primitive.name == "scan":
        loop = scan_loop(eqn, inputs)
    else:
        loop = while_loop(eqn, inputs, inliner.options.trip_count, context.line)
        if inliner.options.trip_count is not None:
            inliner.inexact.append(f"while at {context.line or context.scope or 'top level'}")
    room = inliner.options.unroll_limit - inliner.unrolled
    whole, shallow = (_unrolled_size(loop, deep) for deep in (True, False))
    if context.unroll_inner and eqn.primitive.name == "scan":
        _unroll(inliner, eqn, loop, bind, context)
    elif context.fold_inner and loop.trips > 1:
        bind(_fold(inliner, eqn, loop, context))
    elif whole <= room:
        inliner.unrolled += whole
        _unroll(inliner, eqn, loop, bind, replace(context, unroll_inner=True))
    elif shallow <= room:
        inliner.unrolled += shallow
        _unroll(inliner, eqn, loop, bind, replace(context, fold_inner=True))
    else:
        bind(_fold(inliner, eqn, loop, context))


def _unrolled_size(loop: JaxLoop, deep: bool) -> int:
    """Count the equations and slices that unrolling adds; ``deep``: inner scans unrolled too."""
    return loop.trips * max(1, body_size(loop.body, deep) + len(loop.sequences))


def _fold(inliner: Inliner, eqn: Any, loop: JaxLoop, context: Context) -> list[Value]:
    """One CONTROL node whose cost is the body's times the trip count."""
    rows = [Value(v.shape[1:], v.dtype) for v in loop.sequences]
    fixed = [Value(v.shape, v.dtype, known=v.known) for v in loop.constants]
    moving = [Value(v.shape, v.dtype) for v in loop.carry]
    avals = [v.aval for v in eqn.outvars]
    stacked = [Value(tuple(a.shape[1:]), a.dtype) for a in avals[len(loop.carry) :]]
    moved = Cost(0.0, 2.0 * sum(v.num_bytes for v in (*rows, *stacked)))
    once = inliner.body_cost(loop.body, [*fixed, *moving, *rows]) + moved
    outputs = [Value(tuple(a.shape), a.dtype, output=i) for i, a in enumerate(avals)]
    name, where = eqn.primitive.name, context.line or context.scope or "top level"
    inliner.notes.append(f"{name} at {where}: its {loop.trips} trips are folded into one node")
    inputs = [*loop.constants, *loop.carry, *loop.sequences]
    cost = once.times(loop.trips)
    whole = eqn if len(inputs) == len(eqn.invars) else None
    inliner.emit(Equation(name, OpKind.CONTROL, inputs, outputs, cost, eqn=whole), context)
    return outputs


def _unroll(inliner: Inliner, eqn: Any, loop: JaxLoop, bind: Finish, context: Context) -> None:
    """Walk the body once a trip; each trip's end starts the next, so the stack stays flat."""
    carried, backwards = len(loop.carry), bool(eqn.params.get("reverse"))
    columns: list[list[Value]] = [[] for _ in eqn.outvars[carried:]]

    def trip(index: int, carry: list[Value]) -> None:
        if index == loop.trips:
            avals = [v.aval for v in eqn.outvars[carried:]]
            bind([*carry, *map(stack, avals, columns)])
            return
        inner = replace(context, scope=join_scopes(context.scope, f"trip_{index}"))
        place = loop.trips - 1 - index if backwards else index
        row = [_row(inliner, v, (index, place), inner) for v in loop.sequences]
        operands = [*loop.constants, *carry, *row]
        inliner.call(loop.body, operands, partial(_collect, columns, carried, index, trip), inner)

    def stack(aval: Any, rows: list[Value]) -> Value:
        result = Value(tuple(aval.shape), aval.dtype)
        cost = Cost(0.0, 4.0 * result.num_bytes)
        made = LoopPart(None) if rows else None
        rows = rows[::-1] if backwards else rows
        joined = Equation("concatenate", OpKind.MOVEMENT, rows, [result], cost, eqn=made)
        inliner.emit(joined, context)
        return result

    trip(0, list(loop.carry))


def _collect(
    columns: list[list[Value]],
    carried: int,
    index: int,
    trip: Callable[[int, list[Value]], None],
    results: list[Value],
) -> None:
    """End one trip: keep its rows, start the next with its carry."""
    for column, value in zip(columns, results[carried:], strict=True):
        column.append(value)
    trip(index + 1, results[:carried])


def _row(inliner: Inliner, stacked: Value, at: tuple[int, int], context: Context) -> Value:
    """The row of a scanned array that a trip (``at``: trip, row) reads: a slice, and still a weight
    if the array is one."""
    trip, place = at
    row = Value(stacked.shape[1:], stacked.dtype)
    cost = Cost(0.0, 4.0 * row.num_bytes)
    if stacked.weights:
        row.weights = frozenset(f"{name}[{trip}]" for name in stacked.weights)
        row.views = [*stacked.views, cost]
        row.view_of = LoopPart(place), stacked
        stacked.views.clear()
        return row
    taken = Equation("slice", OpKind.MOVEMENT, [stacked], [row], cost, eqn=LoopPart(place))
    inliner.emit(taken, context)
    return row
