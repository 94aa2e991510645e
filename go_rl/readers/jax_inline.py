"""Flatten a jaxpr: inline calls, unroll or fold loops, choose branches, follow weights' views.

Works on an explicit stack of frames, so no depth of nesting or length of program can exhaust
Python's own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax._src import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from go_rl.core.op_kind import OpKind
from go_rl.readers.jax_costs import IDENTITY, cost_of, kind_of
from go_rl.readers.jax_loops import Loop, body_size, known_scalar, scan_loop, while_loop
from go_rl.readers.jax_values import Cost, Equation, Value, mark_live, total_cost

CALLS = {
    "checkpoint": "jaxpr",
    "closed_call": "call_jaxpr",
    "composite": "jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "custom_vmap_call": "call",
    "jit": "jaxpr",
    "named_call": "call_jaxpr",
    "pjit": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "xla_call": "call_jaxpr",
}
"""Primitives that only call another jaxpr, and the parameter that holds it."""

VIEWS = frozenset(
    "broadcast_in_dim convert_element_type expand_dims reshape rev slice squeeze transpose".split()
)
"""Layout and cast of a weight: the result is still that weight, unless it has grown."""
DROPPED = frozenset({"debug_callback", "debug_print"})
"""Effects that a step's cost does not include."""


@dataclass(frozen=True)
class JaxOptions:
    """How a jaxpr is flattened."""

    unroll_limit: int = 20_000
    """Most equations that unrolled loops may add in total; a loop beyond is folded."""
    trip_count: int | None = None
    """Trips of every ``while`` whose count cannot be derived; None: such a loop is an error."""
    unknown: str = "error"
    """``error``, or ``bytes``: count unknown primitives by operand and result bytes."""


@dataclass(eq=False)
class Frame:
    """A jaxpr being walked."""

    jaxpr: Jaxpr
    values: dict[Any, Value]
    finish: Callable[[list[Value]], None]
    scope: str
    line: str = ""
    """Where the user called it: what its equations say when they come from a library."""
    fold_inner: bool = False
    """Loops inside are folded because unrolling them too would pass the limit."""
    position: int = 0

    def read(self, atom: Any) -> Value:
        """Return the value of a variable; literals are handled by the inliner."""
        return self.values[atom]


@dataclass(eq=False)
class Inliner:
    """Collects `equations`; one instance for each program or folded body."""

    options: JaxOptions
    equations: list[Equation] = field(default_factory=list)
    unrolled: int = 0
    """Equations added by unrolled loops so far."""
    constants: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """Name of each closed-over array by its id; the array is kept so that the id stays its own."""
    branches: dict[int, tuple[Jaxpr, Cost]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stack: list[Frame] = field(default_factory=list)

    def run(self, closed: ClosedJaxpr, inputs: Sequence[Value]) -> list[Value]:
        """Walk a jaxpr and everything it calls; return its results."""
        results: list[Value] = []
        self.call(closed, inputs, results.extend, "")
        while self.stack:
            frame = self.stack[-1]
            if frame.position == len(frame.jaxpr.eqns):
                self.stack.pop()
                frame.finish([self.value(frame, v) for v in frame.jaxpr.outvars])
                continue
            frame.position += 1
            self._step(frame, frame.jaxpr.eqns[frame.position - 1])
        return results

    def call(
        self,
        body: Any,
        inputs: Sequence[Value],
        finish: Callable[[list[Value]], None],
        scope: str,
        fold_inner: bool = False,
    ) -> None:
        """Push the frame of a jaxpr, open or closed."""
        jaxpr, consts = (body.jaxpr, body.consts) if isinstance(body, ClosedJaxpr) else (body, ())
        values = {v: self._constant(c) for v, c in zip(jaxpr.constvars, consts, strict=True)}
        values.update(zip(jaxpr.invars, inputs, strict=True))
        self.stack.append(Frame(jaxpr, values, finish, scope, fold_inner))

    def value(self, frame: Frame, atom: Any) -> Value:
        """Return the value of a variable or literal."""
        if not isinstance(atom, Literal):
            return frame.values[atom]
        if getattr(atom.aval, "shape", ()) != ():
            return self._constant(atom.val)
        return Value((), atom.aval.dtype, known=atom.val)

    def _constant(self, array: Any) -> Value:
        """A closed-over scalar is a literal; a larger array is a weight named ``const/<n>``."""
        shape, dtype = tuple(np.shape(array)), getattr(array, "dtype", np.asarray(array).dtype)
        if int(np.prod(shape)) == 1:
            return Value(shape, dtype, known=known_scalar(array))
        name, _ = self.constants.setdefault(id(array), (f"const/{len(self.constants)}", array))
        return Value(shape, dtype, weights=frozenset((name,)))

    def _step(self, frame: Frame, eqn: Any) -> None:
        name = eqn.primitive.name
        if name in DROPPED:
            return
        inputs = [self.value(frame, v) for v in eqn.invars]
        stack = str(eqn.source_info.name_stack)
        scope = "/".join(s for s in (frame.scope, stack) if s)

        def bind(results: list[Value]) -> None:
            frame.values.update(zip(eqn.outvars, results, strict=True))

        if name in CALLS:
            self.call(eqn.params[CALLS[name]], inputs, bind, scope, frame.fold_inner)
        elif name == "custom_linear_solve":
            self._solve(eqn, inputs, bind, scope)
        elif name in ("scan", "while"):
            self._loop(frame, eqn, inputs, bind, scope)
        elif name == "cond":
            branch = self._dearest(eqn.params["branches"])
            self.call(branch, inputs[1:], bind, scope, frame.fold_inner)
        elif name in IDENTITY:
            bind(inputs[: len(eqn.outvars)])
        else:
            bind(self._operator(eqn, inputs, scope))

    def _operator(self, eqn: Any, inputs: list[Value], scope: str) -> list[Value]:
        name = eqn.primitive.name
        outputs = [
            Value(tuple(v.aval.shape), v.aval.dtype, output=i) for i, v in enumerate(eqn.outvars)
        ]
        cost = cost_of(eqn.primitive, inputs, outputs, eqn.params, self.options.unknown)
        if name in VIEWS and inputs and inputs[0].weights and outputs[0].size <= inputs[0].size:
            part = view_suffix(name, eqn.params)
            outputs[0].weights = frozenset(w + part for w in inputs[0].weights)
            outputs[0].views = [*inputs[0].views, cost]
            inputs[0].views = []
            return outputs
        if len(outputs) == 1:
            outputs[0].known = known_scalar_result(name, inputs, outputs[0])
        kind = kind_of(name, any(v.producer or v.weights for v in inputs))
        self.emit(Equation(name, kind, inputs, outputs, cost, scope, source_line(eqn)))
        return outputs

    def emit(self, equation: Equation) -> None:
        """Append an equation and make it the producer of its results."""
        for value in equation.outputs:
            value.producer = equation
        self.equations.append(equation)

    def _solve(self, eqn: Any, inputs: list[Value], bind: Callable, scope: str) -> None:
        counts = eqn.params["const_lengths"]
        before = counts.matvec + counts.vecmat
        first = sum(counts)
        constants = inputs[before : before + counts.solve]
        self.call(eqn.params["jaxprs"].solve, constants + inputs[first:], bind, scope)

    def _dearest(self, branches: Sequence[ClosedJaxpr]) -> ClosedJaxpr:
        """The branch of most FLOP (then bytes) stands for a ``cond``."""
        costs = []
        for branch in branches:
            if id(branch) not in self.branches:
                self.branches[id(branch)] = (branch, self._body_cost(branch, blanks(branch)))
            costs.append(self.branches[id(branch)][1])
        best = max(range(len(costs)), key=lambda i: (costs[i].flops, costs[i].num_bytes))
        return branches[best]

    def _body_cost(self, body: ClosedJaxpr, inputs: Sequence[Value]) -> Cost:
        inner = Inliner(JaxOptions(0, self.options.trip_count, self.options.unknown))
        results = inner.run(body, inputs)
        mark_live(inner.equations, results)
        return total_cost(inner.equations)

    def _loop(
        self, frame: Frame, eqn: Any, inputs: list[Value], bind: Callable, scope: str
    ) -> None:
        if eqn.primitive.name == "scan":
            loop = scan_loop(eqn, inputs)
        else:
            loop = while_loop(eqn, inputs, self.options.trip_count, source_line(eqn))
        room = self.options.unroll_limit - self.unrolled
        whole, shallow = (loop.trips * body_size(loop.body, deep) for deep in (True, False))
        if not frame.fold_inner and whole <= room:
            self._unroll(eqn, loop, bind, scope, False)
        elif not frame.fold_inner and shallow <= room:
            self._unroll(eqn, loop, bind, scope, True)
        elif frame.fold_inner and loop.trips == 1:
            self._unroll(eqn, loop, bind, scope, True)
        else:
            bind(self._fold(eqn, loop, scope))

    def _fold(self, eqn: Any, loop: Loop, scope: str) -> list[Value]:
        """One CONTROL node whose cost is the body's times the trip count."""
        carried = [*loop.constants, *loop.carry]
        slices = [Value(v.shape[1:], v.dtype) for v in loop.sequences]
        fixed = [Value(v.shape, v.dtype, known=v.known) for v in loop.constants]
        moving = [Value(v.shape, v.dtype) for v in loop.carry]
        once = self._body_cost(loop.body, [*fixed, *moving, *slices])
        stacked = [v.aval for v in eqn.outvars[len(loop.carry) :]]
        moved = sum(v.num_bytes for v in slices)
        moved += sum(Value(tuple(a.shape[1:]), a.dtype).num_bytes for a in stacked)
        cost = (once + Cost(0.0, 2.0 * moved)).times(loop.trips)
        outputs = [
            Value(tuple(v.aval.shape), v.aval.dtype, output=i) for i, v in enumerate(eqn.outvars)
        ]
        inputs = [*carried, *loop.sequences]
        op_type = eqn.primitive.name
        self.notes.append(
            f"{op_type} at {source_line(eqn) or scope or 'top level'}: {loop.trips} trips folded "
            "into one node (cost of the body times the trips)"
        )
        line = source_line(eqn)
        self.emit(Equation(op_type, OpKind.CONTROL, inputs, outputs, cost, scope, line))
        return outputs

    def _unroll(self, eqn: Any, loop: Loop, bind: Callable, scope: str, fold_inner: bool) -> None:
        self.unrolled += loop.trips * body_size(loop.body, not fold_inner)
        columns: list[list[Value]] = [[] for _ in eqn.outvars[len(loop.carry) :]]
        line = source_line(eqn)

        def trip(index: int, carry: list[Value]) -> None:
            if index == loop.trips:
                stacked = [
                    self._stack(v.aval, column, scope, line)
                    for v, column in zip(eqn.outvars[len(loop.carry) :], columns, strict=True)
                ]
                bind([*carry, *stacked])
                return
            inner = f"{scope}/trip_{index}" if scope else f"trip_{index}"
            row = [self._row(v, index, inner, line) for v in loop.sequences]

            def finish(results: list[Value]) -> None:
                for column, value in zip(columns, results[len(loop.carry) :], strict=True):
                    column.append(value)
                trip(index + 1, results[: len(loop.carry)])

            self.call(loop.body, [*loop.constants, *carry, *row], finish, inner, fold_inner)

        trip(0, list(loop.carry))

    def _row(self, stacked: Value, index: int, scope: str, line: str) -> Value:
        """Row ``index`` of a scanned array: a slice, and still a weight if the array is one."""
        row = Value(stacked.shape[1:], stacked.dtype, weights=stacked.weights)
        cost = Cost(0.0, 4.0 * row.num_bytes)
        if stacked.weights:
            row.weights = frozenset(f"{name}[{index}]" for name in stacked.weights)
            row.views = [cost]
            return row
        self.emit(Equation("slice", OpKind.MOVEMENT, [stacked], [row], cost, scope, line))
        return row

    def _stack(self, aval: Any, rows: list[Value], scope: str, line: str) -> Value:
        result = Value(tuple(aval.shape), aval.dtype)
        cost = Cost(0.0, 4.0 * result.num_bytes)
        self.emit(Equation("concatenate", OpKind.MOVEMENT, rows, [result], cost, scope, line))
        return result


def view_suffix(name: str, params: Mapping[str, Any]) -> str:
    """A slice or a cast of a weight is another array in memory than the weight: name it apart."""
    if name == "slice":
        ends = zip(params["start_indices"], params["limit_indices"], strict=True)
        return "[" + ",".join(f"{a}:{b}" for a, b in ends) + "]"
    return f":{params['new_dtype']}" if name == "convert_element_type" else ""


def blanks(closed: ClosedJaxpr) -> list[Value]:
    """Return values of unknown origin for the operands of a jaxpr."""
    return [Value(tuple(v.aval.shape), v.aval.dtype) for v in closed.jaxpr.invars]


_ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "neg": np.negative, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


def known_scalar_result(name: str, inputs: Sequence[Value], out: Value) -> Any:
    """Follow integers that do not depend on the inputs, so that loop bounds stay known."""
    if out.shape != () or any(v.known is None for v in inputs):
        return None
    if not np.issubdtype(np.dtype(getattr(out.dtype, "type", np.void)), np.integer):
        return None
    if name == "convert_element_type":
        return np.asarray(inputs[0].known).astype(out.dtype)
    if name in _ARITHMETIC:
        return np.asarray(_ARITHMETIC[name](*(v.known for v in inputs)), out.dtype)
    return None


def source_line(eqn: Any) -> str:
    """Return ``file:line`` of the user's code, the file's base name only; else nothing."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ""
    try:
        frame = source_info_util.user_frame(traceback)
    except Exception:  # a private interface of JAX: no line is better than no graph
        return ""
    if frame is None:
        return ""
    return f"{frame.file_name.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.start_line}"
