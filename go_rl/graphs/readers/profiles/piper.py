"""Piper's JSON: profiled training graphs with choices for each layer (msr-fiddle).

A layer has, for each degree of tensor parallelism, one or several ways to run: ``vanilla``, or with
its activations computed anew in the backward pass. ``timePerSample`` is milliseconds of both
passes, ``communicationCost`` bytes of an edge, ``bandwidth`` bytes a second from a device to the
others; a way takes ``memoryUsageA`` bytes for each micro-batch in flight, and ``memoryUsageB``.
Source: Tarnawski et al., "Piper: Multidimensional Planner for DNN Parallelization", NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core import NodeId, OpGraph, OpKind, ReadError
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.profiles.json_records import (
    MILLISECOND,
    JsonRecord,
    checked_ids,
    read_record,
)

FORMAT = "piper"
TOP_FIELDS = ("maxMemoryPerDevice", "maxDevices", "bandwidth", "mbsInBatch", "nodes", "edges")
VANILLA = "vanilla"
"""The way that is priced, at degree 1."""
_FIGURES = ("timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB")


@dataclass(frozen=True)
class LayerWay:
    """One way to run a layer."""

    degree: int
    """Devices that share the layer."""
    name: str
    seconds: float
    """Both passes of one sample."""
    parameter_bytes: float
    bytes_in_flight: float
    """Bytes for each micro-batch between its passes."""
    bytes_beside: float
    """Bytes however many are in flight: parameters, gradients, state of the optimiser."""


def read_piper(path: str | Path) -> OpGraph:
    """Read a JSON file of Piper: each layer as it runs on one device, ``vanilla``.

    A layer's `weight_bytes` are its memory with one micro-batch in flight. The other ways are in
    ``meta["choices"]``: seconds and bytes of the whole network, by degree and name.

    Raises:
        ReadError: not this format, a missing or wrong field, duplicate ids, dangling edges, cycles,
            or a layer that cannot run alone.
    """
    path = Path(path)
    top = read_record(path, "graph of Piper", TOP_FIELDS)
    nodes, edges = top.records("nodes", "node"), top.records("edges", "edge")
    ids = checked_ids(nodes, edges)
    ways = [_choices(record) for record in nodes]
    bandwidth = top.number("bandwidth")
    if not bandwidth:
        raise top.wrong("bandwidth", bandwidth, "more than 0")
    largest = _largest(edges)
    builder = GraphBuilder(path.stem, _meta(top, ways))
    with naming(path):
        for record, name, choices in zip(nodes, ids, ways, strict=True):
            sent = largest.get(name)
            seconds = 0.0 if sent is None else sent / bandwidth
            builder.add_node(_node(record, _priced(record, choices), sent, seconds))
        for record in edges:
            sender, receiver = (builder.number_of(record.name(e)) for e in ("sourceId", "destId"))
            builder.add_edge(sender, receiver, record.number("communicationCost"))
        return builder.build()


def _choices(record: JsonRecord) -> list[LayerWay]:
    """All ways to run a layer."""
    table = record.get("TMPCs")
    if not isinstance(table, Mapping):
        raise record.wrong("TMPCs", table, "lists of ways to run by degree of tensor parallelism")
    found: list[LayerWay] = []
    for degree in table:
        if not degree.isascii() or not degree.isdecimal() or not int(degree[:9]):
            raise record.wrong("TMPCs", degree, "keyed by whole numbers >= 1")
        inner = JsonRecord(record.path, f"{record.place}, TMPCs", table)
        for way in inner.records(degree, "way"):
            figures = [way.number(field) for field in _FIGURES]
            found.append(
                LayerWay(int(degree), str(way.get("id")), figures[0] * MILLISECOND, *figures[1:])
            )
    return found


def _priced(record: JsonRecord, choices: list[LayerWay]) -> LayerWay:
    alone = [choice for choice in choices if choice.degree == 1]
    found = next((choice for choice in alone if choice.name == VANILLA), None)
    if found is None:
        named = ", ".join(repr(choice.name) for choice in alone) or "none"
        raise ReadError(
            f"{record.path}: {record.place} has no way {VANILLA!r} to run on one device (degree 1 "
            f"has: {named})"
        )
    return found


def _largest(edges: list[JsonRecord]) -> dict[NodeId, float]:
    """Bytes of the largest edge that leaves each node."""
    largest: dict[NodeId, float] = {}
    for record in edges:
        source = record.name("sourceId")
        largest[source] = max(largest.get(source, 0.0), record.number("communicationCost"))
    return largest


def _node(record: JsonRecord, way: LayerWay, sent: float | None, seconds: float) -> Node:
    title = record.fields.get("name")
    return Node(
        name=record.name("id"),
        op_type=title if isinstance(title, str) and title else "layer",
        kind=OpKind.OTHER,
        weight_bytes=way.bytes_in_flight + way.bytes_beside,
        is_output=sent is None,
        source=record.place.split(" ")[0],
        seconds={"accelerator": way.seconds},
        transfer_seconds=seconds,
    )


def _meta(top: JsonRecord, ways: list[list[LayerWay]]) -> dict[str, Any]:
    totals: dict[tuple[int, str], dict[str, Any]] = {}
    for choice in (each for choices in ways for each in choices):
        key = choice.degree, choice.name
        sums = totals.setdefault(
            key, {"degree": key[0], "way": key[1], "layers": 0, "seconds": 0.0, "bytes": 0.0}
        )
        sums["layers"] += 1
        sums["seconds"] += choice.seconds
        sums["bytes"] += choice.bytes_in_flight + choice.bytes_beside
    choices = [totals[key] for key in sorted(totals)]
    others = [c for c in choices if (c["degree"], c["way"]) != (1, VANILLA)]
    notes = [
        "seconds are of both passes of one sample, as the authors measured them",
        "a node's weight_bytes are its memory with one micro-batch in flight",
    ]
    notes += [
        f"not priced: {c['layers']} layers run as {c['way']!r} at degree {c['degree']}, "
        f"{c['seconds']:.4g} s and {c['bytes'] / 1e9:.4g} GB in all"
        for c in others
    ]
    return {
        "format": FORMAT,
        "accelerators": top.count("maxDevices"),
        "memory_bytes": top.number("maxMemoryPerDevice"),
        "micro_batches": top.count("mbsInBatch"),
        "choices": choices,
        "notes": notes,
    }
