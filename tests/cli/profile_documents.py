"""Profiled graphs as dnn-partitioning JSON, small enough to solve by hand."""

from typing import Any

Document = dict[str, Any]


def chain_document(length: int = 6, **top: Any) -> Document:
    """A profiled chain, 1 ms an operator, as dnn-partitioning JSON."""
    return {
        "maxSizePerFPGA": 1000.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [node_document(i) for i in range(length)],
        "edges": [{"sourceId": i, "destId": i + 1, "cost": 0.1} for i in range(length - 1)],
        **top,
    }


def node_document(i: int | str, **fields: Any) -> Document:
    return {
        "id": i,
        "supportedOnFpga": 1,
        "cpuLatency": 10.0,
        "fpgaLatency": 1.0,
        "isBackwardNode": 0,
        "size": 10.0,
        **fields,
    }
