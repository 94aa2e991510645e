"""PipeDream graph text: profiled training graphs of Narayanan et al., SOSP 2019 (msr-fiddle).

A node is ``nodeN -- Op(...) -- forward_compute_time=, backward_compute_time=, activation_size=,
parameter_size=[, stage_id=]`` (milliseconds, bytes); an edge is a tab and ``nodeA -- nodeB``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from go_rl.core import FREE, OpGraph, OpKind, ReadError
from go_rl.graphs.readers.file_errors import naming, read_text
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

FORMAT = "pipedream"
MILLISECOND = 1e-3
ITEMSIZE = 4.0
"""The authors profiled in float32."""
BACKWARD = "_backward"
FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_SHAPE = (
    "a node is 'nodeN -- Op(...) -- forward_compute_time=, backward_compute_time=, "
    "activation_size=, parameter_size=' and an edge a tab and 'nodeA -- nodeB'"
)
_KINDS = {
    "Input": OpKind.INPUT,
    "Conv2d": OpKind.CONVOLUTION,
    "Linear": OpKind.MATMUL,
    "LSTM": OpKind.MATMUL,
    "EmuBidirLSTM": OpKind.MATMUL,
    "Classifier": OpKind.MATMUL,
    "ReLU": OpKind.ELEMENTWISE,
    "Add": OpKind.ELEMENTWISE,
    "Dropout": OpKind.ELEMENTWISE,
    "BatchNorm2d": OpKind.REDUCTION,
    "AvgPool2d": OpKind.REDUCTION,
    "MaxPool2d": OpKind.REDUCTION,
    "Concat": OpKind.MOVEMENT,
    "View": OpKind.MOVEMENT,
    "Embedding": OpKind.GATHER,
}


@dataclass(frozen=True)
class _Layer:
    """One node line."""

    name: str
    op_type: str
    forward: float
    """Seconds of the forward pass."""
    backward: float
    """Seconds of the backward pass."""
    activation: float
    """Bytes of all results."""
    parameters: float
    """Bytes of the parameters."""
    source: str

    @property
    def kind(self) -> OpKind:
        return _KINDS.get(self.op_type, OpKind.OTHER)


def read_pipedream(path: str | Path, training: bool = False) -> OpGraph:
    """Read a PipeDream ``graph.txt``.

    By default the forward graph. With ``training`` each node but the inputs gets a backward twin
    ``nodeN_backward`` in the same colocation class: gradients run along the reversed edges (each
    as large as the activation it belongs to) and each node's result is kept for its twin. The
    parameters are counted once, with the forward node.

    Raises:
        ReadError: a line of another form, a bad number, repeated or absent nodes, or a cycle.
    """
    path = Path(path)
    layers, edges = _parse(path)
    builder = GraphBuilder(path.stem, {"format": FORMAT, "training": training, "notes": []})
    senders = {sender for sender, _ in edges}
    if any(layer.forward == 0 for layer in layers.values()):
        builder.meta["notes"].append("some nodes have a measured time of zero")
    with naming(path):
        for i, layer in enumerate(layers.values()):
            builder.add_node(_forward(layer, i if training else FREE, layer.name in senders))
        for u, v in edges:
            ends = builder.number_of(u), builder.number_of(v)
            builder.add_edge(*ends, layers[u].activation)
        if training:
            _add_backward(builder, layers, edges)
        return builder.build()


def _parse(path: Path) -> tuple[dict[str, _Layer], list[tuple[str, str]]]:
    layers: dict[str, _Layer] = {}
    edges: list[tuple[str, str, int]] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(" -- ")]
        if line[0].isspace() and len(parts) == 2:
            edges.append((parts[0], parts[1], number))
        elif len(parts) >= 3 and not line[0].isspace():
            layer = _layer(parts, f"{path}:{number}", number)
            if layer.name in layers:
                raise ReadError(f"{path}:{number}: node {layer.name!r} is defined twice")
            layers[layer.name] = layer
        else:
            raise ReadError(f"{path}:{number}: {line.strip()[:60]!r} is no node or edge; {_SHAPE}")
    for u, v, number in edges:
        for end in (u, v):
            if end not in layers:
                raise ReadError(f"{path}:{number}: the edge names node {end!r}, which is absent")
    return layers, [(u, v) for u, v, _ in edges]


def _layer(parts: list[str], place: str, line: int) -> _Layer:
    name, op, profile = parts[0], " -- ".join(parts[1:-1]), parts[-1]
    fields = dict(re.findall(r"\b(\w+)=(\[[^\]]*\]|[^,\s]*)", profile))
    for field in FIELDS:
        if field not in fields:
            raise ReadError(f"{place}: node {name!r} has no {field}; {_SHAPE}")
    forward, backward, activation, parameters = (
        _total(fields[field], f"{place}: node {name!r}, {field}") for field in FIELDS
    )
    op_type = op.split("(")[0].strip()
    return _Layer(
        name=name,
        op_type=re.sub(r"^(Input)\d+$", r"\1", op_type) or "operator",
        forward=forward * MILLISECOND,
        backward=backward * MILLISECOND,
        activation=activation,
        parameters=parameters,
        source=f"line {line}",
    )


def _total(text: str, place: str) -> float:
    """Sum of a number or of a list such as ``[1.0; 2.0]``."""
    try:
        numbers = [float(item) for item in re.split("[;,]", text.strip("[]")) if item.strip()]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(n) and n >= 0 for n in numbers):
        raise ReadError(f"{place} is {text!r}; it must be a finite number >= 0 or a list of them")
    return sum(numbers)


def _forward(layer: _Layer, colour: int, has_consumer: bool) -> Node:
    return Node(
        name=layer.name,
        op_type=layer.op_type,
        kind=layer.kind,
        output_bytes=layer.activation,
        weight_bytes=layer.parameters,
        output_itemsize=ITEMSIZE,
        weight_itemsize=ITEMSIZE if layer.parameters else 0.0,
        colocation=FREE if layer.kind is OpKind.INPUT else colour,
        is_output=not has_consumer,
        source=layer.source,
        seconds={"accelerator": layer.forward},
    )


def _add_backward(
    builder: GraphBuilder, layers: dict[str, _Layer], edges: list[tuple[str, str]]
) -> None:
    twins = {n: layer for n, layer in layers.items() if layer.kind is not OpKind.INPUT}
    gradients = dict.fromkeys(twins, 0.0)
    kept = [(u, v) for u, v in edges if u in twins and v in twins]
    for u, v in kept:
        gradients[v] += layers[u].activation
    for name, layer in twins.items():
        forward = builder.number_of(name)
        node = Node(
            name=name + BACKWARD,
            op_type=layer.op_type + "Grad",
            kind=layer.kind,
            output_bytes=gradients[name],
            output_itemsize=ITEMSIZE,
            colocation=builder.node(forward).colocation,
            is_backward=True,
            source=layer.source,
            seconds={"accelerator": layer.backward},
        )
        twin = builder.add_node(node)
        builder.add_edge(forward, twin, layer.activation)
    result = dict.fromkeys(twins, 0)
    for u, v in kept:
        ends = builder.number_of(v + BACKWARD), builder.number_of(u + BACKWARD)
        builder.add_edge(*ends, layers[u].activation, output=result[v])
        result[v] += 1
