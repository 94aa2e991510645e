"""`flat_graph`: a PyTorch program as a graph of operators on tensors, ready to be cut."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from go_rl.core import ReadError

CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
          "sym_constrain_range_for_size", "_check_is_size")  # fmt: skip
"""Operators without results, which check what the sizes of the plan settle."""
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def flat_graph(program: ExportedProgram, dims: Mapping[str, int]) -> fx.GraphModule:
    """Return the program's operators; weights are attributes, sizes numbers, nothing is written in
    place.

    Args:
        program: not changed.
        dims: sizes of its symbols.

    Raises:
        ReadError: a symbol has no size; the program changes its state, or writes into a tensor
            whose parts others read.
    """
    module = program.module(check_guards=False)
    for node in list(module.graph.nodes):
        if node.op == "call_module" or _operator(node) in CHECKS:
            module.graph.erase_node(node)
    _settle_sizes(module.graph, dims)
    for node in list(module.graph.nodes):
        if _is_written(node):
            _write_apart(node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def _operator(node: fx.Node) -> str:
    """Name of an ATen operator; empty for other nodes."""
    packet = getattr(node.target, "overloadpacket", None)
    return "" if packet is None else packet.__name__


def _settle_sizes(graph: fx.Graph, dims: Mapping[str, int]) -> None:
    """Put numbers in place of symbolic sizes, and fixed shapes into what is known of tensors."""
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if isinstance(value, _NUMBERS) and node.op == "call_function":
            number = _number(value, dims, node)
            for user in list(node.users):
                user.args, user.kwargs = fx.map_arg(
                    (user.args, user.kwargs), lambda n, at=node, size=number: size if n is at else n
                )
            graph.erase_node(node)
        elif value is not None:
            node.meta["val"] = torch.utils._pytree.tree_map_only(
                torch.Tensor, lambda t, at=node: _fixed(t, dims, at), value
            )


def _fixed(tensor: Any, dims: Mapping[str, int], node: fx.Node) -> Any:
    """A tensor without data, of the plan's size."""
    shape = [_number(extent, dims, node) for extent in tensor.shape]
    return torch.empty(shape, dtype=tensor.dtype, device="meta")


def _number(value: Any, dims: Mapping[str, int], node: fx.Node) -> Any:
    if not isinstance(value, _NUMBERS):
        return value
    expression = value.node.expr
    sizes = {symbol: dims[str(symbol)] for symbol in expression.free_symbols if str(symbol) in dims}
    settled = expression.subs(sizes)
    if settled.free_symbols:
        symbol = sorted(map(str, settled.free_symbols))[0]
        raise ReadError(
            f"node {node.name!r}: the size {symbol} is open; plan with its size (--dim {symbol}=8)"
        )
    kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(value)]
    return kind(settled)


def _is_written(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.is_mutable


def _write_apart(node: fx.Node) -> None:
    """Make an in-place operator one whose result is what it wrote, for all later readers."""
    operand: Any = node.args[0] if node.args else None
    name = _operator(node)
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    overload = getattr(packet, node.target._overloadname, None)
    if not isinstance(operand, fx.Node) or operand.op != "call_function" or overload is None:
        raise ReadError(
            f"node {node.name!r} ({name}) changes {operand}, which is no result of an operator: "
            "a program with a state of its own is not cut into stages"
        )
    later = set(_after(node))
    if shared := [n for n in _aliases(operand, node) if later & set(n.users)]:
        raise ReadError(
            f"node {node.name!r} ({name}) writes into {operand.name!r}, of which "
            f"{shared[0].name!r} is a view that is read later: such a program is not cut into "
            "stages; export it after run_decompositions()"
        )
    node.target = overload
    operand.replace_all_uses_with(node, delete_user_cb=lambda user: user in later)


def _after(node: fx.Node) -> Iterator[fx.Node]:
    while node.next.op != "root":
        node = node.next
        yield node


def _aliases(operand: fx.Node, writer: fx.Node) -> list[fx.Node]:
    """Nodes that may share memory with an operand: what it is a view of, and its own views."""
    found, open_ends = {operand}, [operand]
    while open_ends:
        node = open_ends.pop()
        near = [user for user in node.users if user is not writer and _is_view(user)]
        if _is_view(node):
            near += [n for n in node.all_input_nodes if n.op == "call_function"]
        open_ends += [n for n in near if n not in found]
        found.update(near)
    return [node for node in found if node is not operand]


def _is_view(node: fx.Node) -> bool:
    """Whether a result may share memory with an operand."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.op == "call_function"  # getitem of several results
    return any(each.alias_info is not None for each in schema.returns) and not schema.is_mutable


def weights_of(stage: fx.GraphModule) -> list[torch.Tensor]:
    """Return the arrays that a graph reads."""
    found = {}
    for node in stage.graph.find_nodes(op="get_attr"):
        value: Any = stage
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            found[node.target] = value
    return list(found.values())


def num_bytes(tensor: torch.Tensor) -> int:
    """Return the size of an array in bytes."""
    return tensor.numel() * tensor.element_size()
