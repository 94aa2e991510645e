"""Devices, or layers, of nodes that none is known of, from the nodes around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Bool, Int, Int16, Int64

from go_rl.core import OpGraph
from go_rl.objectives.makespan.choices import NOWHERE


def infer_devices(
    graph: OpGraph, fed: Bool[np.ndarray, "N"], device: Int64[np.ndarray, "N"]
) -> Int16[np.ndarray, "N"]:
    """Return [N] devices with every `NOWHERE` filled in; see `filled_in`."""
    return filled_in(graph, fed, device).astype(np.int16)


def filled_in(
    graph: OpGraph, fed: Bool[np.ndarray, "N"], known: Int64[np.ndarray, "N"]
) -> Int64[np.ndarray, "N"]:
    """Return [N] numbers, of devices or layers, with every `NOWHERE` filled in.

    Tied weights, and with them their update, sit together; a forward node then sits with the
    highest of its producers, a backward node with the highest of its consumers, as its mirror image
    in the forward pass does; what is left follows any neighbour, backward nodes the lowest of their
    producers. Inputs and constants sit with their first reader.
    """
    if (known != NOWHERE).all():
        return known
    found = known.copy()
    _tie(graph, found)
    forward, count = ~graph.is_backward & ~fed, graph.num_nodes
    up, down = range(count), range(count - 1, -1, -1)
    before, after = _neighbours(graph, fed, producers=True), _neighbours(graph, fed, False)
    _follow(found, (n for n in up if forward[n]), before, max)
    _follow(found, (n for n in down if graph.is_backward[n]), after, max)
    _follow(found, (n for n in up if graph.is_backward[n]), before, min)
    _follow(found, up, before, max)
    _follow(found, down, after, min)
    return np.maximum(found, 0)


def _tie(graph: OpGraph, found: Int64[np.ndarray, "N"]) -> None:
    """Give nodes without a device that of the first node with the same weights."""
    node, array = graph.tied_node[::-1], graph.tied_array[::-1]
    known = found[node] != NOWHERE
    home = np.full(len(graph.tied_bytes), NOWHERE)
    home[array[known]] = found[node[known]]
    open_ = ~known & (home[array] != NOWHERE)
    found[node[open_]] = home[array[open_]]


def _neighbours(
    graph: OpGraph, fed: Bool[np.ndarray, "N"], producers: bool
) -> Callable[[int], list[int]]:
    offsets, edges = graph.predecessors if producers else graph.successors
    other = (graph.senders if producers else graph.receivers)[edges]

    def of(node: int) -> list[int]:
        near = other[offsets[node] : offsets[node + 1]]
        return near[~fed[near]].tolist()

    return of


def _follow(
    found: Int64[np.ndarray, "N"],
    nodes: Iterable[int],
    neighbours: Callable[[int], list[int]],
    chosen: Callable[[list[int]], int],
) -> None:
    """Put nodes without a device where some of their neighbours are, one after the other."""
    for node in nodes:
        if found[node] == NOWHERE:
            near = [d for d in found[neighbours(node)].tolist() if d != NOWHERE]
            if near:
                found[node] = chosen(near)


def beside_readers(graph: OpGraph, device: Int[np.ndarray, "N"]) -> Int16[np.ndarray, "N"]:
    """Return [N] devices with inputs and constants put where the first of their readers is."""
    placed = device.astype(np.int16)
    offsets, edges = graph.successors
    for node in np.flatnonzero(graph.is_fed & (np.diff(offsets) > 0)):
        readers = graph.receivers[edges[offsets[node] : offsets[node + 1]]]
        placed[node] = placed[readers.min()]
    return placed
