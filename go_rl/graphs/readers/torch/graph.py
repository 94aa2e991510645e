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

from dataclasses import replace
from math import prod
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import micro_batch_of, micro_batch_scope, without_micro_batch
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import Strides, row_strides
from go_rl.graphs.readers.cost import type_computed_in
from go_rl.graphs.readers.cost_rules import CostRule, unfitting
from go_rl.graphs.readers.operand import Operand, Price, add_operator, operator_node, weights_of
from go_rl.graphs.readers.torch.call import TorchCall
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
    TorchWalk,
    is_in_place,
    module_path,
    operator_of,
    refs_in,
    source_text,
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


def walk_graph(scope: ProgramScope) -> None:
    """Add the operators of a graph whose inputs have values.

    Raises:
        ReadError: an operator reads what no earlier one makes, or lacks an operand.
    """
    from go_rl.graphs.readers.torch.higher_order import SPECIAL

    for node in scope.graph.nodes:
        SPECIAL.get(operator_of(node.target), _walk_node)(scope, node)


def _as_types(value: Any) -> Any:
    if isinstance(value, Operand):
        return value.tensor
    return [_as_types(each) for each in value] if isinstance(value, list) else value


def _walk_node(scope: ProgramScope, node: TorchNode) -> None:
    op = operator_of(node.target)
    domain, _, name = op.partition(".")
    walk, is_alias = scope.walk, op.endswith(ALIASES)
    if op.endswith(NESTING):
        _nest(walk, op, node)
    if (domain == "aten" and name in SILENT) or (domain in SILENT_DOMAINS and not is_alias):
        return
    operands = {a.name or str(i): scope.operand(a.value, node) for i, a in enumerate(node.inputs)}
    made = list(refs_in(node.outputs))
    if twice := [ref.name for ref in made if ref.name in scope.values]:
        raise ReadError(f"{scope.place(node)} makes {twice[0]!r}, which is there before it")
    arguments = {key: _as_types(value) for key, value in operands.items()}
    where = f"{scope.place(node)} ({op})"
    call = TorchCall(op, where, arguments, scope.result_types(node))
    read = [] if name in LIKE else list(values_in(list(operands.values())))
    strides = scope.strides(made[0]) if made else None
    is_view = bool(read and made) and not _converts(scope, node, made)
    if is_view and (
        _is_alias(call, read[0], strides) or _is_idle_clone(scope, call, read, strides)
    ):
        for ref in made:
            scope.values[ref.name] = _view(scope, ref, read[0])
        return
    if domain in COLLECTIVE_DOMAINS and SHARDED not in walk.notes:
        walk.notes.append(SHARDED)
    add_node(scope, node, read, _priced(walk, call, read), call)
    _rebind(scope, node, made)


def _nest(walk: TorchWalk, op: str, node: TorchNode) -> None:
    """Enter or leave a `vmap`."""
    sizes = [a.value for a in node.inputs if isinstance(a.value, int)]
    if "increment" in op:
        walk.lanes.append(max(1, sizes[0]) if sizes else 1)
    elif walk.lanes:
        walk.lanes.pop()


def _converts(scope: ProgramScope, node: TorchNode, made: list[Ref]) -> bool:
    """Whether an operator changes the element type of its operand, which is no weight."""
    if operator_of(node.target) not in CONVERSIONS or not isinstance(node.inputs[0].value, Ref):
        return False
    first = node.inputs[0].value.name
    known = [scope.graph.tensors.get(name) for name in (first, made[0].name)]
    changes = len({kind.element for kind in known if kind}) > 1
    return changes and first in scope.values and not scope.values[first].weights


def _is_alias(call: TorchCall, first: Operand, strides: Strides) -> bool:
    """Whether the results are the first operand: views, and of weights also parts and casts."""
    domain, _, name = call.op.partition(".")
    if call.op.endswith(ALIASES) or is_whole_view(call, first.strides, strides):
        return True
    if not first.weights or domain != "aten":
        return False
    return name in PARTIAL_VIEWS or call.op in WEIGHT_CASTS


def _is_idle_clone(
    scope: ProgramScope, call: TorchCall, read: list[Operand], strides: Strides
) -> bool:
    """Whether a copy is its operand: it lies in memory alike, and the program writes into none."""
    if call.op != CLONE or scope.writes or strides is None:
        return False
    shape = call.result.shape
    given = read[0].strides or row_strides(shape)
    return all(a == b for a, b, size in zip(given, strides, shape, strict=True) if size > 1)


def _view(scope: ProgramScope, ref: Ref, base: Operand) -> Operand:
    """Price a view: the same array by another shape, so that no more of it is sent."""
    tensor = scope.typed(ref)
    sent = tensor.nbytes if base.weights else min(base.num_bytes, tensor.nbytes)
    return replace(base, tensor=tensor, sent_bytes=sent, strides=scope.strides(ref))


def _rebind(scope: ProgramScope, node: TorchNode, made: list[Ref]) -> None:
    """Let later readers of what an in-place operator writes read its result."""
    written = node.inputs[0].value if node.inputs else None
    if is_in_place(node.target) and isinstance(written, Ref) and made:
        scope.values[written.name] = scope.values[made[0].name]


def _priced(walk: TorchWalk, call: TorchCall, read: list[Operand]) -> Price:
    rule = RULES.get(call.op)
    name = call.op.partition(".")[2]
    if rule is None and call.op.startswith("aten.") and name in PARTIAL_VIEWS:
        return OpKind.MOVEMENT, 0.0, 0.0
    if rule is None:
        walk.unknown[call.op] += 1
    price = _price(call, rule or BYTES_ONLY, read)
    is_fed = all(value.producer is None for value in read)
    return (OpKind.CONSTANT, 0.0, 0.0) if name in CONSTANTS and is_fed else price


def _price(call: TorchCall, rule: CostRule, read: list[Operand]) -> Price:
    try:
        moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in call.results)
        num_bytes = moved if rule.num_bytes is None else rule.num_bytes(call)
        return rule.kind, max(0.0, float(rule.flops(call))), float(num_bytes)
    except (ArithmeticError, IndexError, ValueError, TypeError, KeyError) as error:
        raise unfitting(call.where, call.tensors, error) from error


def add_node(
    scope: ProgramScope,
    node: TorchNode,
    read: list[Operand],
    price: Price,
    call: TorchCall | None = None,
) -> int:
    """Add the node of an operator, with edges from what it reads, and name its results; return its
    number."""
    results = call.results if call else scope.result_types(node)
    kind, *work = price
    repeated = prod(scope.walk.lanes)
    made = operator_node(
        unique_name(scope, node),
        operator_of(node.target),
        (kind, work[0] * repeated, work[1] * repeated),
        results,
        weights_of(read),
        output_bytes=float(sum(t.nbytes for t in results)) * repeated,
        source=source_text(node.metadata),
        geometry=torch_geometry(call) if call else None,
        element_type=type_computed_in(kind, [v.tensor for v in read], results),
    )
    number = add_operator(scope.walk.builder, made, read)
    for position, (ref, tensor) in enumerate(zip(refs_in(node.outputs), results, strict=True)):
        strides = scope.strides(ref)
        scope.values[ref.name] = Operand(tensor, number, position, strides=strides)
    return number


def unique_name(scope: ProgramScope, node: TorchNode) -> str:
    """Return a new name for a node: its module's path, then its own."""
    path, ending = without_micro_batch(module_path(node.metadata))
    repeated = f"_{micro_batch_scope(micro_batch_of(ending))}"
    own = scope.prefix + node.name.removesuffix(repeated)
    first = f"{path}/{own}" if path else own
    name, copy = f"{first}{ending}", 1
    while name in scope.walk.builder:
        copy += 1
        name = f"{first}#{copy}{ending}"
    return name
