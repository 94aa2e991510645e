"""Pipeline throughput on a ring, written as docs/objectives.md and the simulator's docstring read.

One tensor at a time, with sets of chips; memory by listing when each tensor is alive.
"""

from collections.abc import Sequence
from typing import NamedTuple

from reference.held import weights_held

from go_rl.core import Problem, Status

START = -1
"""Time before a chip's first node; afterwards time is the index of the node that runs."""


class Price(NamedTuple):
    """What a plan costs; lists have one entry a chip, link i joins chip i to chip i + 1."""

    status: Status
    seconds: float
    """T_max; inf unless the status is OK."""
    device_seconds: list[float]
    link_bytes: list[float]
    weights: list[float]
    peak_bytes: list[float]


class Tensor(NamedTuple):
    """One result of one node."""

    source: int
    size: float
    readers: tuple[int, ...]


def price(problem: Problem, home: Sequence[int], present: Sequence[frozenset[int]]) -> Price:
    """Price the plan whose nodes are ``home`` on these chips and ``present`` on these sets."""
    chips = range(problem.hardware.num_devices)
    found = tensors(problem)
    busy = [sum(_seconds(problem, c, n) for n in _on(present, c)) for c in chips]
    traffic = [0.0 for _ in chips]
    for t in found:
        last = max(needed_on(t, present), default=home[t.source])
        for link in range(home[t.source], last):
            traffic[link] += t.size
    held = [weights_held(problem, _on(present, c)) for c in chips]
    alive = [lifetimes(problem, found, home, present, c) for c in chips]
    peak = [held[c] + most_alive(alive[c], _on(present, c)) for c in chips]
    status = _status(problem, home, present, found, busy, peak)
    worst = max([*busy, *(link_seconds(problem, size) for size in traffic)])
    return Price(status, worst if status.ok else float("inf"), busy, traffic, held, peak)


def tensors(problem: Problem) -> list[Tensor]:
    """Edges with the same sender and output carry one tensor, as large as the largest of them."""
    graph = problem.graph
    edges: dict[tuple[int, int], list[int]] = {}
    for e in range(graph.num_edges):
        edges.setdefault((int(graph.senders[e]), int(graph.edge_output[e])), []).append(e)
    return [
        Tensor(
            u,
            max(float(problem.edge_bytes[e]) for e in ids),
            tuple(int(graph.receivers[e]) for e in ids),
        )
        for (u, _), ids in edges.items()
    ]


def needed_on(tensor: Tensor, present: Sequence[frozenset[int]]) -> frozenset[int]:
    """Chips with a consumer but without the producer."""
    consumers = frozenset().union(*(present[r] for r in tensor.readers))
    return consumers - present[tensor.source]


def link_seconds(problem: Problem, size: float) -> float:
    links = problem.hardware.links
    return size / links.bandwidth + links.latency_seconds if size > 0 else 0.0


def lifetimes(
    problem: Problem,
    found: list[Tensor],
    home: Sequence[int],
    present: Sequence[frozenset[int]],
    chip: int,
) -> list[tuple[int, int, float]]:
    """(first, last, bytes) of everything that is ever alive on a chip beside weights."""
    end = problem.graph.num_nodes
    alive: list[tuple[int, int, float]] = []
    made = [0.0] * end
    for t in found:
        made[t.source] += t.size
        needed = needed_on(t, present)
        local = max((r for r in t.readers if chip in present[r]), default=end)
        kept = home[t.source] == chip and (needed or problem.graph.is_output[t.source])
        if chip in present[t.source]:
            alive.append((t.source, end if kept else local, t.size))
        if chip in needed:
            alive.append((START, local, t.size))
        elif problem.rules.relay and needed and home[t.source] < chip < max(needed):
            alive.append((START, end, t.size))
    for n in _on(present, chip):
        alive.append((n, end, max(0.0, float(problem.output_bytes[n]) - made[n])))
    return alive


def most_alive(alive: list[tuple[int, int, float]], nodes: list[int]) -> float:
    """The largest sum alive at once, at the start or while a node runs."""
    return max(
        sum(size for first, last, size in alive if first <= time <= last)
        for time in [START, *nodes]
    )


def _status(
    problem: Problem,
    home: Sequence[int],
    present: Sequence[frozenset[int]],
    found: list[Tensor],
    busy: list[float],
    peak: list[float],
) -> Status:
    if float("inf") in busy:
        return Status.UNSUPPORTED
    if any(c < home[t.source] for t in found for c in needed_on(t, present)):
        return Status.ILLEGAL
    room = [chip.memory_bytes for chip in problem.hardware.devices]
    if problem.memory and any(p > r for p, r in zip(peak, room, strict=True)):
        return Status.OUT_OF_MEMORY
    return Status.OK


def _on(present: Sequence[frozenset[int]], chip: int) -> list[int]:
    return [n for n, chips in enumerate(present) if chip in chips]


def _seconds(problem: Problem, chip: int, node: int) -> float:
    return float(problem.seconds[problem.device_kind[chip], node])
