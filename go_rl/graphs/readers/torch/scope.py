"""State of a walk over a program: the graph under construction, and tensors by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.operand import Operand
from go_rl.graphs.readers.torch.program.schema import Ref, SymRef, TorchGraph, TorchNode
from go_rl.graphs.readers.torch.sizes import SizeTable

OPERATORS = "torch.ops."
"""Begins the name of every operator."""


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
    chosen: dict[int, TorchGraph] = field(default_factory=dict)
    """Branch that is taken, by the identity of its node: each branch is priced once."""
    lanes: list[int] = field(default_factory=list)
    """Sizes of the axes over which `vmap` repeats what is walked, and which types there lack."""
    unrolled: int = 0
    """Nodes that recurrent layers were unrolled into."""


@dataclass
class ProgramScope:
    """Tensors of one graph while it is walked."""

    walk: TorchWalk
    graph: TorchGraph
    values: dict[str, Operand]
    prefix: str = ""
    """Before the names of nodes: empty, or the operator that holds the graph."""

    @cached_property
    def read_names(self) -> frozenset[str]:
        """Tensors that some operator reads, or that the graph returns."""
        operands = (a.value for node in self.graph.nodes for a in node.inputs)
        return frozenset(ref.name for ref in refs_in([*operands, *self.graph.outputs]))

    @cached_property
    def writes(self) -> bool:
        """Whether some operator writes into its operand."""
        return any(is_in_place(node.target) for node in self.graph.nodes)

    def place(self, node: TorchNode) -> str:
        """Return file and name of a node, for messages."""
        return f"{self.walk.where}: node {node.name!r}"

    def operand(self, value: Any, node: TorchNode) -> Any:
        """Return an operand with tensors as `Operand`, numbers known, graphs as they are."""
        if isinstance(value, list):
            return [self.operand(each, node) for each in value]
        if isinstance(value, Ref):
            if value.name not in self.values:
                raise ReadError(
                    f"{self.place(node)} reads {value.name!r}, which no node before it makes"
                )
            return self.values[value.name]
        if isinstance(value, SymRef):
            return self.walk.sizes.number(self.graph.numbers.get(value.name))
        return value

    def read(self, node: TorchNode, first: int = 0) -> list[Operand]:
        """Return the tensors among a node's operands from number ``first`` on."""
        return list(values_in([self.operand(a.value, node) for a in node.inputs[first:]]))

    def typed(self, ref: Ref) -> Tensor:
        """Return the type of a tensor of the graph."""
        kind, where = self.graph.tensors.get(ref.name), f"{self.walk.where}: tensor {ref.name!r}"
        if kind is None:
            raise ReadError(f"{where} has no type in tensor_values")
        return self.walk.sizes.tensor(kind, where)

    def result_types(self, node: TorchNode) -> tuple[Tensor, ...]:
        """Return the types of a node's results."""
        return tuple(map(self.typed, refs_in(node.outputs)))

    def strides(self, ref: Ref) -> tuple[int, ...] | None:
        """Return the strides of a tensor; None: they are not known."""
        kind = self.graph.tensors.get(ref.name)
        found = [self.walk.sizes.number(each) for each in kind.strides] if kind else [None]
        if any(each is None for each in found) or (kind and len(found) != len(kind.sizes)):
            return None
        return tuple(each for each in found if each is not None)


def is_in_place(target: str) -> bool:
    """Return whether a target such as ``torch.ops.aten.add_.Tensor`` writes into its operand."""
    packet = target.split(".")[-2:-1]
    return bool(packet) and packet[0].endswith("_") and not packet[0].endswith("__")


@lru_cache(4096)
def operator_of(target: str) -> str:
    """Return the operator of a target such as ``torch.ops.aten.add_.Tensor``: the name of an
    in-place operator is that of the other form."""
    if not target.startswith(OPERATORS):
        return target
    domain, _, rest = target.removeprefix(OPERATORS).partition(".")
    op = rest.partition(".")[0]
    plain = op if op.startswith("__") or not op.endswith("_") else op[:-1]
    return f"{domain}.{plain}"


def values_in(value: Any) -> Iterator[Operand]:
    """Yield the tensors among operands."""
    if isinstance(value, Operand):
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


_FRAME = re.compile(r'File "([^"]*)", line (\d+)')
_SLASH = re.compile(r"[/\\]")
_LIBRARY = re.compile(r"[/\\]torch[/\\](nn|_|export|fx|utils|functional)")
"""Files that are no code of the user's."""


def module_path(metadata: Mapping[str, str]) -> str:
    """Return the dotted name of the innermost module, such as ``encoder.layers.0``; empty at the
    top, or where it is not known."""
    return _innermost(metadata)[0]


def source_text(metadata: Mapping[str, str]) -> str:
    """Return module, class and line, such as ``encoder.layers.0 (Block) model.py:12``."""
    path, kind = _innermost(metadata)
    found = (path, f"({kind})" if kind else "", source_line(metadata.get("stack_trace", "")))
    return " ".join(part for part in found if part)


def source_line(trace: str) -> str:
    """Return ``file:line`` of the innermost frame of the user's code; else of any."""
    frames = [f for f in _FRAME.findall(trace[-20_000:]) if not f[0].startswith("<")]
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    if not (own or frames):
        return ""
    file, line = (own or frames)[-1]
    return f"{_SLASH.split(file)[-1]}:{line}"


def _innermost(metadata: Mapping[str, str]) -> tuple[str, str]:
    """Path and class of the last entry ``key,path,class`` of the module stack."""
    entry = metadata.get("nn_module_stack", "").rpartition(";")[2]
    key, _, rest = entry.partition(",")
    path, _, kind = rest.rpartition(",")
    if not key:
        return "", ""
    return path.partition("@")[0], kind.rpartition(".")[2]
