"""The rules of schedules and fused kernels, one rule a line, and `legal_kernels`, the loop.

Shares no code with `go_rl.graphs.cutting`, which makes kernels. What may be fused follows
XLA: elementwise and layout operators join either side, a matrix product or convolution takes
them at its end, nothing is fused behind a reduction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core.errors import PlanError
from go_rl.core.graph.fusion import FUSIBLE, MAX_BOUNDARY, MAX_FUSED
from go_rl.core.graph.op_kind import PRODUCT_KINDS, OpKind
from go_rl.core.problem import Problem
from go_rl.verify.rules import MAX_MESSAGES, Violation


@dataclass(frozen=True, eq=False)
class PlanKernels:
    """A plan's kernels as the rules read them."""

    problem: Problem
    device: Int64[np.ndarray, "N"]
    group: Int64[np.ndarray, "N"]

    @property
    def members(self) -> dict[int, list[int]]:
        """Nodes of each kernel of more than one."""
        found: dict[int, list[int]] = defaultdict(list)
        for node, leader in enumerate(self.group.tolist()):
            found[leader].append(node)
        return {leader: nodes for leader, nodes in found.items() if len(nodes) > 1}

    @property
    def inner_edges(self) -> Iterator[tuple[int, int]]:
        """(producer, consumer) inside one kernel."""
        graph = self.problem.graph
        inside = self.group[graph.senders] == self.group[graph.receivers]
        return zip(graph.senders[inside].tolist(), graph.receivers[inside].tolist(), strict=True)

    def named(self, node: int) -> str:
        """The node's name and kind."""
        return f"{self.problem.graph.names[node]!r} ({self.kind(node).name.lower()})"

    def kind(self, node: int) -> OpKind:
        """The node's kind."""
        return OpKind(int(self.problem.graph.kind[node]))


@dataclass(frozen=True)
class KernelRule:
    """A rule: its name, its sentence, and its violations."""

    name: str
    english: str
    broken: Callable[[PlanKernels], Iterator[str]]


def legal_kernels(
    problem: Problem,
    device: Int[np.ndarray, "N"],
    priority: Int[np.ndarray, "P"] | None,
    group: Int[np.ndarray, "G"] | None,
) -> tuple[Violation, ...]:
    """Return the violations of a schedule and a fusion; empty when legal.

    Raises:
        PlanError: priorities or groups have another length than the graph.
    """
    count = problem.graph.num_nodes
    for name, values in (("priority", priority), ("fusion_group", group)):
        if values is not None and len(values) != count:
            raise PlanError(
                f"{name} has {len(values)} entries; {problem.graph.name!r} has {count} nodes"
            )
    for decision, name, values in (
        ("schedule", "priorities", priority),
        ("fusion", "fused kernels", group),
    ):
        if values is not None and decision not in problem.decisions:
            message = f"the plan has {name}, but the decision {decision} is not asked for"
            return (Violation("decision", message),)
    if group is None:
        return ()
    kernels = PlanKernels(problem, device.astype(np.int64), group.astype(np.int64))
    for rule in RULES:
        found = tuple(
            Violation(rule.name, message) for message in islice(rule.broken(kernels), MAX_MESSAGES)
        )
        if found:
            return found
    return ()


def _misnamed(kernels: PlanKernels) -> Iterator[str]:
    lowest: dict[int, int] = {}
    for node, group in enumerate(kernels.group.tolist()):
        if lowest.setdefault(group, node) != group:
            yield f"the kernel of {kernels.named(node)} is called {group}, not {lowest[group]}"


def _spread(kernels: PlanKernels) -> Iterator[str]:
    for nodes in kernels.members.values():
        for node in nodes:
            if kernels.device[node] != kernels.device[nodes[0]]:
                yield (
                    f"{kernels.named(nodes[0])} on device {kernels.device[nodes[0]]} and "
                    f"{kernels.named(node)} on device {kernels.device[node]} share a kernel"
                )


def _unfusible(kernels: PlanKernels) -> Iterator[str]:
    for u, v in kernels.inner_edges:
        if kernels.kind(v) not in FUSIBLE.get(kernels.kind(u), ()):
            yield f"{kernels.named(v)} cannot share a kernel with its producer {kernels.named(u)}"


def _two_heavy(kernels: PlanKernels) -> Iterator[str]:
    for nodes in kernels.members.values():
        heavy = [node for node in nodes if kernels.kind(node) in PRODUCT_KINDS]
        if len(heavy) > 1:
            yield f"{kernels.named(heavy[0])} and {kernels.named(heavy[1])} share a kernel"


def _apart(kernels: PlanKernels) -> Iterator[str]:
    beside: dict[int, set[int]] = defaultdict(set)
    for u, v in kernels.inner_edges:
        beside[u].add(v)
        beside[v].add(u)
    for nodes in kernels.members.values():
        seen, front = {nodes[0]}, [nodes[0]]
        while front:
            new = beside[front.pop()] - seen
            seen |= new
            front += new
        for node in nodes:
            if node not in seen:
                yield (
                    f"{kernels.named(node)} shares a kernel with {kernels.named(nodes[0])} "
                    "but no path inside joins them"
                )


def _too_large(kernels: PlanKernels) -> Iterator[str]:
    for nodes in kernels.members.values():
        if len(nodes) > MAX_FUSED:
            yield f"the kernel of {kernels.named(nodes[0])} has {len(nodes)} nodes of {MAX_FUSED}"


def _too_many_tensors(kernels: PlanKernels) -> Iterator[str]:
    graph, group = kernels.problem.graph, kernels.group
    crossing: dict[int, set[tuple[int, int]]] = defaultdict(set)
    edges = zip(
        graph.senders.tolist(), graph.edge_output.tolist(), graph.receivers.tolist(), strict=True
    )
    for u, output, v in edges:
        if group[u] != group[v]:
            crossing[int(group[u])].add((u, output))
            crossing[int(group[v])].add((u, output))
    for leader in kernels.members:
        if len(crossing[leader]) > MAX_BOUNDARY:
            yield (
                f"the kernel of {kernels.named(leader)} reads and writes {len(crossing[leader])} "
                f"tensors of {MAX_BOUNDARY}"
            )


def _waiting(kernels: PlanKernels) -> Iterator[str]:
    graph, group = kernels.problem.graph, kernels.group
    before: dict[int, set[int]] = defaultdict(set)
    for u, v in zip(group[graph.senders].tolist(), group[graph.receivers].tolist(), strict=True):
        if u != v:
            before[v].add(u)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        names = [kernels.named(node) for node in error.args[1]]
        yield "kernels wait for each other: those of " + " -> ".join(names)


RULES: tuple[KernelRule, ...] = (
    KernelRule("kernel-name", "a kernel is called by its lowest node", _misnamed),
    KernelRule("kernel-device", "the nodes of a kernel share a device", _spread),
    KernelRule("kernel-kinds", "a consumer in its producer's kernel is of a fusible kind",
               _unfusible),
    KernelRule("kernel-heavy", "a kernel has at most one matrix product or convolution",
               _two_heavy),
    KernelRule("kernel-joined", "the nodes of a kernel hang together", _apart),
    KernelRule("kernel-size", "a kernel has at most 64 nodes", _too_large),
    KernelRule("kernel-boundary", "a kernel reads and writes at most 96 tensors",
               _too_many_tensors),
    KernelRule("kernel-acyclic", "kernels do not wait for each other", _waiting),
)  # fmt: skip
