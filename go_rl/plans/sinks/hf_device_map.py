"""``device_map`` of Hugging Face: device by module."""

from __future__ import annotations

import json

import numpy as np

from go_rl.plans.sinks.module_tree import uniform_parts
from go_rl.plans.sinks.placed import Placed


def render_device_map(plan: Placed) -> str:
    """Return the JSON object; a host processor is ``"cpu"``, other devices are numbers.

    Raises:
        SplitError: a module with weights is on several devices.
    """
    words = {name: _word(plan, device) for name, device in module_devices(plan).items()}
    return json.dumps(words, indent=1) + "\n"


def module_devices(plan: Placed) -> dict[str, int]:
    """Return the device of each outermost module all of whose weights share one.

    Raises:
        SplitError: a module with weights is on several devices, or none has weights.
    """
    weighty = np.flatnonzero((plan.graph.weight_bytes > 0) & plan.fixed).tolist()
    paths = {node: plan.module(node) for node in weighty}
    found: dict[str, int] = {}
    for part, device in uniform_parts(paths, plan.device.tolist()).items():
        if isinstance(part, int):
            raise plan.error(
                f"places whole modules, and module {'.'.join(paths[part])!r} is on several devices"
            )
        found[".".join(part)] = device
    if not found:
        raise plan.error(f"places modules with weights, and {plan.graph.name!r} has none")
    return found


def _word(plan: Placed, device: int) -> int | str:
    first = plan.hardware.num_accelerators
    if device < first:
        return device
    return "cpu" if plan.hardware.num_devices == first + 1 else f"cpu:{device - first}"
