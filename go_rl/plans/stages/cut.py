"""`cut_model`: operators of an ONNX model by stages, from the devices of a plan's nodes.

What a plan does not know - constants, changes of layout that are folded into their readers - goes
where it is read: constants into each stage, views with what they show. Between devices goes the
quantised tensor, so that a runtime joins the same operators as in the whole model: a
``QuantizeLinear`` stays with what it quantises, a ``DequantizeLinear`` is in each stage that reads
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from go_rl.core import OpGraph, PlanError
from go_rl.graphs.readers.onnx.order import captured_names, live_nodes, topological_nodes
from go_rl.plans.stages.assignment import HasDevices, ProgramOperators, assign_stages
from go_rl.plans.stages.manifest import owner_of


@dataclass(frozen=True)
class CutModel:
    """Operators of a model in stages."""

    nodes: tuple[onnx.NodeProto, ...]
    """Operators that outputs of the model need, in an order in which they can run."""
    reads: tuple[frozenset[str], ...]
    """Names that each operator reads, those that its subgraphs capture included."""
    names: tuple[str, ...]
    """Unique name of each operator."""
    stages: tuple[tuple[int, ...], ...]
    """Operators of each stage, copies and constants included."""
    device: tuple[int, ...]
    """Device of each stage."""
    sender: Mapping[str, int]
    """Stage that sends each tensor to the others; `NOWHERE`: every stage makes it by itself."""


def cut_model(model: onnx.ModelProto, graph: OpGraph, plan: HasDevices, where: str) -> CutModel:
    """Return the stages of a model without local functions.

    A device has one stage where the devices can take turns, else several: see
    `go_rl.plans.run.segments`.

    Raises:
        PlanError: the plan spreads over devices what is one operator of the file, or has an
            operator that the file does not have.
        ReadError: the model's operators have no order.
    """
    stored = {t.name for t in model.graph.initializer}
    stored |= {s.values.name for s in model.graph.sparse_initializer}
    given = {v.name for v in model.graph.input} - stored
    ordered = list(topological_nodes(model.graph, stored | given, where))
    nodes = tuple(live_nodes(model.graph, ordered))
    reads = tuple(frozenset({i for i in n.input if i} | captured_names(n)) for n in nodes)
    maker = {o: i for i, node in enumerate(nodes) for o in node.output if o}
    above = [[maker[name] for name in names if name in maker] for names in reads]
    names = _names(nodes)
    number = {name: i for i, name in enumerate(names)}
    quantisers = {i for i, node in enumerate(nodes) if node.op_type == "QuantizeLinear"}
    operands = (n.input[:1] if i in quantisers else n.input for i, n in enumerate(nodes))
    operators = ProgramOperators(
        names, above, [[maker[each] for each in n if each in maker] for n in operands],
        [not given.isdisjoint(each) for each in reads], quantisers,
        {i for i, node in enumerate(nodes) if node.op_type == "DequantizeLinear"},
    )  # fmt: skip
    _check_known(graph, number)
    found = assign_stages(operators, graph, plan, lambda name: _owners(name, number))
    sender = {name: found.stage[number] for name, number in maker.items()}
    return CutModel(nodes, reads, names, found.members, found.device, sender)


def _names(nodes: Sequence[onnx.NodeProto]) -> tuple[str, ...]:
    """The name that the reader gives each operator, made unique."""
    counts, taken = Counter(n.name for n in nodes if n.name), Counter[str]()
    found = []
    for node in nodes:
        first = node.name if counts[node.name] == 1 else next(o for o in node.output if o)
        taken[first] += 1
        found.append(first if taken[first] == 1 else f"{first}#{taken[first]}")
    return tuple(found)


def _check_known(graph: OpGraph, number: Mapping[str, int]) -> None:
    """Raise a `PlanError` where the graph computes what no operator of the file does."""
    for name, fed in zip(map(str, graph.names), graph.is_fed.tolist(), strict=True):
        if not fed and not _owners(name, number):
            raise PlanError(
                f"node {name!r} of the plan is no operator of the file, nor part of one"
            )


def _owners(name: str, number: Mapping[str, int]) -> tuple[int, ...]:
    """The operator that a node is, or is a part of."""
    owner = owner_of(name, number)
    return () if owner is None else (number[owner],)
