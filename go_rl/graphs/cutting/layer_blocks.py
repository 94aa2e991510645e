"""Layer blocks of a network: the parts that launchers of pipelines count, as ``model.layers.0``.

They are read from the scopes in node names: parts with one name and a number, such as ``layers.3``,
``layer_3`` and ``Block_3``, on the shallowest level on which such parts hold most of the work.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core import OpGraph

BEFORE = 0
"""Position of what comes before the first layer; layer ``i`` of ``L`` is at ``i + 1``."""
ELSEWHERE = -1
"""Position of a node outside all layers that is neither before nor behind them: an input, a
constant, or a backward node without a layer."""
MOST_OF_THE_WORK = 0.5
"""Share of the work that layers on one level must hold."""
LEAST_SHARE = 0.05
"""Share of the work below which numbered parts of one name are no layers."""
_NUMBERED = re.compile(r"(.*\D)(\d+)")
Part = tuple[str, ...]
"""Module as its names from the outermost to its own."""


@dataclass(frozen=True, eq=False)
class LayerBlocks:
    """``L`` layers of a graph of ``N`` nodes, in topological order."""

    paths: tuple[str, ...]
    """[L] module of each layer, such as ``model.layers.0``."""
    position: Int64[np.ndarray, "N"]
    """[N] `BEFORE`, ``i + 1`` in layer ``i``, ``L + 1`` behind the last, or `ELSEWHERE`."""

    @property
    def count(self) -> int:
        """Number of layers L."""
        return len(self.paths)

    @property
    def behind(self) -> int:
        """Position behind the last layer."""
        return self.count + 1


def path_of(name: object) -> Part:
    """Return the modules in a node's name, its own last: ``('model', 'layers', '0', 'add')``."""
    return tuple(part for part in re.split(r"[/.]", str(name)) if part)


@lru_cache(maxsize=8)
def layer_blocks(graph: OpGraph) -> LayerBlocks:
    """Return the layers of a graph, none where its names state none.

    A node outside all layers is before them unless it needs one, and behind them if no layer needs
    it; between two layers it belongs to the last that it needs.
    """
    parts = [_numbered(scope_path(name)) for name in graph.names]
    chosen = _families(graph, parts)
    layer: dict[Part, int] = {}
    position = np.full(graph.num_nodes, ELSEWHERE)
    for node, inside in enumerate(parts):
        own = next((module for family, module in inside if family in chosen), None)
        if own is not None:
            position[node] = layer.setdefault(own, len(layer)) + 1
    if layer:
        _fill_in(graph, position, len(layer))
    return LayerBlocks(tuple(".".join(module) for module in layer), position)


def scope_path(name: object) -> Part:
    """Return the modules around a node: its name without the operator's own, which is what follows
    the last slash, or in a name without slashes the last word and its number."""
    whole = str(name)
    if "/" in whole:
        return path_of(whole.rpartition("/")[0])
    path = path_of(whole)
    return path[:-2] if path and path[-1].isdecimal() else path[:-1]


def _numbered(path: Part) -> list[tuple[Part, Part]]:
    """Families of numbered modules around a node, the outermost first, with its module of each."""
    found = []
    for depth, word in enumerate(path):
        if word.isdecimal() and depth:
            found.append((path[:depth], path[: depth + 1]))
        elif match := _NUMBERED.fullmatch(word):
            found.append(((*path[:depth], match[1]), path[: depth + 1]))
    return found


def _families(graph: OpGraph, parts: list[list[tuple[Part, Part]]]) -> set[Part]:
    """Families that hold most of the work together, of the shallowest level where some do."""
    work, modules = _work(graph), defaultdict[Part, set[Part]](set)
    held, level = defaultdict[Part, float](float), {}
    for node, inside in enumerate(parts):
        for family, module in inside:
            modules[family].add(module)
            held[family] += float(work[node])
            level[family] = len(module) - (module[-1].isdecimal())
    several = {family for family in modules if len(modules[family]) > 1}
    for depth in sorted({level[family] for family in several}):
        here = {f for f in several if level[f] == depth and held[f] >= LEAST_SHARE}
        if sum(held[family] for family in here) >= MOST_OF_THE_WORK:
            return here
    return set()


def _work(graph: OpGraph) -> Float64[np.ndarray, "N"]:
    """[N] share of each node in the FLOP, or in the number of nodes where no FLOP are known."""
    amount = graph.flops if graph.has_flops else np.ones(graph.num_nodes)
    return amount / amount.sum()


def _fill_in(graph: OpGraph, position: Int64[np.ndarray, "N"], count: int) -> None:
    """Place forward operators that are outside all layers; what needs a gradient is none."""
    reached, late = position.copy(), graph.is_backward.copy()
    needed = position != ELSEWHERE
    outside = ~needed & ~graph.is_fed
    order = np.argsort(graph.receivers, kind="stable")
    for u, v in zip(graph.senders[order].tolist(), graph.receivers[order].tolist(), strict=True):
        late[v] |= late[u]
        if outside[v]:
            reached[v] = max(reached[v], reached[u])
    for edge in np.argsort(-graph.senders, kind="stable").tolist():
        u, v = graph.senders[edge], graph.receivers[edge]
        needed[u] |= needed[v] and not late[v]
    outside &= ~late
    behind = outside & (reached > BEFORE) & ~needed
    position[outside] = np.maximum(reached[outside], BEFORE)
    position[behind] = count + 1
