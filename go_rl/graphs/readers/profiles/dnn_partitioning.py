"""dnn-partitioning JSON: profiled graphs of Tarnawski et al., NeurIPS 2020 (msr-fiddle).

``nodes[]`` carry measured milliseconds and bytes, ``edges[]`` the milliseconds to move the source's
output between accelerator and host memory. See ``docs`` for the field list.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core import FREE, NodeId, OpGraph, OpKind
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.profiles.json_records import (
    MILLISECOND,
    JsonRecord,
    checked_ids,
    read_record,
)

FORMAT = "dnn-partitioning"
TOP_FIELDS = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges")


def read_dnn_partitioning(path: str | Path) -> OpGraph:
    """Read a dnn-partitioning JSON file.

    Node ids are kept exactly. ``size`` (bytes) becomes `weight_bytes`, since the objective's memory
    limit counts nothing else; `output_bytes` stays 0 because a node's ``size`` already includes its
    results. ``edge_bytes`` is the edges' ``size`` where the file has one. Seconds are profiled for
    the device kinds ``accelerator`` and ``cpu``.

    Raises:
        ReadError: not this format, a missing or wrong field, duplicate ids, dangling edges, cycles,
            or out-edges of one node with different costs.
    """
    path = Path(path)
    top = read_record(path, f"{FORMAT} graph", TOP_FIELDS)
    nodes, edges = top.records("nodes", "node"), top.records("edges", "edge")
    checked_ids(nodes, edges)
    builder = GraphBuilder(path.stem)
    flow = _Flow.of(edges)
    with naming(path):
        for record, colour in zip(nodes, _colours(nodes), strict=True):
            builder.add_node(_node(record, colour, flow))
        for record in edges:
            source = record.name("sourceId")
            ends = builder.number_of(source), builder.number_of(record.name("destId"))
            builder.add_edge(*ends, flow.sent_bytes[source])
        builder.meta = _meta(top, nodes)
        return builder.build()


@dataclass(frozen=True)
class _Flow:
    """Facts about each node that follow from the edges."""

    sent_seconds: Mapping[NodeId, float]
    sent_bytes: Mapping[NodeId, float]
    receivers: frozenset[NodeId]

    @staticmethod
    def of(edges: Iterable[JsonRecord]) -> _Flow:
        seconds: dict[NodeId, float] = {}
        sizes: dict[NodeId, float] = defaultdict(float)
        receivers: set[NodeId] = set()
        for edge in edges:
            source, cost = edge.name("sourceId"), edge.number("cost")
            if seconds.setdefault(source, cost) != cost:
                raise edge.wrong(
                    "cost",
                    cost,
                    f"{seconds[source]!r} as on the other edges that leave node {source!r}",
                )
            # The layer graphs give a few training edges a smaller size; the tensor is one.
            sizes[source] = max(sizes[source], edge.number("size") if "size" in edge.fields else 0)
            receivers.add(edge.name("destId"))
        milliseconds = {k: v * MILLISECOND for k, v in seconds.items()}
        return _Flow(milliseconds, sizes, frozenset(receivers))


def _colours(nodes: list[JsonRecord]) -> list[int]:
    raw = [record.fields.get("colorClass") for record in nodes]
    for record, colour in zip(nodes, raw, strict=True):
        if colour is not None and not isinstance(colour, (int, str)):
            raise record.wrong("colorClass", colour, "an integer")
    counts = Counter(c for c in raw if c is not None)
    shared = {c: i for i, c in enumerate(c for c, count in counts.items() if count > 1)}
    return [FREE if c is None else shared.get(c, FREE) for c in raw]


def _node(record: JsonRecord, colour: int, flow: _Flow) -> Node:
    name, size = record.name("id"), record.number("size")
    accelerator, cpu = record.number("fpgaLatency"), record.number("cpuLatency")
    idle = accelerator == cpu == 0 and name not in flow.receivers
    kind = (OpKind.CONSTANT if size > 0 else OpKind.INPUT) if idle else OpKind.OTHER
    if not record.flag("supportedOnFpga"):
        accelerator = math.inf
    return Node(
        name=name,
        op_type=_op_type(record.fields.get("name"), kind),
        kind=kind,
        weight_bytes=size,
        colocation=colour,
        is_backward=record.flag("isBackwardNode"),
        is_output=name not in flow.sent_seconds,
        source=record.place.split(" ")[0],
        seconds={"accelerator": accelerator * MILLISECOND, "cpu": cpu * MILLISECOND},
        transfer_seconds=flow.sent_seconds.get(name, 0.0),
    )


def _op_type(name: object, kind: OpKind) -> str:
    """The operator inside a name such as ``MatMul97_Grad/Transpose_0``, else a general word."""
    if kind in (OpKind.CONSTANT, OpKind.INPUT):
        return kind.name.lower()
    if not isinstance(name, str):
        return "operator"
    if re.fullmatch(r"node\d+(grad)?", name):
        return "layer"
    parts = re.findall(r"(?:^|/)([A-Z][A-Za-z]+)(?=\d|_|$)", name)
    return parts[-1] if parts else "operator"


def _meta(top: JsonRecord, nodes: list[JsonRecord]) -> dict[str, Any]:
    training = any(record.flag("isBackwardNode") for record in nodes)
    return {
        "format": FORMAT,
        "accelerators": top.count("maxFPGAs"),
        "cpus": top.count("maxCPUs"),
        "memory_bytes": top.number("maxSizePerFPGA"),
        "training": training,
        "notes": [
            "seconds and sizes are a profile of the authors' machine",
            "a node's weight_bytes is the file's size: weights and results together",
        ],
    }
