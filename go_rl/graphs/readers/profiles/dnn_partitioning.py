"""dnn-partitioning JSON: profiled graphs of Tarnawski et al., NeurIPS 2020 (msr-fiddle).

``nodes[]`` carry measured milliseconds and bytes, ``edges[]`` the milliseconds to move the source's
output between accelerator and host memory. See ``docs`` for the field list.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core import FREE, NodeId, OpGraph, OpKind, ReadError
from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import parse_json
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

FORMAT = "dnn-partitioning"
MILLISECOND = 1e-3
TOP_FIELDS = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges")


@dataclass(frozen=True)
class _Record:
    """One JSON object of the file, with its place for messages."""

    path: Path
    place: str
    fields: Mapping[str, Any]

    def get(self, field: str) -> Any:
        if field not in self.fields:
            hint = nearest(field, self.fields)
            raise ReadError(f"{self.path}: {self.place} has no field {field!r}{hint}")
        return self.fields[field]

    def number(self, field: str) -> float:
        value = self.get(field)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(field, value, "a number >= 0")
        if not 0 <= value <= sys.float_info.max:
            raise self.wrong(field, value, "a finite number >= 0")
        return float(value)

    def count(self, field: str) -> int:
        value = self.number(field)
        if value != int(value):
            raise self.wrong(field, value, "a whole number >= 0")
        return int(value)

    def flag(self, field: str) -> bool:
        value = self.get(field)
        if value not in (0, 1) or not isinstance(value, (bool, int, float)):
            raise self.wrong(field, value, "true, false, 0 or 1")
        return bool(value)

    def name(self, field: str) -> NodeId:
        value = self.get(field)
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise self.wrong(field, value, "an integer or a string")
        return value

    def wrong(self, field: str, value: object, right: str) -> ReadError:
        return ReadError(f"{self.path}: {self.place}, {field} is {value!r}; it must be {right}")


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
    top = _Record(path, "the file", _parse(path))
    nodes = _records(top, "nodes", "node")
    edges = _records(top, "edges", "edge")
    builder = GraphBuilder(path.stem)
    ids = [record.name("id") for record in nodes]
    known: set[NodeId] = set()
    for record, name in zip(nodes, ids, strict=True):
        if name in known:
            raise ReadError(f"{path}: {record.place}: two nodes have the id {name!r}")
        known.add(name)
    for record in edges:
        for end in ("sourceId", "destId"):
            if record.name(end) not in known:
                raise record.wrong(end, record.get(end), "the id of a node in the file")
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


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_json(path.read_bytes())
    except ValueError as error:
        raise ReadError(f"{path}: not valid JSON ({error})") from error
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror})") from error
    if not isinstance(content, dict) or not {"nodes", "edges"} <= content.keys():
        raise ReadError(
            f"{path}: JSON, but not a dnn-partitioning graph; its fields are "
            f"{', '.join(TOP_FIELDS)}"
        )
    return content


def _records(top: _Record, field: str, what: str) -> list[_Record]:
    items = top.get(field)
    if not isinstance(items, list):
        raise top.wrong(field, type(items).__name__, f"a list of {what}s")
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise ReadError(f"{top.path}: {field}[{i}] is {item!r}; it must be an object")
    return [_Record(top.path, _place(field, i, item), item) for i, item in enumerate(items)]


def _place(field: str, i: int, item: Mapping[str, Any]) -> str:
    return f"{field}[{i}] (id {item['id']!r})" if "id" in item else f"{field}[{i}]"


@dataclass(frozen=True)
class _Flow:
    """Facts about each node that follow from the edges."""

    sent_seconds: Mapping[NodeId, float]
    sent_bytes: Mapping[NodeId, float]
    receivers: frozenset[NodeId]

    @staticmethod
    def of(edges: Iterable[_Record]) -> _Flow:
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


def _colours(nodes: list[_Record]) -> list[int]:
    raw = [record.fields.get("colorClass") for record in nodes]
    for record, colour in zip(nodes, raw, strict=True):
        if colour is not None and not isinstance(colour, (int, str)):
            raise record.wrong("colorClass", colour, "an integer")
    counts = Counter(c for c in raw if c is not None)
    shared = {c: i for i, c in enumerate(c for c, count in counts.items() if count > 1)}
    return [FREE if c is None else shared.get(c, FREE) for c in raw]


def _node(record: _Record, colour: int, flow: _Flow) -> Node:
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


def _meta(top: _Record, nodes: list[_Record]) -> dict[str, Any]:
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
