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
    reason, option = why_unknown(node.input[0], scope)
    said = f"its condition is not known ({reason}); the branch with more FLOP, {chosen}, is counted"
    return said + (f"; {option} decides it" if option else "")


@dataclass(frozen=True)
class _State:
    """The type of a value that a loop carries from trip to trip."""

    element: int
    shape: Shape
    elements: tuple[Shape, ...] | None = None
    """Shapes of its elements, if it is a sequence."""


def complete_loop(
    node: onnx.NodeProto, scope: Scope, run: Completion, complete_graph: CompleteGraph
) -> None:
    """Complete the body of a `Loop` or `Scan` and type its results.

    Raises:
        ReadError: its trip count is not known, or its state grows in uneven steps for too long.
    """
    _LoopCompletion(node, scope, run, complete_graph).complete()


class _LoopCompletion:
    """A `Loop` or `Scan` while it is completed."""

    def __init__(
        self, node: onnx.NodeProto, scope: Scope, run: Completion, complete_graph: CompleteGraph
    ) -> None:
        self.node, self.scope, self.run = node, scope, run
        self.complete_graph = complete_graph
        self.body, self.pristine = subgraphs(node)["body"], onnx.GraphProto()
        self.pristine.CopyFrom(self.body)
        self.is_loop = node.op_type == "Loop"
        self.numbers = {a.name: a.i for a in node.attribute}
        self.axes = {a.name: list(a.ints) for a in node.attribute}
        before = 2 if self.is_loop else 0
        scanned = self.numbers.get("num_scan_inputs", 0)
        self.carried = list(node.input[before : len(node.input) - scanned])
        """Operands whose values the body hands from trip to trip."""
        self.by_trip = self.is_loop and sized_by_trip(self.body)
        self.batch = self._batch()
        """Axis before those of the opset 9 form: the batch of an older `Scan`, else none."""

    @property
    def name(self) -> str:
        """The node's name, or that of its first result."""
        return self.node.name or self.node.output[0]

    def complete(self) -> None:
        """Complete the body and type the results."""
        run, first = self.run, int(self.is_loop)
        start = [_state(self.scope, name, len(self.batch)) for name in self.carried]
        trial = run.trial()
        inner, trips, after = self._one_trip(start, trial)
        if trips is None:
            known = self.scope.child() if self.by_trip else inner
            trips = self._trips(self.pristine if self.by_trip else self.body, known, trial)
        end = start if trips == 0 else after
        if trips > 1 and (self.by_trip or after != start):
            middle, end = after, after
            if after != start:
                middle, end = self._followed([start, after], trips, trial)
            again = run.trial(trust_file=False)
            inner, _, _ = self._one_trip(middle, again, (trips - 1) // 2)
            run.notes.extend(n for n in trial.notes if n not in again.notes)
            trial = again
        if self.by_trip:
            run.notes.append(
                f"Loop {self.name!r}: sizes in its body follow the number of the trip; it is "
                "counted at the trip halfway"
            )
        run.keep(trial)
        runs = [trips * math.prod(self.batch)]
        self.node.attribute.append(onnx.helper.make_attribute(TRIPS, runs))
        kinds = [inner.types[o.name] for o in self.body.output[first:]]
        self._type_results(end, trips, kinds)

    def _one_trip(
        self, states: Sequence[_State], settings: Completion, trip: int = 0
    ) -> tuple[Scope, int | None, list[_State]]:
        """Complete the body in one trip; return its scope, the trips as far as sizes tell, and the
        state after it."""
        self.body.CopyFrom(self.pristine)
        inner, trips = self._enter(states)
        if self.by_trip:
            inner.constants[self.body.input[0].name] = np.array(trip)
        self.complete_graph(self.body, inner, settings, f"{self.node.doc_string}.body")
        first = int(self.is_loop)
        results = self.body.output[first : first + len(self.carried)]
        return inner, trips, [_state(inner, result.name) for result in results]

    def _batch(self) -> Shape:
        if BATCHED not in self.numbers:
            return ()
        shapes = [static_shape(self.scope.types[name]) or () for name in self.node.input]
        if len({shape[:1] for shape in shapes}) > 1 or not shapes[-1][1:]:
            raise ReadError(
                f"{describe(self.node)}: before opset 9 its operands have one batch first, and "
                f"here are {[list(shape) for shape in shapes]}"
            )
        return shapes[-1][:1]

    def _enter(self, states: Sequence[_State]) -> tuple[Scope, int | None]:
        inner, trips = self.scope.child(), None
        if self.is_loop:
            counter, condition, *names = self.body.input
            inner.types[counter.name] = tensor_type(onnx.TensorProto.INT64, ())
            inner.failures[counter.name] = "counts the trips"
            inner.constants[condition.name] = np.array(True)
            inner.types[condition.name] = tensor_type(onnx.TensorProto.BOOL, ())
        else:
            names, trips = self.body.input[: len(states)], self._enter_scan(inner)
        for value, state in zip(names, states, strict=True):
            inner.failures[value.name] = "is carried from trip to trip"
            inner.types[value.name] = tensor_type(state.element, state.shape)
            if state.elements is not None:
                define_sequence(inner, value.name, state.element, state.elements)
        return inner, trips

    def _enter_scan(self, inner: Scope) -> int:
        """Type the slices that a `Scan` reads; return how many there are, of one sequence."""
        carried, trips, axes = len(self.carried), 1, self.axes.get("scan_input_axes")
        for i, (value, outer) in enumerate(zip(self.body.input, self.node.input, strict=True)):
            if i >= carried:
                kind = self.scope.types[outer]
                shape = list((static_shape(kind) or ())[len(self.batch) :])
                trips = shape.pop(axes[i - carried] if axes else 0)
                inner.types[value.name] = tensor_type(element_type(kind), shape)
                inner.failures[value.name] = "is a slice of what the Scan reads"
        return trips

    def _followed(
        self, path: list[list[_State]], trips: int, trial: Completion
    ) -> tuple[list[_State], list[_State]]:
        """Return the state in the middle of all trips, at which the body is counted, and at the
        end."""

        def follow(trip: int) -> None:
            settings = self.run.trial(trust_file=False)
            path.append(self._one_trip(path[-1], settings, trip)[2])

        follow(1)
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
                        f"{describe(self.node)}: the size of its state grows in uneven steps, and "
                        f"{trips:,} trips are too many to follow (at most {FOLLOWED_TRIPS})"
                    )
                follow(len(path) - 1)
            middle, end = path[min(trips // 2, len(path) - 1)], path[-1]
        trial.notes.append(
            f"{self.node.op_type} {self.name!r}: its state grows from trip to trip, to "
            f"{[list(s.shape) for s in end]}; its body is counted at the size halfway"
        )
        return middle, end

    def _type_results(
        self, end: Sequence[_State], trips: int, kinds: Sequence[onnx.TypeProto]
    ) -> None:
        axes, types, batch = self.axes.get("scan_output_axes"), self.scope.types, self.batch
        for i, output in enumerate(self.node.output):
            if not output:
                continue
            if i < len(end):
                types[output] = tensor_type(end[i].element, (*batch, *end[i].shape))
                elements = end[i].elements
                if elements is not None:
                    define_sequence(self.scope, output, end[i].element, elements)
                continue
            shape = list(static_shape(kinds[i]) or ())
            axis = axes[i - len(end)] % (len(shape) + 1) if axes else 0
            rows = [*batch, *shape[:axis], trips, *shape[axis:]]
            types[output] = tensor_type(element_type(kinds[i]), rows)

    def _trips(self, body: onnx.GraphProto, inner: Scope, trial: Completion) -> int:
        """Return the trips of a `Loop`, by its trip count, its condition or the user."""
        node, constants, name = self.node, self.scope.constants, self.name
        if name in trial.trips:
            return trial.trips[name]
        start = constants.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None
        if start is not None and not bool(start.reshape(-1)[0]):
            return 0
        limit = constants.get(node.input[0]) if node.input[0] else None
        most = math.inf if limit is None else max(0, int(limit.reshape(-1)[0]))
        condition = condition_of(node, body, self.scope, inner)
        trips = min(most, condition.false_from + 1)
        endless = trips == math.inf or (not condition.false_known and trips > LARGEST_LIMIT)
        if endless and trial.trip_count is not None:
            return trial.trip_count
        if endless or trips > MOST_TRIPS:
            raise ReadError(_endless(node, name, self.scope, condition))
        if not condition.false_known or (limit is None and node.input[0]):
            trial.notes.append(
                f"Loop {name!r} may stop early; its largest trip count {trips} is used"
            )
        return int(trips)


def _state(scope: Scope, name: str, batch_axes: int = 0) -> _State:
    kind = scope.types[name]
    shape = (static_shape(kind) or ())[batch_axes:]
    return _State(element_type(kind), shape, scope.sequences.get(name))


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
