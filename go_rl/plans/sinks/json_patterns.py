"""JSON of go_rl's own: device by module, and by node where a module is on several."""

from __future__ import annotations

import json

import numpy as np

from go_rl.graphs.cutting.layer_blocks import Part, scope_path
from go_rl.plans.sinks.module_tree import uniform_parts
from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.named_nodes import node_names


def render_json(plan: Placed) -> str:
    """Return the JSON object; every node is covered."""
    names = node_names(plan.graph)
    paths = {node: scope_path(name) for node, name in enumerate(plan.graph.names)}
    found: dict[str, int] = {}
    for part, device in uniform_parts(paths, plan.device.tolist()).items():
        for key in _keys(plan, part):
            found[key] = device
    assert all(names.of_pattern(key) for key in found)
    return json.dumps(found, indent=1) + "\n"


def _keys(plan: Placed, part: int | Part) -> list[str]:
    """A module by its dotted name, unless that is a node's, or has nodes that are in no scope."""
    names = node_names(plan.graph)
    if isinstance(part, int):
        return [names.names[part]]
    key = ".".join(part)
    inside = [n for n in names.by_module[part] if scope_path(names.names[n])[: len(part)] == part]
    alike = len(np.unique(plan.device[names.by_module[part]])) == 1
    if key in names.by_name or not alike:
        return [names.names[node] for node in inside]
    return [key]
