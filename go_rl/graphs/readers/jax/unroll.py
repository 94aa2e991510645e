"""Add a loop to the flat program: unrolled while that stays small, else as one folded node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Cost
from go_rl.graphs.readers.jax.loops import JaxLoop, body_size, scan_loop, while_loop
from go_rl.graphs.readers.jax.values import Equation, LoopPart, Value, join_scopes

if TYPE_CHECKING:
    from go_rl.graphs.readers.jax.inline import Context, Finish, Inliner


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
