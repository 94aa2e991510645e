"""`bottleneck`: which device or link holds the value of a plan, and what keeps it busy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from go_rl.core import OpGraph, Plan, Problem
from go_rl.core.printable import name_line
from go_rl.core.unit_text import bytes_text
from go_rl.objectives.makespan.simulate.timeline import TRANSFER, Slice, Timeline
from go_rl.report.timeline.plan_timeline import plan_timeline

NAMED = 2
"""Types of operators that are named."""
LEAST_SHARE = 0.05
"""Share of a device's busy time below which a type is not worth a name."""
WAITING = 0.5
"""Busy share below which what waits, not what is busy, holds the value."""


@dataclass(frozen=True)
class BusiestPart:
    """The busiest device or link of a plan."""

    what: str
    """Name of the device or link, such as ``device 2`` or ``link 0 → 1``."""
    share: float
    """Busy time over the value of the plan; 1: it holds the value alone."""
    operators: tuple[tuple[str, float], ...] = ()
    """Types of operators with their shares of the device's busy time, the largest first."""
    longest: str = ""
    """Operator or kernel of a device that takes longest, or tensor of most bytes on a link."""
    amount: float = 0.0
    """Share of the busy time of ``longest``; of a link its bytes."""

    @property
    def sentence(self) -> str:
        """The line that ``go-rl optimize`` ends with."""
        text = f"busiest: {self.what}, {_percent(self.share)} of the iteration"
        if self.operators:
            kinds = ", ".join(f"{_percent(part)} {name_line(name, 60)}" for name, part in
                              self.operators)  # fmt: skip
            text += f": {kinds}; longest operator {name_line(self.longest, 80)}, "
            text += _percent(self.amount)
        elif self.longest:
            size = bytes_text(self.amount)
            text += f"; largest tensor there: {name_line(self.longest, 80)}, {size}"
        if self.share < WAITING:
            text += "; everything else waits for results of other operators"
        return text

    def to_json(self) -> dict[str, Any]:
        """Return the object of the command's JSON."""
        return {**asdict(self), "operators": [list(each) for each in self.operators]}


def bottleneck(problem: Problem, plan: Plan) -> BusiestPart | None:
    """Return the busiest device or link of a plan; None: it is a failure, or nothing takes time.

    Makespan counts what the replay of the plan says, engine by engine; the others what the
    evaluation holds.
    """
    if not plan.evaluation.status.ok or plan.value <= 0:
        return None
    if problem.objective.traits.is_replayed:
        return _of_timeline(plan_timeline(problem, plan), problem.graph)
    return _of_loads(problem, plan)


def _of_timeline(timeline: Timeline, graph: OpGraph) -> BusiestPart | None:
    busy = np.zeros(len(timeline.tracks))
    for piece in timeline.slices:
        busy[piece.track] += piece.seconds
    if not busy.any():
        return None
    track = int(busy.argmax())
    where, share = timeline.tracks[track], float(busy[track] / timeline.makespan)
    pieces = [piece for piece in timeline.slices if piece.track == track]
    if where.to is not None:
        longest = max(pieces, key=lambda piece: piece.seconds)
        return BusiestPart(f"link {where.name}", share, (), longest.name, longest.args["bytes"])
    several = sum(t.device == where.device and t.to is None for t in timeline.tracks) > 1
    name = f"device {where.device}" + (f" {where.name}" if several else "")
    seconds = [(piece.name, _type_of(piece, graph), piece.seconds) for piece in pieces]
    return _of_device(name, share, seconds)


def _type_of(piece: Slice, graph: OpGraph) -> str:
    """The type of the node that a kernel is named after; see `Slice.name`."""
    assert piece.args["kind"] != TRANSFER
    node = piece.name.rpartition(" +")[0] if len(piece.args["nodes"]) > 1 else piece.name
    named = next((n for n in piece.args["nodes"] if str(n) == node), piece.args["nodes"][0])
    return graph.op_type[graph.index[named]]


def _of_loads(problem: Problem, plan: Plan) -> BusiestPart | None:
    devices, links = plan.evaluation.device_seconds, plan.evaluation.link_seconds
    if links.size and links.max() > devices.max(initial=0.0):
        link = int(links.argmax())
        name = f"link {link} → {(link + 1) % len(devices)}"
        return _of_ring_link(problem.graph, plan, link, name, float(links[link] / plan.value))
    if not devices.size or not devices.max() > 0:
        return None
    device = int(devices.argmax())
    word = problem.objective.traits.device
    return _of_device(f"{word} {device}", float(devices[device] / plan.value),
                      _work_on(problem, plan, device))  # fmt: skip


def _of_ring_link(graph: OpGraph, plan: Plan, link: int, name: str, share: float) -> BusiestPart:
    """The largest tensor that crosses from chip ``link`` to the next."""
    ends = np.stack([plan.device[graph.senders], plan.device[graph.receivers]])
    crossing = graph.senders[(ends[0] <= link) & (ends[1] > link)]
    if not crossing.size:
        return BusiestPart(name, share)
    node = int(crossing[graph.output_bytes[crossing].argmax()])
    return BusiestPart(name, share, (), str(graph.names[node]), float(graph.output_bytes[node]))


def _work_on(problem: Problem, plan: Plan, device: int) -> list[tuple[str, str, float]]:
    """Name, type and seconds of the nodes on a device, copies included."""
    graph, seconds = problem.graph, problem.seconds[problem.device_kind[device]]
    copied = [node for node, devices in plan.replicas.items() if device in devices]
    nodes = [*np.flatnonzero(plan.device == device).tolist(), *copied]
    return [(str(graph.names[n]), graph.op_type[n], float(seconds[n])) for n in nodes]


def _of_device(what: str, share: float, work: Iterable[tuple[str, str, float]]) -> BusiestPart:
    """Return the part of a device, from name, type and seconds of what runs there."""
    work = list(work)
    total = sum(seconds for *_, seconds in work)
    if total <= 0:
        return BusiestPart(what, share)
    kinds: dict[str, float] = defaultdict(float)
    for _, op_type, seconds in work:
        kinds[op_type] += seconds
    ranked = sorted(kinds.items(), key=lambda each: -each[1])
    shown = [(name, part / total) for name, part in ranked[:NAMED] if part >= LEAST_SHARE * total]
    longest, _, seconds = max(work, key=lambda each: each[-1])
    return BusiestPart(what, share, tuple(shown or [(ranked[0][0], ranked[0][1] / total)]),
                      longest, seconds / total)  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
