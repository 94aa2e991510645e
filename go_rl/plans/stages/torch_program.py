"""`flat_graph`: a PyTorch program as a graph of operators on tensors, ready to be cut."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
import logging
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from go_rl.core import ReadError
from go_rl.core.printable import last_line

CHECKS = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
          "sym_constrain_range_for_size", "_check_is_size")  # fmt: skip
"""Operators without results, which check what the sizes of the plan settle."""
VIEWS = ("view", "_unsafe_view")
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


@contextmanager
def quietly() -> Iterator[None]:
    """A block in which PyTorch neither warns of its own future nor logs what it raises."""
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def load_program(path: Path) -> ExportedProgram:
    """Read an archive with its weights.

    One that returns a class of transformers can be read only where that package is imported.

    Raises:
        ReadError: PyTorch cannot read it.
    """
    try:
        with quietly():
            if _MODEL_OUTPUTS in _documents(path):
                importlib.import_module(_MODEL_OUTPUTS.decode())
            return torch.export.load(path)
    except ModuleNotFoundError as error:
        raise ReadError(
            f"{path}: returns a class of {error.name}, which is not installed"
        ) from error
    except Exception as error:
        raise ReadError(
            f"{path}: PyTorch cannot load the program ({last_line(error)}); does it return a class "
            "of a package, or hold operators of one? Export it with plain tensors as results"
        ) from error


_MODEL_OUTPUTS = b"transformers.modeling_outputs"


def _documents(path: Path) -> bytes:
    """The programs of an archive, as it has them."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".json")]
        return b"".join(map(archive.read, names))


@dataclass(frozen=True, eq=False)
class FlatGraph:
    """A program's operators; weights are attributes, sizes numbers, nothing is written in place."""

    module: fx.GraphModule
    inputs: tuple[str, ...]
    """Names by which the program takes its inputs."""
    origin: Mapping[str, str]
    """Name in the program of the operator that each node was made of, by the node's name."""


def flat_graph(program: ExportedProgram, dims: Mapping[str, int]) -> FlatGraph:
    """Return a program's operators.

    Args:
        program: not changed.
        dims: sizes of its symbols.

    Raises:
        ReadError: a symbol has no size, or the program changes its state or its inputs.
    """
    origin = {node.name: node.name for node in program.graph.nodes}
    if any(map(_is_written, program.graph.nodes)):
        with quietly():
            program = program.run_decompositions({})  # writes become results
        origin = {node.name: _made_of(node) for node in program.graph.nodes}
    signature = program.graph_signature
    changed = {**signature.buffers_to_mutate, **signature.user_inputs_to_mutate}
    if changed:
        name = next(iter(changed.values()))
        raise ReadError(
            f"the program changes {name!r}: one with a state of its own is not cut into stages"
        )
    module = program.module(check_guards=False)
    for node in list(module.graph.nodes):
        if node.op == "call_module" or _operator(node) in CHECKS:
            module.graph.erase_node(node)
        elif _operator(node) in VIEWS:  # a tensor from another stage lies in memory otherwise
            node.target = torch.ops.aten.reshape.default
    _settle_sizes(module.graph, dims)
    module.graph.eliminate_dead_code()
    module.recompile()
    return FlatGraph(module, tuple(map(str, signature.user_inputs)), origin)


def _made_of(node: fx.Node) -> str:
    """The operator of the program before the last change that became a node."""
    sources = node.meta.get("from_node")
    return sources[-1].name if sources else node.name


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
