"""`supported`: operators that devices can run, by the patterns in their descriptions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool

from go_rl.core.errors import ProblemError
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.hardware.hardware import Device


def supported(graph: OpGraph, kinds: tuple[Device, ...]) -> Bool[np.ndarray, "K N"]:
    """Return [K, N] whether a device of each kind can run each node; inputs and constants run
    nowhere, and lie anywhere.

    Raises:
        ProblemError: no device can run one of the nodes.
    """
    if not any(device.supports or device.cannot for device in kinds):
        return np.ones((len(kinds), graph.num_nodes), np.bool_)
    words = list(zip(graph.op_type, graph.kind.tolist(), strict=True))
    rows = [
        {word: device.runs(word[0], OpKind(word[1])) for word in set(words)} for device in kinds
    ]
    able = np.array([[row[word] for word in words] for row in rows], np.bool_) | graph.is_fed
    nowhere = np.flatnonzero(~able.any(axis=0))
    if nowhere.size:
        node = int(nowhere[0])
        kind = OpKind(int(graph.kind[node])).name.lower()
        more = f", nor {nowhere.size - 1} further operators" if nowhere.size > 1 else ""
        raise ProblemError(
            f"no device can run operator {graph.names[node]!r} of type {graph.op_type[node]!r} and "
            f"kind {kind!r}{more}: {'; '.join(_said(kinds))}. Let supports of a device name its "
            "type or kind, or take it out of cannot"
        )
    return able


def _said(kinds: tuple[Device, ...]) -> Iterator[str]:
    for device in kinds:
        only = [f"supports only {', '.join(device.supports)}"] if device.supports else []
        never = [f"cannot run {', '.join(device.cannot)}"] if device.cannot else []
        yield f"device {device.kind!r} {' and '.join(only + never)}"
