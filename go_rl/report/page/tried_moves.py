"""`tried_moves`: for each operator of a plan, what forbids a move to another device, or its price.

``N`` operators, ``D`` devices, ``B`` plans of a batch. Operators that must stay together, those of
one fused kernel or colocation class, are a *unit*: they move together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from jaxtyping import Float64, Int16, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from go_rl.core import FREE, Plan, Problem
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import OPTIMAL_GAP, STATUS_CODES, Status
from go_rl.core.printable import name_line
from go_rl.core.unit_text import seconds_text
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.kits import kit_of
from go_rl.plans.splits.broken_rules import broken_rules
from go_rl.verify.rules import Violation

MOST_CHECKED = 4_000_000
"""Nodes and edges that the rules may read for all moves together: a second or two."""
MOST_PRICED = 8_000_000
"""Nodes and edges that the simulator may read for all moves together: a second or two."""
LONGEST = 200
"""Characters of a reason."""


class Hindrance(StrEnum):
    """Reason against a move."""

    RULE = "rule"
    MEMORY = "memory"
    LOAD = "load"
    NOTHING = "nothing"
    """The move is legal and costs nothing, or gains."""
    UNKNOWN = "unknown"
    """No attempt: the graph is too large to try all moves."""


@dataclass(frozen=True)
class TriedMove:
    """One operator on another device."""

    device: int
    hindrance: Hindrance
    reason: str
    """Name of the rule and what breaks it, or what would follow."""


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A unit on another device, to be checked."""

    unit: int
    device: int


def tried_moves(problem: Problem, plan: Plan) -> list[tuple[TriedMove, ...]]:
    """Return [N] the moves to the devices nearest to each operator's own: the next and the one
    before on a ring, else the one that exchanges most bytes with it and the one with least load.

    Longest operators are tried first, as many as `MOST_CHECKED` and `MOST_PRICED` allow. Inputs and
    constants of a replayed plan have none: they run nowhere.
    """
    return _Trials(problem, plan).all()


class _Trials:
    """All moves of one plan; the methods read it."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan, self.graph = problem, plan, problem.graph
        self.unit = _units(problem, plan)
        self.members: dict[int, list[int]] = defaultdict(list)
        for node, unit in enumerate(self.unit.tolist()):
            self.members[unit].append(node)
        self.word = problem.objective.traits.device
        self.is_ring = problem.objective.traits.has_rules
        self.workspace: Workspace = kit_of(problem).workspace(problem)

    def all(self) -> list[tuple[TriedMove, ...]]:
        found: dict[int, list[TriedMove]] = defaultdict(list)
        attempts: list[_Attempt] = []
        for unit in self.members:
            for device in self._devices(unit):
                known = self._pinned(unit) or self._out_of_order(unit, device)
                if known:
                    found[unit].append(TriedMove(device, Hindrance.RULE, known))
                else:
                    attempts.append(_Attempt(unit, device))
        for attempt, move in self._tried(attempts):
            found[attempt.unit].append(move)
        return [tuple(found[unit]) for unit in self.unit.tolist()]

    def _devices(self, unit: int) -> list[int]:
        nodes = self.members[unit]
        if self.problem.objective.traits.is_replayed and self.graph.is_fed[nodes].all():
            return []
        own, last = int(self.plan.device[nodes[0]]), self.problem.hardware.num_devices - 1
        if self.is_ring:
            return [device for device in (own - 1, own + 1) if 0 <= device <= last]
        traffic = self._traffic(nodes)
        traffic[own] = -1.0
        load = self.plan.evaluation.device_seconds.copy()
        load[own] = np.inf
        near = [int(traffic.argmax())] if traffic.max() > 0 else []
        return list(dict.fromkeys([*near, *([int(load.argmin())] if last else [])]))

    def _traffic(self, nodes: Sequence[int]) -> Float64[np.ndarray, "D"]:
        """Bytes that the nodes exchange with each device."""
        found = np.zeros(self.problem.hardware.num_devices)
        graph = self.graph
        both = (graph.successors, graph.receivers), (graph.predecessors, graph.senders)
        for (offsets, edge_ids), ends in both:
            for node in nodes:
                edges = edge_ids[offsets[node] : offsets[node + 1]]
                np.add.at(found, self.plan.device[ends[edges]], self.problem.edge_bytes[edges])
        return found

    def _pinned(self, unit: int) -> str:
        node = next((n for n in self.members[unit] if n in self.problem.fixed), None)
        return "" if node is None else f"fixed: {self._named(node)} is pinned where it is"

    def _out_of_order(self, unit: int, device: int) -> str:
        """The neighbour that keeps a unit of a ring on its chip; copies are left to the checker."""
        if not self.is_ring or self.plan.replicas:
            return ""
        nodes, home = self.members[unit], self.plan.device
        upwards = device > home[nodes[0]]
        rows = self.graph.successors if upwards else self.graph.predecessors
        ends = self.graph.receivers if upwards else self.graph.senders
        for node in nodes:
            for other in ends[rows[1][rows[0][node] : rows[0][node + 1]]].tolist():
                between = home[other] < device if upwards else home[other] > device
                if between and self.unit[other] != unit:
                    role = "reader" if upwards else "input"
                    return f"acyclic: its {role} {self._named(other)} is on chip {home[other]}"
        return ""

    def _tried(self, attempts: list[_Attempt]) -> Iterator[tuple[_Attempt, TriedMove]]:
        """Check and price moves, those of the longest units first."""
        work = self.problem.work
        attempts.sort(key=lambda each: -float(work[self.members[each.unit]].sum()))
        size = self.graph.num_nodes + self.graph.num_edges
        by_rules = not self.problem.objective.traits.is_priced_whole
        most = max(1, (MOST_CHECKED if by_rules else MOST_PRICED) // size)
        legal_ones: list[tuple[_Attempt, Decisions]] = []
        for attempt in attempts[:most]:
            decisions = self._moved(attempt)
            broken = broken_rules(self.workspace, decisions.device[0]) if by_rules else ()
            if not broken:
                legal_ones.append((attempt, decisions))
            else:
                yield attempt, TriedMove(attempt.device, *_hindrance(broken[0]))
        yield from self._priced(legal_ones)
        why = f"not tried: only the {most:,} moves of the longest operators are"
        for attempt in attempts[most:]:
            yield attempt, TriedMove(attempt.device, Hindrance.UNKNOWN, why)

    def _moved(self, attempt: _Attempt) -> Decisions:
        device: Int16[np.ndarray, "N"] = self.plan.device.copy()
        device[self.members[attempt.unit]] = attempt.device
        return replace(self.plan.decisions, device=device[None])

    def _priced(
        self, attempts: list[tuple[_Attempt, Decisions]]
    ) -> Iterator[tuple[_Attempt, TriedMove]]:
        if not attempts:
            return
        scored = self.workspace.evaluate(Decisions.stack([moved for _, moved in attempts]))
        for (attempt, _), seconds, code in zip(
            attempts, scored.seconds.tolist(), scored.status.tolist(), strict=True
        ):
            yield attempt, self._price(attempt.device, seconds, STATUS_CODES[code])

    def _price(self, device: int, seconds: float, status: Status) -> TriedMove:
        where = f"{self.word} {device}"
        if status is Status.OUT_OF_MEMORY:
            return TriedMove(device, Hindrance.MEMORY, f"{where} has not the memory for it")
        if status is Status.UNSUPPORTED:
            return TriedMove(device, Hindrance.RULE, f"supported: {where} cannot run it")
        if not status.ok:
            return TriedMove(device, Hindrance.RULE, status.sentence)
        now, name = self.plan.value, self.problem.objective.traits.value_name
        if abs(seconds - now) <= OPTIMAL_GAP * now:
            return TriedMove(device, Hindrance.NOTHING, f"possible, {name} stays as it is")
        change = f"{name} from {seconds_text(now)} to {seconds_text(seconds)}"
        if seconds < now:
            return TriedMove(device, Hindrance.NOTHING, f"possible, and would lower {change}")
        return TriedMove(device, Hindrance.LOAD, f"would raise {change} (+{seconds / now - 1:.2%})")

    def _named(self, node: int) -> str:
        return name_line(repr(self.graph.names[node]), LONGEST // 3)


def _units(problem: Problem, plan: Plan) -> Int64[np.ndarray, "N"]:
    """[N] number of the unit of each node: connected through kernels and colocation classes."""
    count, nodes = problem.graph.num_nodes, np.arange(problem.graph.num_nodes)
    group = nodes if plan.fusion_group is None else plan.fusion_group
    together = problem.graph.colocation
    members = np.flatnonzero(together != FREE)
    _, first, which = np.unique(together[members], return_index=True, return_inverse=True)
    rows = np.concatenate([nodes, members])
    columns = np.concatenate([group, members[first][which]])
    links = coo_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _hindrance(first: Violation) -> tuple[Hindrance, str]:
    is_full = first.status is Status.OUT_OF_MEMORY
    text = name_line(f"{first.rule}: {first.message}", LONGEST)
    return (Hindrance.MEMORY if is_full else Hindrance.RULE), text
