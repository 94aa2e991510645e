"""``session.name_based_layer_assignment`` of onnxruntime: device by parts of node names.

The longest part that is in a name counts, so that a node's whole name always tells its device.
"""

from __future__ import annotations

from collections.abc import Mapping

from go_rl.plans.sinks.onnx_operators import devices_by_name
from go_rl.plans.sinks.placed import Placed

FORBIDDEN = set(",;()=")
"""Letters that the option cannot hold in a name."""


def render_layer_assignment(plan: Placed) -> str:
    """Return the option's value, such as ``gpu:0(/layers.0/, ...); gpu:1(/layers.1/, ...)``.

    Raises:
        ReadError, SplitError: see `devices_by_name`; also a name with a letter that the option
            cannot hold.
    """
    device = devices_by_name(plan, plan.model, needs_names=True)
    wrong = next((name for name in device if set(name) & FORBIDDEN), None)
    if wrong is not None:
        raise plan.error(f"cannot say node name {wrong!r}: it has one of {' '.join(FORBIDDEN)}")
    parts = _parts(device)
    words = [_word(plan, device) for device in range(plan.hardware.num_devices)]
    rules = [f"{word}({', '.join(parts[device])})" for device, word in enumerate(words)
             if parts.get(device)]  # fmt: skip
    return "; ".join(rules) + "\n"


def _parts(device: Mapping[str, int]) -> dict[int, list[str]]:
    """Scopes whose text is in no name of another device, the outermost; else whole names."""
    scopes: dict[str, list[str]] = {}
    for name in device:
        for end, letter in enumerate(name):
            if letter == "/" and end:
                scopes.setdefault(name[: end + 1], []).append(name)
    found: dict[int, list[str]] = {}
    covered: set[str] = set()
    for scope in sorted(scopes, key=len):
        inside = scopes[scope]
        devices = {device[name] for name in inside}
        if len(devices) > 1 or covered.issuperset(inside):
            continue
        others = (n for n in device if scope in n and not n.startswith(scope))
        if all(device[n] in devices for n in others):
            found.setdefault(devices.pop(), []).append(scope)
            covered.update(inside)
    for name, own in device.items():
        if name not in covered:
            found.setdefault(own, []).append(name)
    return found


def _word(plan: Placed, device: int) -> str:
    first = plan.hardware.num_accelerators
    return f"gpu:{device}" if device < first else "cpu"
