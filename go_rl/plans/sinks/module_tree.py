"""`uniform_parts`: the fewest modules and nodes that tell every node's device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from go_rl.graphs.cutting.layer_blocks import Part


def uniform_parts(paths: Mapping[int, Part], device: Sequence[int]) -> dict[int | Part, int]:
    """Return the device of each module all of whose nodes share one, the outermost such modules
    only, and of each node that is in none, in the order of their first nodes.

    Args:
        paths: modules around each node, the outermost first.
        device: of each node.
    """
    found: dict[int, tuple[int | Part, int]] = {}
    open_: list[tuple[int, list[int]]] = [(0, list(paths))]
    while open_:
        depth, nodes = open_.pop()
        groups: dict[Part, list[int]] = {}
        for node in nodes:
            if len(paths[node]) <= depth:
                found[node] = node, int(device[node])
            else:
                groups.setdefault(paths[node][: depth + 1], []).append(node)
        for module, inside in groups.items():
            devices = {int(device[node]) for node in inside}
            if len(devices) == 1:
                found[min(inside)] = module, devices.pop()
            else:
                open_.append((depth + 1, inside))
    return dict(found[first] for first in sorted(found))
