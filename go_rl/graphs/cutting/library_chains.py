"""Convolutions that XLA's CPU compiler gives to its library in one piece, with the sum behind them.

A sum that ends a network of convolutions takes all that leads to it alone, up to some number of
operators, into one call of YNNPACK, and other convolutions go there one by one (optimised HLO of
XLA in jaxlib 0.10.2: fusions of kind ``__ynn_fusion``). In one piece they take longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from go_rl.core import OpGraph, OpKind
from go_rl.graphs.cutting.opcode_names import opcode

TAKEN = (OpKind.CONVOLUTION, OpKind.ELEMENTWISE, OpKind.MOVEMENT)
"""Kinds that a sum takes in."""
SUMS = ("reduce_sum", "reduce_max", "reduce_min")
"""Operators that end a piece; no sum over windows does."""
MOST = 64
"""Operators of one piece."""
FEWEST = 2
"""Convolutions that make a piece of its own."""


@dataclass(frozen=True)
class LibraryChain:
    """Some convolutions, what lies between them, and the sum at their end."""

    nodes: tuple[int, ...]
    """Ascending."""
    convolutions: tuple[int, ...]
    """Convolutions of the nodes, ascending."""


def library_chains(graph: OpGraph, most: int | None = None) -> list[LibraryChain]:
    """Return the chains of a network, by their sums.

    Args:
        graph: in topological order.
        most: convolutions, the last ones, of each chain; None: as many as there are.
    """
    readers: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    producers: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    for sender, receiver in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        readers[sender].append(receiver)
        producers[receiver].append(sender)
    sums = [n for n in range(graph.num_nodes) if opcode(graph.op_type[n]) in SUMS and producers[n]]
    found = [_chain(graph, end, readers, producers, most) for end in sums]
    return [each for each in found if len(each.convolutions) >= FEWEST]


def chain_kernels(chain: LibraryChain, leader: Int[np.ndarray, "N"]) -> tuple[int, ...]:
    """Return the leaders of the kernels that a chain takes the place of, ascending.

    Args:
        chain: of a graph.
        leader: [N] of the graph's nodes.
    """
    return tuple(sorted({int(leader[node]) for node in chain.nodes}))


def _chain(
    graph: OpGraph, end: int, readers: list[list[int]], producers: list[list[int]], most: int | None
) -> LibraryChain:
    taken, convolutions = {end}, []
    for node in range(end - 1, -1, -1):
        if len(taken) == MOST or not _leads_only(graph, node, readers[node], taken):
            continue
        if graph.kind[node] == OpKind.CONVOLUTION:
            if len(convolutions) == most:
                continue
            convolutions.append(node)
        taken.add(node)
    return LibraryChain(tuple(sorted(taken)), tuple(sorted(convolutions)))


def _leads_only(graph: OpGraph, node: int, readers: list[int], taken: set[int]) -> bool:
    """Whether a node may be taken, and all its readers are."""
    able = int(graph.kind[node]) in map(int, TAKEN) and not graph.is_fed[node]
    return able and bool(readers) and not graph.is_output[node] and taken.issuperset(readers)
