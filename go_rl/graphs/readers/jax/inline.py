"""Flatten a jaxpr: inline calls, unroll or fold loops, choose branches, follow weights' views.

Works on an explicit stack of frames, so no depth of nesting or length of program can exhaust
Python's own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Cost, expanded_densely
from go_rl.graphs.readers.jax.costs import cost_of, shared_splats
from go_rl.graphs.readers.jax.loops import read_loop
from go_rl.graphs.readers.jax.primitives import IDENTITY, kind_of
from go_rl.graphs.readers.jax.values import (
    Equation,
    Value,
    join_scopes,
    known_result,
    known_scalar,
    mark_live,
    source_line,
    total_cost,
)
from go_rl.graphs.tables import by_name, names

CALLS = by_name(
    {
        "checkpoint composite cudnn_fusion jit pjit remat remat2": "jaxpr",
        "call closed_call core_call custom_jvp_call custom_vjp_call": "call_jaxpr",
        "named_call xla_call": "call_jaxpr",
        "custom_vjp_call_jaxpr": "fun_jaxpr",
        "custom_vmap_call": "call",
        "linear_call": "callee",
        "remat_opt": "fwd_jaxpr",
    }
)
"""Primitives that only call another jaxpr, and the parameter that holds it."""

FUNCTIONS = CALLS.keys() - {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
"""Calls that JAX lowers to a function of their own; the others are lowered in place."""

VIEWS = names(
    "broadcast_in_dim convert_element_type expand_dims reshape rev slice squeeze transpose"
)
"""Layout and cast of a weight: the result is still that weight, unless it has grown."""

DROPPED = names("dce_sink debug_callback debug_print inspect_sharding")
"""Effects that the cost of an iteration does not include."""

ORDER = names("after_all create_token")
"""Tokens, which only order effects: values of no size."""

CONTROL = names("cond custom_linear_solve platform_index scan tie while")
"""Primitives that `Inliner` reads by a rule of its own."""

Finish = Callable[[list[Value]], None]
"""Callback for the results of a jaxpr."""


@dataclass(frozen=True)
class JaxOptions:
    """Options of flattening a jaxpr."""

    unroll_limit: int = 20_000
    """Most equations that unrolled loops may add in total; a loop beyond is folded."""
    trip_count: int | None = None
    """Trips of every ``while`` whose count cannot be derived; None: such a loop is an error."""
    unknown: str = "error"
    """``error``, or ``bytes``: count unknown primitives by operand and result bytes."""

    def __post_init__(self) -> None:
        if self.unknown not in ("error", "bytes"):
            raise ReadError(f"unknown must be 'error' or 'bytes', not {self.unknown!r}")
        if self.unroll_limit < 0 or (self.trip_count is not None and self.trip_count < 0):
            raise ReadError("unroll_limit and trip_count must be 0 or more")


@dataclass(frozen=True)
class Context:
    """Place at which a jaxpr is inlined."""

    scope: str = ""
    """Name stack of its caller."""
    line: str = ""
    """Source location of the user's call, for equations that come from a library."""
    fold_inner: bool = False
    """Loops inside are folded because unrolling them too would pass the limit."""
    unroll_inner: bool = False
    """Scans inside are unrolled: the limit has already been charged for them."""
    splats: set[Any] = field(default_factory=set)
    """Filled constants of the XLA function that the jaxpr is lowered into."""


@dataclass(eq=False)
class Frame:
    """A jaxpr being traversed."""

    jaxpr: Jaxpr
    values: dict[Any, Value]
    finish: Finish
    context: Context
    position: int = 0


@dataclass(eq=False)
class Inliner:
    """Collects `equations`; one instance for each program or folded body."""

    options: JaxOptions
    equations: list[Equation] = field(default_factory=list)
    unrolled: int = 0
    """Equations added by unrolled loops so far."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user."""
    inexact: list[str] = field(default_factory=list)
    """Places where the equations have the program's cost, but do not compute its results."""
    _constants: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """Name of each closed-over array by its id; the array is kept so that the id stays its own."""
    _costs: dict[Any, tuple[ClosedJaxpr, Cost]] = field(default_factory=dict)
    """Cost of each branch and folded body by its id and the numbers known to enter it."""
    _stack: list[Frame] = field(default_factory=list)

    def run(self, closed: ClosedJaxpr, inputs: Sequence[Value]) -> list[Value]:
        """Walk a jaxpr and everything it calls; return its results."""
        results: list[Value] = []
        self.call(closed, inputs, results.extend, Context())
        while self._stack:
            frame = self._stack[-1]
            if frame.position == len(frame.jaxpr.eqns):
                self._stack.pop()
                frame.finish([self._value(frame, v) for v in frame.jaxpr.outvars])
                continue
            frame.position += 1
            self._step(frame, frame.jaxpr.eqns[frame.position - 1])
        return results

    def call(self, body: Any, inputs: Sequence[Value], finish: Finish, context: Context) -> None:
        """Push the frame of a jaxpr, open or closed."""
        jaxpr, consts = (body.jaxpr, body.consts) if isinstance(body, ClosedJaxpr) else (body, ())
        values = {v: self._constant(c) for v, c in zip(jaxpr.constvars, consts, strict=True)}
        values.update(zip(jaxpr.invars, inputs, strict=True))
        self._stack.append(Frame(jaxpr, values, finish, context))

    def emit(self, equation: Equation, context: Context | None = None) -> None:
        """Append an equation at a place and make it the producer of its results."""
        if context is not None:
            equation.scope, equation.line = context.scope, context.line
        for value in equation.outputs:
            value.producer = equation
        self.equations.append(equation)

    def body_cost(self, body: ClosedJaxpr, inputs: Sequence[Value]) -> Cost:
        """Return the cost of a jaxpr walked on its own, loops inside folded."""
        entering = tuple(None if v.known is None else repr(v.known) for v in inputs)
        key = id(body), entering
        if key not in self._costs:
            inner = Inliner(replace(self.options, unroll_limit=0), _costs=self._costs)
            results = inner.run(body, inputs)
            mark_live(inner.equations, results)
            self._costs[key] = body, total_cost(inner.equations)
        return self._costs[key][1]

    def _value(self, frame: Frame, atom: Any) -> Value:
        if not isinstance(atom, Literal):
            return frame.values[atom]
        if np.shape(atom.val) != ():
            return self._constant(atom.val)
        aval: Any = atom.aval
        return Value((), aval.dtype, known=atom.val)

    def _constant(self, array: Any) -> Value:
        """A closed-over scalar is a literal; a larger array is a weight named ``const/<n>``."""
        shape = tuple(np.shape(array))
        dtype = array.dtype if hasattr(array, "dtype") else np.asarray(array).dtype
        if shape == ():
            return Value(shape, dtype, known=known_scalar(array))
        name, _ = self._constants.setdefault(id(array), (f"const/{len(self._constants)}", array))
        return Value(shape, dtype, weights=frozenset((name,)), array=array)

    def _step(self, frame: Frame, eqn: Any) -> None:
        name = eqn.primitive.name
        if name in DROPPED:
            return
        inputs = [self._value(frame, v) for v in eqn.invars]
        around = frame.context
        scope = join_scopes(around.scope, str(eqn.source_info.name_stack))
        line = source_line(eqn) or around.line
        context = Context(scope, line, around.fold_inner, around.unroll_inner, around.splats)
        bind = partial(_bind, frame.values, eqn.outvars)
        if name in CALLS:
            inner = replace(context, splats=set()) if name in FUNCTIONS else context
            self.call(eqn.params[CALLS[name]], inputs, bind, inner)
        elif name == "custom_linear_solve":
            self._solve(eqn, inputs, bind, context)
        elif name in ("scan", "while"):
            read_loop(self, eqn, inputs, bind, context)
        elif name == "cond":
            self._cond(eqn, inputs, bind, context)
        elif name == "platform_index":
            bind([_platform(eqn)])
        elif name == "tie":
            bind(inputs[1:2])
        elif name in ORDER:
            bind([Value((), np.dtype(bool))])
        elif name in IDENTITY:
            bind(inputs[: len(eqn.outvars)])
        else:
            bind(self._operator(eqn, inputs, context))

    def _operator(self, eqn: Any, inputs: list[Value], context: Context) -> list[Value]:
        name, avals = eqn.primitive.name, [v.aval for v in eqn.outvars]
        outputs = [Value(tuple(a.shape), a.dtype, output=i) for i, a in enumerate(avals)]
        cost = cost_of(eqn.primitive, inputs, outputs, eqn.params, self.options.unknown)
        cost = cost + shared_splats(eqn.primitive, inputs, outputs, eqn.params, context.splats)
        if name in VIEWS and inputs and inputs[0].weights and outputs[0].size <= inputs[0].size:
            return [_view(eqn, inputs[0], outputs[0], cost)]
        if len(outputs) == 1:
            outputs[0].known = known_result(name, inputs, outputs[0])
        if name == "ragged_dot_general":
            where = join_scopes(context.scope, name) + (f" ({context.line})" * bool(context.line))
            self.notes.append(expanded_densely(where, inputs[2].shape[-1]))
        kind = kind_of(name, any(v.producer or v.weights for v in inputs))
        self.emit(Equation(name, kind, inputs, outputs, cost, eqn=eqn), context)
        return outputs

    def _solve(self, eqn: Any, inputs: list[Value], bind: Finish, context: Context) -> None:
        """A linear solve costs its ``solve`` function; the others serve differentiation."""
        counts = eqn.params["const_lengths"]
        before = counts.matvec + counts.vecmat
        constants = inputs[before : before + counts.solve]
        operands = inputs[sum(counts) :]
        self.call(eqn.params["jaxprs"].solve, constants + operands, bind, context)

    def _cond(self, eqn: Any, inputs: list[Value], bind: Finish, context: Context) -> None:
        """Inline the branch that a known number chooses; else the most expensive, then a node
        without cost where the predicate chooses."""

        def choose(results: list[Value]) -> None:
            outputs = [Value(v.shape, v.dtype, output=i) for i, v in enumerate(results)]
            operands = [inputs[0], *results]
            self.emit(Equation("cond", OpKind.CONTROL, operands, outputs), context)
            bind(outputs)

        branches = eqn.params["branches"]
        if inputs[0].known is not None and inputs[0].producer is None:
            place = min(max(int(inputs[0].known), 0), len(branches) - 1)
            self.call(branches[place], inputs[1:], bind, replace(context, splats=set()))
            return
        branch = self._costliest(branches)
        self.inexact.append(f"cond at {context.line or context.scope or 'top level'}")
        finish = choose if inputs[0].producer is not None else bind
        self.call(branch, inputs[1:], finish, replace(context, splats=set()))

    def _costliest(self, branches: Sequence[ClosedJaxpr]) -> ClosedJaxpr:
        """The branch of most FLOP (then bytes) represents a ``cond``."""

        def cost(branch: ClosedJaxpr) -> tuple[float, float]:
            total = self.body_cost(branch, _blanks(branch))
            return total.flops, total.num_bytes

        return max(branches, key=cost)


def _platform(eqn: Any) -> Value:
    """Branch of ``platform_dependent`` to read: the one for any platform, else XLA's own on
    processors, else the first; a graph must not depend on where it is read."""
    platforms = eqn.params["platforms"]
    anywhere = [i for i, names in enumerate(platforms) if names is None]
    on_processors = [i for i, names in enumerate(platforms) if names and "cpu" in names]
    chosen = (*anywhere, *on_processors, 0)[0]
    return Value((), eqn.outvars[0].aval.dtype, known=np.int32(chosen))


def _bind(values: dict[Any, Value], names: Sequence[Any], results: list[Value]) -> None:
    values.update(zip(names, results, strict=True))


def _blanks(closed: ClosedJaxpr) -> list[Value]:
    """Return values of unknown origin for the operands of a jaxpr."""
    return [Value(tuple(v.aval.shape), v.aval.dtype) for v in closed.jaxpr.invars]


def _view(eqn: Any, weight: Value, view: Value, cost: Cost) -> Value:
    """Return the view of a weight; a slice or a cast is another array in memory: name it apart."""
    name, params, part = eqn.primitive.name, eqn.params, ""
    if name == "slice":
        ends = zip(params["start_indices"], params["limit_indices"], strict=True)
        part = "[" + ",".join(f"{a}:{b}" for a, b in ends) + "]"
    elif name == "convert_element_type":
        part = f":{view.dtype}"
    view.weights = frozenset(w + part for w in weight.weights)
    view.views = [*weight.views, cost]
    view.view_of = eqn, weight
    weight.views.clear()
    return view
