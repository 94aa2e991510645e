"""Translation of a program of `torch.export` to the nodes and edges of an `OpGraph`.

Rules stated once:

- A weight is a parameter, a buffer or a constant, or a view or change of precision of one, which is
  folded into the operators that read it; they count the stored bytes. Names of one stored array are
  one weight.
- A view of a whole tensor is that tensor; of a part, a node without work. A reshape whose operand
  does not lie in memory as the result must is a copy; a clone in a program that writes into no
  tensor is one where it changes the layout.
- Of a tensor whose shape is asked for, as by `zeros_like`, nothing is read.
- What an in-place operator writes is its result: later readers of the operand read that.
- Operators that become other than one node: see `readers.torch.higher_order`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import micro_batch_of, micro_batch_scope, without_micro_batch
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import Strides, row_strides
from go_rl.graphs.readers.cost import Tensor, type_computed_in
from go_rl.graphs.readers.graph_builder import TIE_BYTES, Node
from go_rl.graphs.readers.torch.call import TorchCall, TorchRule, tensors_in
from go_rl.graphs.readers.torch.costs.movement import (
    COLLECTIVE_DOMAINS,
    CONSTANTS,
    LIKE,
    PARTIAL_VIEWS,
    SILENT,
    is_whole_view,
)
from go_rl.graphs.readers.torch.costs.table import BYTES_ONLY, RULES
from go_rl.graphs.readers.torch.geometry import torch_geometry
from go_rl.graphs.readers.torch.program.schema import Ref, TorchNode
from go_rl.graphs.readers.torch.scope import (
    ProgramScope,
    TorchValue,
    TorchWalk,
    is_in_place,
    module_path,
    operand,
    operator_of,
    refs_in,
    source_text,
    strides_of,
    typed,
    values_in,
)

WEIGHT_CASTS = ("aten._to_copy", "aten.to", "aten.clone", "aten.lift_fresh_copy", "aten.contiguous")
"""Operators besides views that leave a weight a weight."""
CLONE = "aten.clone"
"""Copy; the decomposition of a dropout outside of training is one."""
CONVERSIONS = ("aten.to", "aten.type_as")
"""Views that are none where the element type changes."""
ALIASES = ("_add_batch_dim", "_remove_batch_dim", "wait_tensor")
"""Ends of operators whose result is their operand: of `vmap`, and waiting for a collective."""
SHARDED = "a sharded program: the graph is what one rank does, collectives by what they move"
"""Note of a program with collectives."""
NESTING = ("_vmap_decrement_nesting", "_vmap_increment_nesting")
"""Ends of functions that begin and end a `vmap`."""
SILENT_DOMAINS = ("_operator", "builtins", "math", "torch")
"""Modules of functions on single numbers and of `vmap`'s nesting."""


def walk_graph(walk: TorchWalk, scope: ProgramScope) -> None:
    """Add the operators of a graph whose inputs have values.

    Raises:
        ReadError: an operator reads what no earlier one makes, or lacks an operand.
    """
    from go_rl.graphs.readers.torch.higher_order import SPECIAL

    for node in scope.graph.nodes:
        handler = SPECIAL.get(operator_of(node.target)[0])
        if handler is not None:
            handler(walk, scope, node)
        else:
            _walk_node(walk, scope, node)


def _as_types(value: Any) -> Any:
    if isinstance(value, TorchValue):
        return value.tensor
    return [_as_types(each) for each in value] if isinstance(value, list) else value


def _walk_node(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    op, overload = operator_of(node.target)
    domain, _, name = op.partition(".")
    is_alias = op.endswith(ALIASES)
    if op.endswith(NESTING):
        _nest(walk, op, node)
    if (domain == "aten" and name in SILENT) or (domain in SILENT_DOMAINS and not is_alias):
        return
    operands = {a.name or str(i): operand(walk, scope, a.value, node)
                for i, a in enumerate(node.inputs)}  # fmt: skip
    made = list(refs_in(node.outputs))
    if twice := [ref.name for ref in made if ref.name in scope.values]:
        raise ReadError(
            f"{walk.where}: node {node.name!r} makes {twice[0]!r}, which is there before it"
        )
    call = TorchCall(
        op, overload, f"{walk.where}: node {node.name!r} ({op})",
        {key: _as_types(value) for key, value in operands.items()},
        tuple(typed(walk, scope, ref) for ref in made),
    )  # fmt: skip
    read = [] if name in LIKE else list(values_in(list(operands.values())))
    strides = strides_of(walk, scope, made[0]) if made else None
    is_view = bool(read and made) and not _converts(scope, node, made)
    if is_view and (
        _is_alias(call, read[0], strides) or _is_idle_clone(scope, call, read, strides)
    ):
        for ref in made:
            scope.values[ref.name] = _view(walk, scope, ref, read[0])
        return
    if domain in COLLECTIVE_DOMAINS and SHARDED not in walk.notes:
        walk.notes.append(SHARDED)
    number = _add_operator(walk, scope, node, call, read)
    bind_results(walk, scope, made, call.results, number)
    _rebind(scope, node, made)


def bind_results(
    walk: TorchWalk, scope: ProgramScope, made: list[Ref], types: tuple[Tensor, ...], number: int
) -> None:
    """Give the results of a node their names."""
    for position, (ref, tensor) in enumerate(zip(made, types, strict=True)):
        scope.values[ref.name] = TorchValue(
            tensor, tensor.nbytes, number, position, strides=strides_of(walk, scope, ref)
        )


def _nest(walk: TorchWalk, op: str, node: TorchNode) -> None:
    """Enter or leave a `vmap`."""
    sizes = [a.value for a in node.inputs if isinstance(a.value, int)]
    if "increment" in op:
        walk.lanes.append(max(1, sizes[0]) if sizes else 1)
    elif walk.lanes:
        walk.lanes.pop()


def _converts(scope: ProgramScope, node: TorchNode, made: list[Ref]) -> bool:
    """Whether an operator changes the element type of its operand, which is no weight."""
    if operator_of(node.target)[0] not in CONVERSIONS or not isinstance(node.inputs[0].value, Ref):
        return False
    first = node.inputs[0].value.name
    known = [scope.graph.tensors.get(name) for name in (first, made[0].name)]
    changes = len({kind.element for kind in known if kind}) > 1
    return changes and first in scope.values and not scope.values[first].weights


def _is_alias(call: TorchCall, first: TorchValue, strides: Strides) -> bool:
    """Whether the results are the first operand: views, and of weights also parts and casts."""
    domain, _, name = call.op.partition(".")
    if call.op.endswith(ALIASES) or is_whole_view(call, first.strides, strides):
        return True
    if not first.weights or domain != "aten":
        return False
    return name in PARTIAL_VIEWS or call.op in WEIGHT_CASTS


def _is_idle_clone(
    scope: ProgramScope, call: TorchCall, read: list[TorchValue], strides: Strides
) -> bool:
    """Whether a copy is its operand: it lies in memory alike, and the program writes into none."""
    if call.op != CLONE or scope.writes or strides is None:
        return False
    shape = call.result.shape
    given = read[0].strides or row_strides(shape)
    return all(a == b for a, b, size in zip(given, strides, shape, strict=True) if size > 1)


def _view(walk: TorchWalk, scope: ProgramScope, ref: Ref, base: TorchValue) -> TorchValue:
    """Price a view: the same array by another shape, so that no more of it is sent."""
    tensor = typed(walk, scope, ref)
    sent = tensor.nbytes if base.weights else min(base.num_bytes, tensor.nbytes)
    return replace(base, tensor=tensor, num_bytes=sent, strides=strides_of(walk, scope, ref))


def _rebind(scope: ProgramScope, node: TorchNode, made: list[Ref]) -> None:
    """Let later readers of what an in-place operator writes read its result."""
    written = node.inputs[0].value if node.inputs else None
    if is_in_place(node.target) and isinstance(written, Ref) and made:
        scope.values[written.name] = scope.values[made[0].name]


def weights_of(read: list[TorchValue]) -> dict[str, Tensor]:
    """Return the stored arrays that operands are views of."""
    return {name: tensor for value in read for name, tensor in value.weights.items()}


def _add_operator(
    walk: TorchWalk, scope: ProgramScope, node: TorchNode, call: TorchCall, read: list[TorchValue]
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
    scope: ProgramScope,
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
    repeated = prod(walk.lanes)
    number = walk.builder.add_node(
        Node(
            name=unique_name(walk, scope, node),
            op_type=operator_of(node.target)[0],
            kind=cost[0],
            flops=cost[1] * repeated,
            bytes_accessed=cost[2] * repeated,
            output_bytes=float(sum(t.nbytes for t in results)) * repeated,
            weight_bytes=float(stored),
            output_itemsize=first.itemsize,
            weight_itemsize=stored / elements if elements else 0.0,
            weight_arrays={w: float(t.nbytes) for w, t in held.items() if t.nbytes > TIE_BYTES},
            output_shape=first.shape,
            source=source_text(node.metadata),
            geometry=torch_geometry(call) if call else None,
            element_type=type_computed_in(cost[0], [v.tensor for v in read], results),
        )
    )
    for value in read:
        if value.producer is not None and value.producer != number:
            walk.builder.add_edge(value.producer, number, value.num_bytes, value.output)
    return number


def unique_name(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> str:
    """Return a new name for a node: its module's path, then its own."""
    path, ending = without_micro_batch(module_path(node.metadata))
    repeated = f"_{micro_batch_scope(micro_batch_of(ending))}"
    own = scope.prefix + node.name.removesuffix(repeated)
    first = f"{path}/{own}" if path else own
    name, copy = f"{first}{ending}", 1
    while name in walk.builder:
        copy += 1
        name = f"{first}#{copy}{ending}"
    return name
