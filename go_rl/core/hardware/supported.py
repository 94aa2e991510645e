"""`supported`: operators that devices can run, by the patterns in their descriptions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int8

from go_rl.core.errors import ProblemError
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.hardware.hardware import Device


def supported(
    graph: OpGraph, product_type: Int8[np.ndarray, "N"] | None, kinds: tuple[Device, ...]
) -> Bool[np.ndarray, "K N"]:
    """Return [K, N] whether a device of each kind can run each node: its type and kind, and of a
    product the element type; inputs and constants run nowhere, and lie anywhere.

    Args:
        graph: whose nodes shall run.
        product_type: see `OpGraph.product_type`; None: devices compute in a format of their own.
        kinds: devices, one of each kind.

    Raises:
        ProblemError: no device can run one of the nodes.
    """
    if not any(device.is_limited for device in kinds):
        return np.ones((len(kinds), graph.num_nodes), np.bool_)
    types = np.zeros(graph.num_nodes, np.int8) if product_type is None else product_type
    words = list(zip(graph.op_type, graph.kind.tolist(), types.tolist(), strict=True))
    rows = [
        {(op, kind, element): device.runs(op, OpKind(kind), ElementType(element))
         for op, kind, element in set(words)}
        for device in kinds
    ]  # fmt: skip
    able = np.array([[row[word] for word in words] for row in rows], np.bool_) | graph.is_fed
    nowhere = np.flatnonzero(~able.any(axis=0))
    if nowhere.size:
        _refuse(graph, nowhere, ElementType(int(types[nowhere[0]])), kinds)
    return able


def _refuse(
    graph: OpGraph, nowhere: np.ndarray, element: ElementType, kinds: tuple[Device, ...]
) -> None:
    node = int(nowhere[0])
    kind = OpKind(int(graph.kind[node])).name.lower()
    inside = f" in {element.label}" if element else ""
    more = f", nor {nowhere.size - 1} further operators" if nowhere.size > 1 else ""
    raise ProblemError(
        f"no device can run operator {graph.names[node]!r} of type {graph.op_type[node]!r} and "
        f"kind {kind!r}{inside}{more}: {'; '.join(_said(kinds))}. Let supports of a device name "
        "its type or kind, take it out of cannot, or state a rate > 0 of its element type"
    )


def _said(kinds: tuple[Device, ...]) -> Iterator[str]:
    for device in kinds:
        without = [name for name, rate in device.rates if not rate]
        parts = {
            "supports only": device.supports, "cannot run": device.cannot,
            "cannot compute in": without,
        }  # fmt: skip
        said = [f"{verb} {', '.join(which)}" for verb, which in parts.items() if which]
        yield f"device {device.kind!r} {' and '.join(said)}"
