"""Completing `If`, `Loop` and `Scan`: which branch is counted, how often a body runs, how its state
grows.

An `If` whose condition is not known becomes the branch that fits the sizes, of two that fit the one
with more FLOP; that choice is made here, once, for the sizes that follow as well as for the work.
The state of a loop is followed from trip to trip until its size stays, or grows by the same step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.arithmetic.closed_forms import MOST_TRIPS
from go_rl.graphs.readers.model_options import option
from go_rl.graphs.readers.onnx.scope import (
    CompleteGraph,
    Completion,
    MissingShapeError,
    Scope,
    Shape,
    subgraphs,
)
from go_rl.graphs.readers.onnx.shapes.sequences import define_sequence
from go_rl.graphs.readers.onnx.shapes.trips import Truth, condition_of, sized_by_trip
from go_rl.graphs.readers.onnx.shapes.unknown_values import why_unknown
from go_rl.graphs.readers.onnx.structure import BATCHED, BRANCH, TRIPS, describe
from go_rl.graphs.readers.onnx.values import element_type, static_shape, tensor_type

FOLLOWED_TRIPS = 32
"""Trips that are followed one by one where a state grows in uneven steps."""
LARGEST_LIMIT = 1 << 20
"""A trip count beyond this stands for "until the condition ends the loop"."""
BRANCHES = ("then_branch", "else_branch")

BranchFlops = Callable[[onnx.NodeProto, str, Scope, Completion], float]
"""FLOP of a completed branch of a node."""


def complete_if(
    node: onnx.NodeProto,
    scope: Scope,
    run: Completion,
    complete_graph: CompleteGraph,
    flops_of: BranchFlops,
) -> bool:
    """Type the results of an `If` by the branch that is counted; True: they are all constant.

    Raises:
        ReadError: neither branch fits.
    """
    branches = subgraphs(node)
    if node.input[0] in scope.constants:
        taken = bool(scope.constants[node.input[0]].reshape(-1)[0])
        chosen, other = BRANCHES if taken else BRANCHES[::-1]
        inner = scope.child()
        complete_graph(branches[chosen], inner, run, f"{node.doc_string}.{chosen}")
        branches[other].Clear()  # what only it reads is not computed
    else:
        chosen, inner = _branch_that_fits(node, scope, run, complete_graph, flops_of)
    node.attribute.append(onnx.helper.make_attribute(BRANCH, chosen))
    results = [o.name for o in branches[chosen].output]
    for output, result in zip(node.output, results, strict=True):
        if output:
            _hand_on(output, result, scope, inner)
    return all(r in inner.constants for r in results)


def _hand_on(output: str, result: str, scope: Scope, inner: Scope) -> None:
    scope.types[output] = inner.types[result]
    if result in inner.constants:
        scope.constants[output] = inner.constants[result]
    if result in inner.sequences:
        scope.sequences[output] = inner.sequences[result]


def _branch_that_fits(
    node: onnx.NodeProto,
    scope: Scope,
    run: Completion,
    complete_graph: CompleteGraph,
    flops_of: BranchFlops,
) -> tuple[str, Scope]:
    branches, refusals = subgraphs(node), dict[str, str]()
    fitting: dict[str, tuple[float, Scope, Completion]] = {}
    for name in BRANCHES:
        inner, trial = scope.child(), run.trial()
        try:
            complete_graph(branches[name], inner, trial, f"{node.doc_string}.{name}")
            fitting[name] = flops_of(node, name, inner, trial), inner, trial
        except MissingShapeError:
            raise
        except ReadError as error:
            refusals[name] = str(error)
    if not fitting:
        listed = "; ".join(f"{name}: {refusal}" for name, refusal in refusals.items())
        raise ReadError(f"{describe(node)}: neither branch fits: {listed}")
    chosen = max(fitting, key=lambda name: fitting[name][0])
    _, inner, trial = fitting[chosen]
    run.keep(trial)
    run.notes.append(
        f"If {node.name or node.output[0]!r}: {_why_chosen(node, chosen, refusals, scope)}"
    )
    return chosen, inner


def _why_chosen(node: onnx.NodeProto, chosen: str, refusals: dict[str, str], scope: Scope) -> str:
    if refusals:
        ((other, refusal),) = refusals.items()
        return f"{chosen} is counted, for {other} cannot be at these sizes ({refusal})"
    reason, _ = why_unknown(node.input[0], scope)
    return f"its condition is not known ({reason}); the branch with more FLOP, {chosen}, is counted"


@dataclass(frozen=True)
class _State:
    """The type of a value that a loop carries from trip to trip."""

    element: int
    shape: Shape
    elements: tuple[Shape, ...] | None = None
    """Shapes of its elements, if it is a sequence."""


@dataclass(frozen=True)
class _Entry:
    """One way into a body: where it is completed, and how often it runs as far as sizes tell."""

    scope: Scope
    trips: int | None


def complete_loop(
    node: onnx.NodeProto, scope: Scope, run: Completion, complete_graph: CompleteGraph
) -> None:
    """Complete the body of a `Loop` or `Scan` and type its results.

    Raises:
        ReadError: its trip count is not known, or its state grows in uneven steps for too long.
    """
    body, pristine = subgraphs(node)["body"], onnx.GraphProto()
    pristine.CopyFrom(body)
    first = 1 if node.op_type == "Loop" else 0
    carried = _carried(node)
    batch = _batch(node, scope)
    start = [_state(scope, name, len(batch)) for name in carried]
    results = [o.name for o in body.output][first : first + len(carried)]

    def one_trip(
        states: Sequence[_State], settings: Completion, trip: int = 0
    ) -> tuple[_Entry, list[_State]]:
        body.CopyFrom(pristine)
        entry = _enter(node, body, scope, settings, states)
        if by_trip:
            entry.scope.constants[body.input[0].name] = np.array(trip)
        complete_graph(body, entry.scope, settings, f"{node.doc_string}.body")
        return entry, [_state(entry.scope, name) for name in results]

    trial, by_trip = run.trial(), node.op_type == "Loop" and sized_by_trip(body)
    entry, after = one_trip(start, trial)
    trips = entry.trips
    if trips is None:
        known = scope.child() if by_trip else entry.scope
        trips = _loop_trips(node, pristine if by_trip else body, scope, known, trial)
    end = start if trips == 0 else after
    if trips > 1 and (by_trip or after != start):
        middle, end = after, after
        if after != start:

            def next_state(states: Sequence[_State], trip: int) -> list[_State]:
                return one_trip(states, run.trial(trust_file=False), trip)[1]

            middle, end = _followed(node, [start, after], trips, next_state, trial)
        again = run.trial(trust_file=False)
        entry, _ = one_trip(middle, again, (trips - 1) // 2)
        run.notes.extend(n for n in trial.notes if n not in again.notes)
        trial = again
    if by_trip:
        run.notes.append(
            f"Loop {node.name or node.output[0]!r}: sizes in its body follow the number of the "
            "trip; it is counted at the trip halfway"
        )
    run.keep(trial)
    node.attribute.append(onnx.helper.make_attribute(TRIPS, [trips * math.prod(batch)]))
    kinds = [entry.scope.types[o.name] for o in body.output[first:]]
    _type_results(node, scope, end, trips, kinds, batch)


def _carried(node: onnx.NodeProto) -> list[str]:
    """Operands whose values the body hands from trip to trip."""
    if node.op_type == "Loop":
        return list(node.input[2:])
    scanned = next(a.i for a in node.attribute if a.name == "num_scan_inputs")
    return list(node.input[: len(node.input) - scanned])


def _batch(node: onnx.NodeProto, scope: Scope) -> Shape:
    """Return the axis before those of the opset 9 form: the batch of an older `Scan`, else none."""
    if all(a.name != BATCHED for a in node.attribute):
        return ()
    shapes = [static_shape(scope.types[name]) or () for name in node.input]
    if len({shape[:1] for shape in shapes}) > 1 or not shapes[-1][1:]:
        raise ReadError(
            f"{describe(node)}: before opset 9 its operands have one batch first, and here are "
            f"{[list(shape) for shape in shapes]}"
        )
    return shapes[-1][:1]


def _state(scope: Scope, name: str, batch_axes: int = 0) -> _State:
    kind = scope.types[name]
    shape = (static_shape(kind) or ())[batch_axes:]
    return _State(element_type(kind), shape, scope.sequences.get(name))


def _enter(
    node: onnx.NodeProto,
    body: onnx.GraphProto,
    scope: Scope,
    run: Completion,
    states: Sequence[_State],
) -> _Entry:
    inner = scope.child()
    if node.op_type == "Loop":
        counter, condition, *names = body.input
        inner.types[counter.name] = tensor_type(onnx.TensorProto.INT64, ())
        inner.failures[counter.name] = "counts the trips"
        inner.constants[condition.name] = np.array(True)
        inner.types[condition.name] = tensor_type(onnx.TensorProto.BOOL, ())
        trips = None
    else:
        names, trips = body.input[: len(states)], _enter_scan(node, body, scope, inner)
    for value, state in zip(names, states, strict=True):
        inner.failures[value.name] = "is carried from trip to trip"
        inner.types[value.name] = tensor_type(state.element, state.shape)
        if state.elements is not None:
            define_sequence(inner, value.name, state.element, state.elements)
    return _Entry(inner, trips)


def _enter_scan(node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope) -> int:
    """Type the slices that a `Scan` reads; return how many there are, of one sequence."""
    carried, trips, batch_axes = len(_carried(node)), 1, len(_batch(node, scope))
    axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [])
    for i, (value, outer) in enumerate(zip(body.input, node.input, strict=True)):
        if i >= carried:
            shape = list((static_shape(scope.types[outer]) or ())[batch_axes:])
            trips = shape.pop(axes[i - carried] if axes else 0)
            inner.types[value.name] = tensor_type(element_type(scope.types[outer]), shape)
            inner.failures[value.name] = "is a slice of what the Scan reads"
    return trips


def _followed(
    node: onnx.NodeProto,
    path: list[list[_State]],
    trips: int,
    next_state: Callable[[Sequence[_State], int], list[_State]],
    run: Completion,
) -> tuple[list[_State], list[_State]]:
    """Return the state in the middle of all trips, at which the body is counted, and at the end."""
    path.append(next_state(path[-1], 1))
    if path[2] == path[1]:  # it settles with the first trip
        return path[1], path[1]
    grown = [_grown(steps, trips) for steps in zip(*path, strict=True)]
    if all(each is not None for each in grown):
        pairs = [each for each in grown if each is not None]
        middle, end = [m for m, _ in pairs], [e for _, e in pairs]
    else:
        while len(path) <= trips and path[-1] != path[-2]:
            if len(path) > FOLLOWED_TRIPS:
                raise ReadError(
                    f"{describe(node)}: the size of its state grows in uneven steps, and "
                    f"{trips:,} trips are too many to follow (at most {FOLLOWED_TRIPS})"
                )
            path.append(next_state(path[-1], len(path) - 1))
        middle, end = path[min(trips // 2, len(path) - 1)], path[-1]
    run.notes.append(
        f"{node.op_type} {node.name or node.output[0]!r}: its state grows from trip to trip, to "
        f"{[list(s.shape) for s in end]}; its body is counted at the size halfway"
    )
    return middle, end


def _grown(path: Sequence[_State], trips: int) -> tuple[_State, _State] | None:
    """A state halfway and at the end of its growth by equal steps; None: they are not equal.

    ``path`` has the state before each of three trips.
    """
    first, second, third = path
    if not len(first.shape) == len(second.shape) == len(third.shape):
        return None
    steps = [b - a for a, b in zip(first.shape, second.shape, strict=True)]
    if steps != [b - a for a, b in zip(second.shape, third.shape, strict=True)]:
        return None
    added: tuple[Shape, ...] | None = None
    if first.elements is not None and second.elements is not None:
        added = second.elements[len(first.elements) :]
        if first.elements + added != second.elements or second.elements + added != third.elements:
            return None

    def at(trip: int) -> _State:
        shape = tuple(n + trip * step for n, step in zip(first.shape, steps, strict=True))
        if min(shape, default=0) < 0:
            raise ReadError(f"a state of a loop shrinks from {list(first.shape)} to less than none")
        elements = (
            None if added is None or first.elements is None else first.elements + added * trip
        )
        return _State(first.element, shape, elements)

    return at((trips - 1) // 2), at(trips)


def _type_results(
    node: onnx.NodeProto,
    scope: Scope,
    end: Sequence[_State],
    trips: int,
    kinds: Sequence[onnx.TypeProto],
    batch: Shape,
) -> None:
    axes = next((list(a.ints) for a in node.attribute if a.name == "scan_output_axes"), [])
    for i, output in enumerate(node.output):
        if not output:
            continue
        if i < len(end):
            scope.types[output] = tensor_type(end[i].element, (*batch, *end[i].shape))
            elements = end[i].elements
            if elements is not None:
                define_sequence(scope, output, end[i].element, elements)
            continue
        shape = list(static_shape(kinds[i]) or ())
        axis = axes[i - len(end)] % (len(shape) + 1) if axes else 0
        rows = [*batch, *shape[:axis], trips, *shape[axis:]]
        scope.types[output] = tensor_type(element_type(kinds[i]), rows)


def _loop_trips(
    node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope, run: Completion
) -> int:
    name = node.name or node.output[0]
    if name in run.trips:
        return run.trips[name]
    start = scope.constants.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    if start is not None and not bool(start.reshape(-1)[0]):
        return 0
    limit = scope.constants.get(node.input[0]) if node.input[0] else None
    most = math.inf if limit is None else max(0, int(limit.reshape(-1)[0]))
    condition = condition_of(node, body, scope, inner)
    trips = min(most, condition.false_from + 1)
    endless = trips == math.inf or (not condition.false_known and trips > LARGEST_LIMIT)
    if endless and run.trip_count is not None:
        return run.trip_count
    if endless or trips > MOST_TRIPS:
        raise ReadError(_endless(node, name, scope, condition))
    if not condition.false_known or (limit is None and node.input[0]):
        run.notes.append(f"Loop {name!r} may stop early; its largest trip count {trips} is used")
    return int(trips)


def _endless(node: onnx.NodeProto, name: str, scope: Scope, condition: Truth) -> str:
    """The message for a loop whose trips do not follow from its trip count and its condition."""
    if condition.false_known:
        reason = "its condition always holds"
    else:
        reason = "it runs until its own condition ends it"
    if node.input[0] and node.input[0] not in scope.constants:
        reason, _ = why_unknown(node.input[0], scope)
    given = option("--dim", f"{name}.trips=<count>")
    return (
        f"Loop {name!r} ({node.doc_string}): its trip count is not known ({reason}); give it with "
        f"{given}, or that of all such loops with {option('--trip-count', '<count>')}"
    )
