"""Read a JAX function into an `OpGraph`: trace it, flatten the jaxpr, price each equation."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from go_rl.core.errors import GoRLError, ReadError
from go_rl.core.graph.element_type import computing_type
from go_rl.core.graph.micro_batch import without_micro_batch
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.printable import sentence_of
from go_rl.graphs.readers.graph_builder import TIE_BYTES, GraphBuilder, Node
from go_rl.graphs.readers.jax.geometry import jax_geometry
from go_rl.graphs.readers.jax.inline import Inliner, JaxOptions
from go_rl.graphs.readers.jax.values import (
    Equation,
    Value,
    clean_scope,
    join_scopes,
    mark_live,
    view_cost,
)
from go_rl.graphs.readers.model_options import argument_positions
from go_rl.graphs.readers.weight_returns import add_weight_returns, statistics_notes


def trace_jax(
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    weights: Collection[int] | None = None,
    options: JaxOptions | None = None,
    dims: Mapping[str, int] | None = None,
    **kwargs: Any,
) -> OpGraph:
    """Return the operator graph of ``function(*args, **kwargs)``; nothing is computed.

    Arguments are pytrees of arrays or `jax.ShapeDtypeStruct`. Calls (`jit`, `custom_jvp`,
    `custom_vjp`, `checkpoint`, …) are inlined. A ``scan``, or a ``while`` whose trips are known, is
    unrolled while all unrolled equations stay under ``options.unroll_limit``; beyond, its inner
    loops are folded first, then the loop itself: one `OpKind.CONTROL` node that costs the body
    times the trips. Of a ``cond`` the most expensive branch (FLOP, then bytes) is
    taken, and a ``cond`` node without cost follows where the predicate chooses. Equations that no
    result depends on are left out, and so are inputs that nothing reads.

    Weights are the array leaves of the arguments whose positions are in ``weights``, and arrays
    that the function closes over. By default argument 0 is weights if it is a pytree with more than
    one array leaf and there are other arguments. Weights are not nodes: their bytes are on the
    operators that read them, under names such as ``params/dense/kernel``. Reshapes, transposes,
    casts and slices of a weight are still that weight (a slice or a cast counts its own bytes, and
    the first reader pays for making it). A device keeps one copy of each array that
    its operators read; those of at most 1 KiB each operator holds for itself.

    Raises:
        ReadError: the function raises while it is traced, or a ``while`` has unknown trips.
        UnknownOperatorError: a primitive of unknown cost (see ``JaxOptions.unknown``).
    """
    program = flatten_jax(function, args, kwargs, name=name, weights=weights, options=options)
    return program_graph(program, dims)


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """A JAX function without calls, ready to become a graph or to be cut into stages."""

    title: str
    leaves: Sequence[Leaf]
    """The array leaves of the arguments, in the order of flattening."""
    equations: Sequence[Equation]
    """The live ones, inputs included: one for each node of the graph, in the graph's order."""
    results: Sequence[Value]
    output_tree: Any
    """Tree structure of what the function returns."""
    notes: Sequence[str]
    inexact: Sequence[str]
    """Places whose equations do not compute the function's results."""


def flatten_jax(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    weights: Collection[int] | None = None,
    options: JaxOptions | None = None,
) -> FlatProgram:
    """Trace a function and inline what it calls; see `trace_jax` for arguments and errors."""
    kwargs = kwargs or {}
    title = name or getattr(function, "__name__", None) or type(function).__name__
    jaxpr, output_tree = traced(function, args, kwargs, title)
    leaves = _leaves(function, args, kwargs, weight_positions(args, kwargs, weights))
    inliner = Inliner(options or JaxOptions())
    for leaf in leaves:
        if not leaf.value.weights:
            inliner.emit(_input(leaf))
    results = inliner.run(jaxpr, [leaf.value for leaf in leaves])
    mark_live(inliner.equations, results)
    guessed = _guessed(function, args, kwargs) if weights is None else []
    notes = [*guessed, *dict.fromkeys(inliner.notes), *_unread(inliner.equations)]
    live = [e for e in inliner.equations if e.live]
    return FlatProgram(title, leaves, live, results, output_tree, notes, inliner.inexact)


def program_graph(program: FlatProgram, dims: Mapping[str, int] | None = None) -> OpGraph:
    """Price a flat program; only once, because costs of weights' views are charged to their first
    readers."""
    meta = {"format": "jax", "dims": dict(dims or {}), "notes": list(program.notes)}
    builder = GraphBuilder(program.title, meta)
    outputs = {id(v.producer) for v in program.results if v.producer is not None}
    numbers: dict[int, int] = {}
    for equation, name in zip(program.equations, _names(program.equations), strict=True):
        number = builder.add_node(_node(equation, name, id(equation) in outputs))
        numbers[id(equation)] = number
        for value in equation.inputs:
            if value.producer is not None:
                sender = numbers[id(value.producer)]
                builder.add_edge(sender, number, value.num_bytes, value.output)
    add_weight_returns(builder)
    if notes := statistics_notes(builder):
        builder.meta["notes"] = [*meta["notes"], *notes]
    return builder.build()


@dataclass(frozen=True)
class Leaf:
    """One array of the arguments."""

    name: str
    value: Value


def traced(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], title: str
) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr and the tree structure of the results.

    Raises:
        ReadError: the function raises.
    """
    try:
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
        return jaxpr, jax.tree.structure(shapes)
    except GoRLError:
        raise
    except (Exception, SystemExit) as error:
        raise ReadError(
            f"{title}: the function raised while it was traced: {sentence_of(error)}"
        ) from error


def weight_positions(
    args: Sequence[Any], kwargs: Mapping[str, Any], weights: Collection[int] | None
) -> frozenset[int]:
    """Return the positions of the arguments that are weights; None: by the default rule of
    `trace_jax`."""
    if weights is None:
        several = len(args) > 0 and len(jax.tree.leaves(args[0])) > 1
        return frozenset({0} if several and len(args) + len(kwargs) > 1 else ())
    beyond = [i for i in argument_positions(weights) or () if i >= len(args)]
    if beyond:
        raise ReadError(
            f"weights (--weight-args) names argument {beyond[0]}; the positions are "
            f"0..{len(args) - 1}"
        )
    return frozenset(weights)


def _guessed(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    """Report which arguments the default rule takes for weights, where another reading is likely: a
    bare array may be one, and a second pytree the state of an optimizer."""
    chosen = weight_positions(args, kwargs, None)
    several = [i for i, arg in enumerate(args) if len(jax.tree.leaves(arg)) > 1]
    if len(args) + len(kwargs) < 2 or set(several) == chosen != frozenset():
        return []
    names = _argument_names(function, len(args))
    inputs = [*(f"{i} ({names[i]})" for i in range(len(args)) if i not in chosen), *kwargs]
    held = "argument 0 is" if chosen else "no argument is"
    likely = tuple(sorted({0, *several} if args else several))
    words = ",".join(map(str, likely))
    return [
        f"{held} taken for weights, and for inputs {', '.join(inputs)}; weights={likely} "
        f"(--weight-args {words}), for example, names the positions of arguments that stay on "
        "their devices between runs, such as parameters and the state of an optimizer"
    ]


def _leaves(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    weights: frozenset[int],
) -> list[Leaf]:
    """List the array leaves in the order of the jaxpr's inputs."""
    names = _argument_names(function, len(args))
    leaves = []
    positional = [(names[i], arg, i in weights) for i, arg in enumerate(args)]
    by_name = [(key, kwargs[key], False) for key in sorted(kwargs)]
    for title, tree, is_weight in positional + by_name:
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            aval = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
            full = "/".join([title, *map(_key, path)])
            held = frozenset((full,)) if is_weight else frozenset()
            leaves.append(Leaf(full, Value(tuple(aval.shape), aval.dtype, weights=held)))
    return leaves


def _key(entry: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """Name positional arguments by the signature, ``arg<i>`` where it has no name for them."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]


def _input(leaf: Leaf) -> Equation:
    return Equation("input", OpKind.INPUT, [], [leaf.value], name=leaf.name)


def _unread(equations: Sequence[Equation]) -> list[str]:
    names = [e.name for e in equations if e.kind is OpKind.INPUT and not e.live]
    return [f"inputs that no result depends on are left out: {', '.join(names)}"] if names else []


def _names(equations: Sequence[Equation]) -> Iterator[str]:
    """Yield unique, stable names: scope, primitive, and a count of that primitive in the graph."""
    counts: Counter[str] = Counter()
    taken: set[str] = set()
    for equation in equations:
        name = equation.name
        if not name:
            numbered = f"{equation.op_type}.{counts[equation.op_type]}"
            counts[equation.op_type] += 1
            scope, ending = without_micro_batch(clean_scope(equation.scope))
            name = join_scopes(scope, f"{numbered}{ending}")
        while equation.name and name in taken:
            name += "_"
        taken.add(name)
        yield name


def _node(equation: Equation, name: str, is_output: bool) -> Node:
    held = {min(v.weights): v for v in equation.inputs if v.weights}
    cost = sum(map(view_cost, equation.inputs), equation.cost)
    outputs = equation.outputs
    return Node(
        name=name,
        op_type=equation.op_type,
        kind=equation.kind,
        flops=cost.flops,
        bytes_accessed=cost.num_bytes,
        output_bytes=float(sum(v.num_bytes for v in outputs)),
        weight_bytes=float(sum(v.num_bytes for v in held.values())),
        output_itemsize=float(outputs[0].itemsize) if outputs else 0.0,
        weight_itemsize=float(max((v.itemsize for v in held.values()), default=0)),
        weight_arrays={n: float(v.num_bytes) for n, v in held.items() if v.num_bytes > TIE_BYTES},
        output_shape=outputs[0].shape if outputs else (),
        is_backward=equation.is_backward,
        is_output=is_output,
        source=" ".join(s for s in (equation.scope, equation.line) if s),
        geometry=jax_geometry(equation),
        element_type=computing_type(
            equation.kind,
            [(v.type, len(v.shape)) for v in equation.inputs],
            [v.type for v in outputs],
        ),
    )
