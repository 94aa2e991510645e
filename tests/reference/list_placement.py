"""Plain twin of `go_rl.objectives.makespan.methods.list_placement`: dictionaries, one decision
after the other."""

from __future__ import annotations

import numpy as np

from go_rl.objectives.makespan.units import MakespanUnits


class PlainList:
    """A schedule that grows by one unit at a time."""

    def __init__(self, units: MakespanUnits, caution: float, capacity: np.ndarray) -> None:
        self.units, self.caution, self.capacity = units, caution, capacity
        self.device: dict[int, int] = {}
        self.end: dict[int, float] = {}
        self.free = dict.fromkeys(range(len(capacity)), 0.0)
        self.link: dict[tuple[int, int], float] = {}
        self.arrived: dict[tuple[int, int], float] = {}

    def reads(self, unit: int) -> list[tuple[int, float]]:
        """Producers with the seconds of their transfers."""
        u = self.units.units
        rows = range(u.pred_ptr[unit], u.pred_ptr[unit + 1])
        return [(int(u.pred[e]), self.caution * self.units.incoming[e]) for e in rows]

    def transfers(self, unit: int, device: int) -> tuple[float, dict, dict]:
        """When all producers' results are there, and what links and arrivals are then."""
        link, arrived, ready = dict(self.link), dict(self.arrived), 0.0
        for producer, seconds in self.reads(unit):
            source = self.device[producer]
            at = self.end[producer]
            if source != device:
                if (producer, device) not in arrived:
                    start = max(link.get((source, device), 0.0), at)
                    link[source, device] = arrived[producer, device] = start + seconds
                at = arrived[producer, device]
            ready = max(ready, at)
        return ready, link, arrived

    def place(self, unit: int, proposal: int, attachment: float) -> None:
        """Put one unit where it ends first."""
        seconds, weight = self.units.seconds[:, unit], self.units.weight
        held = [sum(weight[u] for u, d in self.device.items() if d == k) for k in self.free]
        able = [d for d in self.free if np.isfinite(seconds[d])]
        roomy = [d for d in able if held[d] + weight[unit] <= self.capacity[d]]

        def cost(device: int) -> float:
            end = max(self.free[device], self.transfers(unit, device)[0]) + seconds[device]
            return end + (0.0 if device == proposal else attachment)

        if roomy:
            best = min(roomy, key=cost)
            end = max(self.free[best], self.transfers(unit, best)[0]) + seconds[best]
        else:
            best = max(able, key=lambda d: self.capacity[d] - held[d], default=0)
            end = self.free[best]
        _, self.link, self.arrived = self.transfers(unit, best)
        self.device[unit], self.end[unit], self.free[best] = best, end, end


def plain_list_placement(
    units: MakespanUnits,
    score: np.ndarray,
    proposal: np.ndarray,
    rules: tuple[float, float, float],
    capacity: np.ndarray,
) -> list[int]:
    """Return [U] devices; ``rules``: attachment, caution, chronology."""
    attachment, caution, chronology = rules
    made = PlainList(units, caution, capacity)
    step = units.units.work.sum() / len(capacity)
    while len(made.device) < units.num_units:
        turns = {}
        for unit in set(range(units.num_units)) - set(made.device):
            producers = [p for p, _ in made.reads(unit)]
            if all(p in made.device for p in producers):
                known = max((made.end[p] for p in producers), default=0.0)
                turns[unit] = known + step * chronology * score[unit]
        unit = min(turns, key=lambda u: (turns[u], u))
        made.place(unit, int(proposal[unit]), attachment)
    return [made.device[u] for u in range(units.num_units)]
