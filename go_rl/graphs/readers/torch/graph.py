"""Translation of a program of `torch.export` to the nodes and edges of an `OpGraph`.

Rules stated once:

- A weight is a parameter, a buffer or a constant, or a view or change of precision of one, which is
  folded into the operators that read it; they count the stored bytes. Names of one stored array are
  one weight.
- A view of a whole tensor is that tensor; of a part, a node without work. A reshape whose operand
  does not lie in memory as the result must is a copy.
- What an in-place operator writes is its result: later readers of the operand read that.
- Operators that become other than one node: see `readers.torch.special`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.tensor import Tensor
from go_rl.graphs.readers.torch.call import TorchCall, TorchRule, tensors_in
from go_rl.graphs.readers.torch.costs.movement import CONSTANTS, PARTIAL_VIEWS, SILENT
from go_rl.graphs.readers.torch.costs.table import BYTES_ONLY, RULES
from go_rl.graphs.readers.torch.geometry import torch_geometry
from go_rl.graphs.readers.torch.schema import Ref, SymRef, TorchGraph, TorchNode
from go_rl.graphs.readers.torch.sizes import SizeTable
from go_rl.graphs.readers.torch.source import module_path, source_text
from go_rl.graphs.readers.torch.value import TIE_BYTES, TorchValue
from go_rl.graphs.readers.torch.views import is_whole_view

WEIGHT_CASTS = ("aten._to_copy", "aten.to", "aten.clone", "aten.lift_fresh_copy", "aten.contiguous")
"""Operators besides views that leave a weight a weight."""
WAITS = ("wait_tensor",)
"""Collectives that wait for another: its result."""


@dataclass
class TorchWalk:
    """One walk over a graph and the graphs inside its operators."""

    builder: GraphBuilder
    sizes: SizeTable
    where: str
    notes: list[str]
    unknown: Counter[str] = field(default_factory=Counter)
    """Operators without a cost rule that were counted by bytes."""
    trip_count: int | None = None
    unrolled: int = 0
    """Nodes that recurrent layers were unrolled into."""


@dataclass
class Scope:
    """Tensors of one graph while it is walked."""

    graph: TorchGraph
    values: dict[str, TorchValue]
    prefix: str = ""
    """Before the names of nodes: empty, or the operator that holds the graph."""

    @cached_property
    def read_names(self) -> frozenset[str]:
        """Tensors that some operator reads, or that the graph returns."""
        operands = (a.value for node in self.graph.nodes for a in node.inputs)
        return frozenset(ref.name for ref in refs_in([*operands, *self.graph.outputs]))


def walk_graph(walk: TorchWalk, scope: Scope) -> None:
    """Add the operators of a graph whose inputs have values.

    Raises:
        ReadError: an operator reads what no earlier one makes, or lacks an operand.
    """
    from go_rl.graphs.readers.torch.special import SPECIAL

    for node in scope.graph.nodes:
        handler = SPECIAL.get(operator_of(node.target)[0])
        if handler is not None:
            handler(walk, scope, node)
        else:
            _walk_node(walk, scope, node)


def operator_of(target: str) -> tuple[str, str]:
    """Return operator and overload of a target such as ``torch.ops.aten.add_.Tensor``: the name of
    an in-place operator is that of the other form."""
    name = target.removeprefix("torch.ops.").removeprefix("torch._ops.")
    parts = name.split(".")
    if len(parts) < 3:
        return name, ""
    op = parts[1]
    plain = op if op.startswith("__") or not op.endswith("_") else op[:-1]
    return f"{parts[0]}.{plain}", ".".join(parts[2:])


def read_value(walk: TorchWalk, scope: Scope, ref: Ref, node: TorchNode) -> TorchValue:
    """Return the tensor that an operand names."""
    if ref.name not in scope.values:
        raise ReadError(
            f"{walk.where}: node {node.name!r} reads {ref.name!r}, which no node before it makes"
        )
    return scope.values[ref.name]


def operand(walk: TorchWalk, scope: Scope, value: Any, node: TorchNode) -> Any:
    """Return an operand with tensors as `TorchValue`, numbers known, graphs as they are."""
    if isinstance(value, list):
        return [operand(walk, scope, each, node) for each in value]
    if isinstance(value, Ref):
        return read_value(walk, scope, value, node)
    if isinstance(value, SymRef):
        return walk.sizes.number(scope.graph.numbers.get(value.name))
    return value


def values_in(value: Any) -> Iterator[TorchValue]:
    """Yield the tensors among operands."""
    if isinstance(value, TorchValue):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from values_in(each)


def refs_in(outputs: Any) -> Iterator[Ref]:
    """Yield the names of the tensors among results."""
    if isinstance(outputs, Ref):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for each in outputs:
            yield from refs_in(each)


def typed(walk: TorchWalk, scope: Scope, ref: Ref) -> Tensor:
    """Return the type of a tensor of the graph."""
    kind = scope.graph.tensors.get(ref.name)
    if kind is None:
        raise ReadError(f"{walk.where}: tensor {ref.name!r} has no type in tensor_values")
    return walk.sizes.tensor(kind, f"{walk.where}: tensor {ref.name!r}")


def strides_of(walk: TorchWalk, scope: Scope, ref: Ref) -> tuple[int, ...] | None:
    """Return the strides of a tensor; None: they are not known."""
    kind = scope.graph.tensors.get(ref.name)
    found = [walk.sizes.number(each) for each in kind.strides] if kind else [None]
    if any(each is None for each in found) or (kind and len(found) != len(kind.sizes)):
        return None
    return tuple(each for each in found if each is not None)


def _as_types(value: Any) -> Any:
    if isinstance(value, TorchValue):
        return value.tensor
    return [_as_types(each) for each in value] if isinstance(value, list) else value


def _walk_node(walk: TorchWalk, scope: Scope, node: TorchNode) -> None:
    op, overload = operator_of(node.target)
    domain, _, name = op.partition(".")
    if (domain == "aten" and name in SILENT) or domain in ("_operator", "math", "builtins"):
        return
    operands = {a.name or str(i): operand(walk, scope, a.value, node)
                for i, a in enumerate(node.inputs)}  # fmt: skip
    made = list(refs_in(node.outputs))
    call = TorchCall(
        op, overload, f"{walk.where}: node {node.name!r} ({op})",
        {key: _as_types(value) for key, value in operands.items()},
        tuple(typed(walk, scope, ref) for ref in made),
    )  # fmt: skip
    read = list(values_in(list(operands.values())))
    if read and made and _is_alias(call, read[0]):
        for ref in made:
            scope.values[ref.name] = _view(walk, scope, ref, read[0])
        return
    number = _add_operator(walk, scope, node, call, read)
    for position, ref in enumerate(made):
        tensor = call.results[position]
        scope.values[ref.name] = TorchValue(
            tensor, tensor.nbytes, number, position, strides=strides_of(walk, scope, ref)
        )
    _rebind(scope, node, made)


def _is_alias(call: TorchCall, first: TorchValue) -> bool:
    """Whether the results are the first operand: views, and of weights also parts and casts."""
    domain, _, name = call.op.partition(".")
    if name in WAITS or is_whole_view(call, first.strides):
        return True
    if not first.weights or domain != "aten":
        return False
    return name in PARTIAL_VIEWS or call.op in WEIGHT_CASTS


def _view(walk: TorchWalk, scope: Scope, ref: Ref, base: TorchValue) -> TorchValue:
    """The same array by another shape: what is sent of it does not grow."""
    tensor = typed(walk, scope, ref)
    sent = tensor.nbytes if base.weights else min(base.num_bytes, tensor.nbytes)
    return replace(base, tensor=tensor, num_bytes=sent, strides=strides_of(walk, scope, ref))


def _rebind(scope: Scope, node: TorchNode, made: list[Ref]) -> None:
    """Let later readers of what an in-place operator writes read its result."""
    packet = node.target.split(".")[-2:-1]
    written = node.inputs[0].value if node.inputs else None
    in_place = packet and packet[0].endswith("_") and not packet[0].endswith("__")
    if in_place and isinstance(written, Ref) and made:
        scope.values[written.name] = scope.values[made[0].name]


def weights_of(read: list[TorchValue]) -> dict[str, Tensor]:
    """Return the stored arrays that operands are views of."""
    return {name: tensor for value in read for name, tensor in value.weights.items()}


def _add_operator(
    walk: TorchWalk, scope: Scope, node: TorchNode, call: TorchCall, read: list[TorchValue]
) -> int:
    rule = RULES.get(call.op)
    name = call.op.partition(".")[2]
    if rule is None and call.op.startswith("aten.") and name in PARTIAL_VIEWS:
        kind, flops, num_bytes = OpKind.MOVEMENT, 0.0, 0.0
    else:
        if rule is None:
            walk.unknown[call.op] += 1
        kind, flops, num_bytes = _price(call, rule or BYTES_ONLY, read)
        is_fed = all(value.producer is None for value in read)
        if name in CONSTANTS and is_fed:
            kind, flops, num_bytes = OpKind.CONSTANT, 0.0, 0.0
    return add_node(walk, scope, node, read, call.results, (kind, flops, num_bytes), call)


def _price(call: TorchCall, rule: TorchRule, read: list[TorchValue]) -> tuple[OpKind, float, float]:
    try:
        moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in call.results)
        num_bytes = moved if rule.num_bytes is None else rule.num_bytes(call)
        return rule.kind, max(0.0, float(rule.flops(call))), float(num_bytes)
    except (ArithmeticError, IndexError, ValueError, TypeError, KeyError) as error:
        shapes = [t.shape for t in tensors_in(list(call.arguments.values()))]
        raise ReadError(
            f"{call.where}: operand shapes {shapes} do not fit the operator ({error})"
        ) from error


def add_node(
    walk: TorchWalk,
    scope: Scope,
    node: TorchNode,
    read: list[TorchValue],
    results: tuple[Tensor, ...],
    cost: tuple[OpKind, float, float],
    call: TorchCall | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> int:
    """Add the node of an operator, with edges from what it reads; return its number."""
    held = weights_of(read) if weights is None else weights
    stored = sum(t.nbytes for t in held.values())
    elements = sum(t.size for t in held.values())
    first = results[0] if results else Tensor((), 0.0)
    number = walk.builder.add_node(
        Node(
            name=unique_name(walk, scope, node),
            op_type=operator_of(node.target)[0],
            kind=cost[0],
            flops=cost[1],
            bytes_accessed=cost[2],
            output_bytes=float(sum(t.nbytes for t in results)),
            weight_bytes=float(stored),
            output_itemsize=first.itemsize,
            weight_itemsize=stored / elements if elements else 0.0,
            weight_arrays={w: float(t.nbytes) for w, t in held.items() if t.nbytes > TIE_BYTES},
            output_shape=first.shape,
            source=source_text(node.metadata),
            geometry=torch_geometry(call) if call else None,
        )
    )
    for value in read:
        if value.producer is not None and value.producer != number:
            walk.builder.add_edge(value.producer, number, value.num_bytes, value.output)
    return number


def unique_name(walk: TorchWalk, scope: Scope, node: TorchNode) -> str:
    """Return a new name for a node: its module's path, then its own."""
    path = module_path(node.metadata)
    first = f"{path}/{scope.prefix}{node.name}" if path else f"{scope.prefix}{node.name}"
    name, copy = first, 1
    while name in walk.builder:
        copy += 1
        name = f"{first}#{copy}"
    return name
