"""Nodes that XLA computes again on a CPU because another kernel has them as well.

Our kernels compute nothing twice (`go_rl.graphs.cutting.fusion`). XLA's CPU compiler lets a loop
compute its operand again where that operand reads at most one tensor of its size, though a
convolution needs the operand, too, and it is in memory anyway
(`InstructionFusion::ComputeGloballyUnfusible` and `EffectivelyAtMostUnary` of XLA). After ``relu(x
+ f(x))`` it goes on with the sum, and so from block to block: the last of 38 residual blocks reads
what all of them made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int, Int64

from go_rl.core import OpGraph, OpKind
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.graphs.cutting.opcode_names import opcode

LOOPS = (OpKind.ELEMENTWISE, OpKind.MOVEMENT)
"""Kinds that are computed again."""
EXPENSIVE = frozenset({
    "atan2", "cbrt", "cos", "div", "erf", "erf_inv", "erfc", "exp", "expm1", "lgamma", "log",
    "log1p", "logistic", "pow", "rem", "rsqrt", "sin", "sqrt", "tan", "tanh",
})  # fmt: skip
"""Operators that XLA computes once (`InstructionFusion::IsExpensive`), by their names in JAX."""
MOST = 48
"""Nodes of one kernel; longer chains become several, since cost models know no such kernels."""
ALIKE = 0.5
"""Share of a result's bytes from which an operand is a tensor of its size."""


def recomputed_nodes(
    graph: OpGraph, leader: Int[np.ndarray, "N"]
) -> list[tuple[int, tuple[int, ...]]]:
    """Return what the kernels of a fusion compute again, and the leader of each.

    Args:
        graph: of a network.
        leader: [N] nodes with equal numbers share a kernel.

    Returns:
        Leaders, ascending, each with the nodes of other kernels that it computes again, ascending;
        kernels that compute nothing again are left out.
    """
    again = _computed_again(graph)
    producers = _producers(graph, again)
    starts: dict[int, set[int]] = {}
    for sender, receiver in _crossing(graph, leader, again).tolist():
        starts.setdefault(int(leader[receiver]), set()).add(sender)
    found = []
    for kernel, pending in sorted(starts.items()):
        seen = set(pending)
        waiting = list(pending)
        while waiting:
            new = [p for p in producers[waiting.pop()] if p not in seen]
            seen.update(new)
            waiting += new
        nodes = [node for node in seen if leader[node] != kernel]
        found.append((kernel, tuple(sorted(nodes))))
    return found


def recomputed_kernels(
    graph: OpGraph, leader: Int[np.ndarray, "N"]
) -> tuple[KernelSet | None, Int64[np.ndarray, "A"]]:
    """Return `recomputed_nodes` as kernels of their own, of at most `MOST` nodes, and [A] the
    leader of the kernel that computes each; None: there are none."""
    sets, owners = [], []
    for owner, nodes in recomputed_nodes(graph, leader):
        kernels, _ = cut_kernels(*_alone(graph, nodes))
        sets.append(kernels)
        owners += [owner] * kernels.num_kernels
    return (join_kernels(sets) if sets else None), np.array(owners, np.int64)


def _alone(graph: OpGraph, nodes: tuple[int, ...]) -> tuple[OpGraph, Int64[np.ndarray, "N"]]:
    """A graph in which all but these nodes are inputs; and the leader of each of its nodes."""
    inside = np.zeros(graph.num_nodes, np.bool_)
    inside[list(nodes)] = True
    kind = np.where(inside, graph.kind, int(OpKind.INPUT)).astype(graph.kind.dtype)
    kept = inside[graph.receivers]
    part = replace(
        graph,
        kind=kind,
        senders=graph.senders[kept],
        receivers=graph.receivers[kept],
        edge_bytes=graph.edge_bytes[kept],
        edge_output=graph.edge_output[kept],
        is_output=np.zeros(graph.num_nodes, np.bool_),
        transfer_seconds=None,
    )
    leader = np.arange(graph.num_nodes)
    for first in range(0, len(nodes), MOST):
        leader[list(nodes[first : first + MOST])] = nodes[first]
    return part, leader.astype(np.int64)


def _loops(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    return np.isin(graph.kind, [int(kind) for kind in LOOPS]) & ~graph.is_fed


def _computed_again(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """[N] loops that may be computed anew in each of their readers: all of these are loops, or the
    node reads at most one tensor of its size."""
    loop, count = _loops(graph), graph.num_nodes
    large = graph.edge_bytes >= ALIKE * graph.output_bytes[graph.receivers]
    unary = np.bincount(graph.receivers[large], minlength=count) <= 1
    others = np.bincount(graph.senders[~loop[graph.receivers]], minlength=count)
    others += graph.is_output
    cheap = np.array([opcode(name) not in EXPENSIVE for name in graph.op_type], np.bool_)
    return loop & cheap & (unary | (others == 0))


def _producers(graph: OpGraph, again: Bool[np.ndarray, "N"]) -> list[list[int]]:
    """[N] those of the producers of each node that are computed again where it is."""
    found: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    joined = again[graph.senders] & again[graph.receivers]
    for sender, receiver in zip(
        graph.senders[joined].tolist(), graph.receivers[joined].tolist(), strict=True
    ):
        found[receiver].append(sender)
    return found


def _crossing(
    graph: OpGraph, leader: Int[np.ndarray, "N"], again: Bool[np.ndarray, "N"]
) -> Int64[np.ndarray, "X 2"]:
    """[X, 2] senders and receivers of edges between two kernels along which something as large as
    the result is computed again, though it is in memory."""
    loop = _loops(graph)
    kept = np.bincount(graph.senders[~loop[graph.receivers]], minlength=graph.num_nodes) > 0
    large = graph.edge_bytes >= ALIKE * graph.output_bytes[graph.receivers]
    which = (
        again[graph.senders] & kept[graph.senders] & loop[graph.receivers] & large
        & (leader[graph.senders] != leader[graph.receivers])
    )  # fmt: skip
    return np.stack([graph.senders[which], graph.receivers[which]], axis=1).astype(np.int64)
