"""Nodes by what a split calls them: their own name, a pattern of names, or a module around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from math import inf

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph
from go_rl.core.errors import nearest
from go_rl.graphs.cutting.layer_blocks import Part, path_of
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.split import SplitContext

PARAMETERS = ("weight", "bias")
"""Last words of what is no module but its parameter."""
WILD = set("*?[")


class NodeNames:
    """Names, modules and patterns of one graph."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.names = [str(name) for name in graph.names]

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Node by its name."""
        return {name: node for node, name in enumerate(self.names)}

    @cached_property
    def by_module(self) -> dict[Part, list[int]]:
        """Nodes in each module, by its whole name."""
        found = defaultdict[Part, list[int]](list)
        for node, name in enumerate(self.names):
            path = path_of(name)
            for end in range(1, len(path) + 1):
                found[path[:end]].append(node)
        return dict(found)

    @cached_property
    def by_inner_module(self) -> dict[Part, list[int]]:
        """Nodes in each module, by its name without the outermost module."""
        found = defaultdict[Part, list[int]](list)
        for path, nodes in self.by_module.items():
            if len(path) > 1:
                found[path[1:]] += nodes
        return dict(found)

    def of_module(self, module: str) -> list[int]:
        """Return the nodes of a module such as ``model.layers.0``; the outermost module, such as
        ``model``, may be left out. Empty: there is no such module."""
        path = path_of(module)
        if path and path[-1] in PARAMETERS:
            path = path[:-1]
        if not path:
            return list(range(len(self.names)))
        return self.by_module.get(path) or self.by_inner_module.get(path) or []

    def of_pattern(self, key: str) -> list[int]:
        """Return the nodes of a name, a pattern such as ``encoder/*``, or a module."""
        if key in self.by_name:
            return [self.by_name[key]]
        if set(key) & WILD:
            return [node for node, name in enumerate(self.names) if fnmatchcase(name, key)]
        return self.of_module(key) if key else []

    def said_near(self, key: str) -> str:
        """Return the end of a sentence about an unknown name; see `nearest`."""
        modules = [".".join(path) for path in self.by_module]
        known = (self.names, modules) if "/" in key else (modules, self.names)
        ends = [nearest(key, choices) for choices in known]
        return next((end for end in ends if end != "."), ".")


@lru_cache(maxsize=4)
def node_names(graph: OpGraph) -> NodeNames:
    """Return the names of a graph, indexed once."""
    return NodeNames(graph)


def assigned(
    setting: SplitContext, device: Mapping[str, int], nodes: Mapping[str, list[int]]
) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
    """Return [N] devices and [N] number of the entry that gave each, `NOWHERE` of other nodes.

    Of the entries that match a node the longest wins, and the node's own name before all.

    Args:
        setting: what is read.
        device: device of each entry.
        nodes: nodes that each matches.

    Raises:
        SplitError: two entries of equal length put a node on different devices.
    """
    names = setting.graph.names
    known, entry = np.full((2, len(names)), NOWHERE)
    own = node_names(setting.graph).by_name
    keys = list(device)
    size = [inf if key in own else len(key) for key in keys]
    for number in sorted(range(len(keys)), key=size.__getitem__):
        key = keys[number]
        for node in nodes[key]:
            rival = int(entry[node])
            if rival != NOWHERE and size[rival] == size[number] and known[node] != device[key]:
                raise setting.error(
                    f"{keys[rival]!r} puts node {names[node]!r} on device {known[node]}, and "
                    f"{key!r}, which is as long, on {device[key]}"
                )
            known[node], entry[node] = device[key], number
    return known, entry
