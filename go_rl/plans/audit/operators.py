"""`operator_fates`: the kernel of onnxruntime's optimised model in which each operator ended.

onnxruntime does not say what it joined. Its optimised model (``optimized_model_filepath``) keeps
the names of the tensors that are left, so that an operator belongs to the kernel whose results need
it and whose operands do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import onnx

from go_rl.graphs.readers.onnx.order import captured_names

BLOCKED = "_nchwc"
"""Ends the name of a convolution in onnxruntime's blocked layout; before it, the tensor that the
model calls its result."""


@dataclass(frozen=True)
class Fates:
    """Operators of a model, by their numbers, in a session of onnxruntime."""

    kernels: Mapping[int, tuple[int, ...]]
    """Kernels that compute each operator, by their numbers in the optimised model."""
    folded: frozenset[int]
    """Operators of constants alone, which were computed when the model was loaded."""
    removed: frozenset[int]
    """Operators that nothing needs."""

    @cached_property
    def joined(self) -> dict[int, list[int]]:
        """Operators that each kernel computes; kernels that compute none are left out."""
        found: dict[int, list[int]] = defaultdict(list)
        for number, kernels in self.kernels.items():
            for kernel in kernels:
                found[kernel].append(number)
        return dict(found)


def operator_fates(model: onnx.GraphProto, optimised: onnx.GraphProto) -> Fates:
    """Return what became of each operator.

    Args:
        model: as it was loaded.
        optimised: of the same model.
    """
    nodes = model.node
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    reads = [_reads(node) for node in nodes]
    groups = _groups(optimised, maker)
    given = {tensor.name for tensor in optimised.initializer}
    constant = _constant(nodes, reads, model)
    ends = given.union(*(outputs for _, outputs in groups))
    ends |= {name for number in constant for name in nodes[number].output}
    found: dict[int, list[int]] = defaultdict(list)
    for kernels, outputs in groups:
        for number in _behind(outputs, maker, reads, ends):
            found[number].extend(kernels)
    left = [number for number in range(len(nodes)) if number not in found]
    return Fates(
        {number: tuple(kernels) for number, kernels in sorted(found.items())},
        frozenset(number for number in left if number in constant),
        frozenset(number for number in left if number not in constant),
    )


def _reads(node: onnx.NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured_names(node)) if name]


def _groups(
    optimised: onnx.GraphProto, maker: Mapping[str, int]
) -> list[tuple[list[int], list[str]]]:
    """Kernels that share tensors of which the model knows none, and the tensors of the model that
    they make."""
    blocked = {
        node.output[0]: node.name.removesuffix(BLOCKED)
        for node in optimised.node
        if node.name.endswith(BLOCKED) and node.name.removesuffix(BLOCKED) in maker
    }
    producer: dict[str, int] = {}
    own: list[list[str]] = []
    for number, node in enumerate(optimised.node):
        names = [blocked.get(name, name) for name in node.output if name]
        own.append([name for name in names if name in maker and name not in producer])
        for name in names:  # a reordering back makes a tensor again
            producer.setdefault(name, number)
    joined = nx.Graph()
    joined.add_nodes_from(range(len(own)))
    joined.add_edges_from(
        (producer[name], number)
        for number, node in enumerate(optimised.node)
        for name in (blocked.get(name, name) for name in _reads(node))
        if name in producer and name not in maker
    )
    groups = (sorted(group) for group in nx.connected_components(joined))
    return [(group, [name for kernel in group for name in own[kernel]]) for group in groups]


def _behind(
    outputs: Iterable[str], maker: Mapping[str, int], reads: Sequence[Sequence[str]], ends: set[str]
) -> set[int]:
    """Operators that tensors need, back to what other kernels make or what is constant."""
    found: set[int] = set()
    open_ends = [maker[name] for name in outputs]
    while open_ends:
        number = open_ends.pop()
        if number not in found:
            found.add(number)
            open_ends += [maker[n] for n in reads[number] if n in maker and n not in ends]
    return found


def _constant(
    nodes: Sequence[onnx.NodeProto], reads: Sequence[Sequence[str]], model: onnx.GraphProto
) -> set[int]:
    """Operators that need no input of the model; they are in an order in which they can run."""
    known = {tensor.name for tensor in model.initializer}
    known |= {tensor.values.name for tensor in model.sparse_initializer}
    found: set[int] = set()
    for number, node in enumerate(nodes):
        if known.issuperset(reads[number]):
            found.add(number)
            known.update(node.output)
    return found
