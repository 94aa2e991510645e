"""``session.name_based_layer_assignment`` of onnxruntime: device by parts of node names.

The longest part that is in a name counts, so that a node's whole name always tells its device.
"""

from __future__ import annotations

import numpy as np

from go_rl.plans.sinks.placed import Placed

FORBIDDEN = set(",;()=")
"""Letters that the option cannot hold in a name."""


def render_layer_assignment(plan: Placed) -> str:
    """Return the option's value, such as ``gpu:0(/layers.0/, ...); gpu:1(/layers.1/, ...)``.

    Raises:
        SplitError: a node's name has a letter that the option cannot hold.
    """
    nodes = np.flatnonzero(~plan.graph.is_fed).tolist()
    names = {node: str(plan.graph.names[node]) for node in nodes}
    wrong = next((name for name in names.values() if set(name) & FORBIDDEN), None)
    if wrong is not None:
        raise plan.error(f"cannot say node name {wrong!r}: it has one of {' '.join(FORBIDDEN)}")
    parts = _parts(names, plan)
    words = [_word(plan, device) for device in range(plan.hardware.num_devices)]
    rules = [f"{word}({', '.join(parts[device])})" for device, word in enumerate(words)
             if parts.get(device)]  # fmt: skip
    return "; ".join(rules) + "\n"


def _parts(names: dict[int, str], plan: Placed) -> dict[int, list[str]]:
    """Scopes whose text is in no name of another device, the outermost; else whole names."""
    scopes: dict[str, list[int]] = {}
    for node, name in names.items():
        for end, letter in enumerate(name):
            if letter == "/" and end:
                scopes.setdefault(name[: end + 1], []).append(node)
    found: dict[int, list[str]] = {}
    covered: set[int] = set()
    for scope in sorted(scopes, key=len):
        inside = scopes[scope]
        devices = {int(plan.device[node]) for node in inside}
        if len(devices) > 1 or covered.issuperset(inside):
            continue
        others = (n for n, name in names.items() if scope in name and n not in inside)
        if all(int(plan.device[n]) in devices for n in others):
            found.setdefault(devices.pop(), []).append(scope)
            covered.update(inside)
    for node, name in names.items():
        if node not in covered:
            found.setdefault(int(plan.device[node]), []).append(name)
    return found


def _word(plan: Placed, device: int) -> str:
    first = plan.hardware.num_accelerators
    return f"gpu:{device}" if device < first else "cpu"
