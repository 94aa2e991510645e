"""Weights of a set of nodes, array by array: the obvious twin of `HeldWeights`."""

from collections.abc import Iterable

from go_rl.core import Problem


def weights_held(problem: Problem, nodes: Iterable[int]) -> float:
    """Bytes that a device keeps which runs the nodes: what each reads alone, and each array that
    several nodes of the graph read once. A node of no bytes holds nothing."""
    graph = problem.graph
    pairs = list(zip(graph.tied_node.tolist(), graph.tied_array.tolist(), strict=True))
    own, arrays = 0.0, set()
    for node in nodes:
        size = float(problem.weight_bytes[node])
        if size > 0:
            tied = {array for reader, array in pairs if reader == node}
            own += max(size - sum(float(problem.tied_bytes[a]) for a in tied), 0.0)
            arrays |= tied
    return own + sum(float(problem.tied_bytes[a]) for a in arrays)
