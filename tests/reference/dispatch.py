"""Plain twin of `go_rl.policy.dispatch`."""

from math import log1p

import numpy as np

from go_rl.objectives.makespan.units import MakespanUnits


class PlainDispatch:
    """A schedule that grows by one unit at a time, what is seen of the next choice, and the
    choices of two linear heads."""

    def __init__(self, units: MakespanUnits, capacity: np.ndarray, advice: np.ndarray) -> None:
        self.units, self.capacity = units, capacity
        self.device: dict[int, int] = {}
        self.end: dict[int, float] = {}
        self.free = dict.fromkeys(range(len(capacity)), 0.0)
        self.link: dict[int, float] = {}
        self.arrived: dict[tuple[int, int], float] = {}
        self.advice = advice
        u = self.units.units
        self.count, self.devices = u.num_units, len(capacity)
        self.total = float(u.work.sum())
        self.mean = self.total / self.count
        self.last: int | None = None
        self.last_of_layer: dict[int, int] = {}
        self.tail = [0.0] * self.count
        for unit in reversed(range(self.count)):
            beyond = [units.traffic[e] + self.tail[u.succ[e]] for e in self._rows(unit)]
            self.tail[unit] = u.work[unit] + max(beyond, default=0.0)

    def reads(self, unit: int) -> list[tuple[int, float]]:
        """Producers with the seconds of their transfers."""
        u = self.units.units
        rows = range(u.pred_ptr[unit], u.pred_ptr[unit + 1])
        return [(int(u.pred[e]), float(self.units.incoming[e])) for e in rows]

    def transfers(self, unit: int, device: int) -> tuple[float, dict, dict]:
        """When all producers' results are there, and what links and arrivals are then."""
        link, arrived, ready = dict(self.link), dict(self.arrived), 0.0
        for producer, seconds in self.reads(unit):
            source = self.device[producer]
            at = self.end[producer]
            if source != device:
                if (producer, device) not in arrived:
                    links = self.units.links
                    through = int(links.channel[source, device])
                    sent = seconds * links.scale[source, device] + links.extra[source, device]
                    start = max(link.get(through, 0.0), at)
                    link[through] = arrived[producer, device] = start + sent
                at = arrived[producer, device]
            ready = max(ready, at)
        return ready, link, arrived

    def _rows(self, unit: int) -> range:
        u = self.units.units
        return range(u.succ_ptr[unit], u.succ_ptr[unit + 1])

    def consumers(self, unit: int) -> list[int]:
        """Units that read a unit's results."""
        return [int(self.units.units.succ[e]) for e in self._rows(unit)]

    def ready(self) -> list[int]:
        """Units that are not placed but whose producers are."""
        return [
            u
            for u in range(self.count)
            if u not in self.device and all(p in self.device for p, _ in self.reads(u))
        ]

    def short(self, seconds: float) -> float:
        """Seconds as they are shown."""
        return log1p(max(seconds, 0.0) / self.mean)

    def home(self, unit: int) -> int | None:
        """Device of the producer with the most expensive transfer, the first of equal ones."""
        reads = self.reads(unit)
        return self.device[max(reads, key=lambda read: read[1])[0]] if reads else None

    def pulled(self, unit: int, device: int) -> float:
        """Link seconds of the data that a unit finds on a device."""
        return sum(s for p, s in self.reads(unit) if self.device.get(p) == device)

    def layer_work(self, unit: int, device: int | None = None) -> float:
        """Work of the unit's layer that is placed, on a device or anywhere."""
        layer, work = self.units.main_layer, self.units.units.work
        return sum(
            work[u]
            for u, d in self.device.items()
            if layer[u] == layer[unit] and device in (None, d)
        )

    def born(self, unit: int) -> float:
        """When the last producer ends."""
        return max((self.end[p] for p, _ in self.reads(unit)), default=0.0)

    def see_units(self, candidates: list[int]) -> np.ndarray:
        """[W, F] `SELECT_FEATURES` of some units that are ready."""
        now, merged = min(self.free.values()), self.units
        layer, work = merged.main_layer, merged.units.work
        urgent = max(max(self.born(u), now) + self.tail[u] for u in candidates)
        rows = []
        for u in candidates:
            home, begins = self.home(u), max(self.born(u), now)
            freed = [
                v for v in self.consumers(u)
                if all(p == u or p in self.device for p, _ in self.reads(v))
            ]  # fmt: skip
            rows.append([
                self.tail[u] / max(self.tail), self.short(self.born(u) - now),
                self.short(now - self.born(u)), u / self.count, merged.layer[u],
                self.short(work[u]), float(self.last in [p for p, _ in self.reads(u)]),
                merged.backward[u], self.short(urgent - begins - self.tail[u]),
                0.0 if home is None else self.short(self.free[home] - now),
                self.layer_work(u) / work[layer == layer[u]].sum(), log1p(len(freed)),
            ])  # fmt: skip
        return np.array(rows)

    def see_devices(self, u: int) -> np.ndarray:
        """[D, G] `PLACE_FEATURES` of a unit."""
        merged, work = self.units, self.units.units.work
        need = sum(s for _, s in self.reads(u))
        there = [self.transfers(u, d)[0] for d in self.free]
        start = [max(self.free[d], there[d]) for d in self.free]
        end = [start[d] + merged.seconds[d, u] for d in self.free]
        done = sum(work[v] for v in self.device)
        future = sum(s for v in self.consumers(u) for _, s in self.reads(v))
        rows = []
        for d in self.free:
            lasting, moved = merged.seconds[d, u], max(need - self.pulled(u, d), 0.0)
            load = sum(merged.seconds[d, v] for v, at in self.device.items() if at == d)
            held = sum(merged.weight[v] for v, at in self.device.items() if at == d)
            middle, begun = (d + 0.5) / self.devices, self.layer_work(u)
            gathered = sum(self.pulled(v, d) for v in self.consumers(u))
            rows.append([
                float(end[d] == min(end)), self.short(end[d] - min(end)),
                self.short(start[d] - min(start)),
                self.short(self.free[d] - min(self.free.values())),
                self.short(there[d] - min(there)), self.short(moved),
                min(moved / lasting, 4.0), self.pulled(u, d) / need if need else 0.0,
                float(d == self.home(u)), self.layer_work(u, d) / begun if begun else 0.0,
                float(self.last_of_layer.get(int(merged.main_layer[u])) == d),
                self.devices * load / self.total - done / self.total,
                min(held / self.capacity[d], 1.0), abs(middle - merged.layer[u]),
                abs(middle - work[:u].sum() / self.total),
                log1p(lasting / merged.seconds[:, u].min() - 1.0),
                gathered / future if future else 0.0,
                self.short(end[d] + self.tail[u] - work[u] - max(self.tail)),
                *(float(advised[u] == d) for advised in self.advice),
            ])  # fmt: skip
        return np.array(rows)

    def take(self, unit: int, device: int) -> None:
        """Place a unit."""
        ready, self.link, self.arrived = self.transfers(unit, device)
        start = max(self.free[device], ready)
        self.device[unit] = device
        self.end[unit] = self.free[device] = start + self.units.seconds[device, unit]
        self.last, self.last_of_layer[int(self.units.main_layer[unit])] = unit, device

    def possible(self, unit: int) -> np.ndarray:
        """[D] whether a unit can go to a device; where no device has room, whether it can run."""
        weight, able = self.units.weight, np.isfinite(self.units.seconds[:, unit])
        held = [sum(weight[v] for v, at in self.device.items() if at == d) for d in self.free]
        room = able & (np.array(held) + weight[unit] <= self.capacity)
        return room if room.any() else able

    def roll_out(
        self, select: np.ndarray, place: np.ndarray, window: int
    ) -> tuple[list[int], list[int]]:
        """Device of each unit, and units in the order of selection."""
        order: list[int] = []
        while len(order) < self.count:
            ready = sorted(self.ready(), key=lambda u: -self.tail[u])[:window]
            unit = ready[int(np.argmax(self.see_units(ready) @ select))]
            scores = np.where(self.possible(unit), self.see_devices(unit) @ place, -np.inf)
            self.take(unit, int(np.argmax(scores)))
            order.append(unit)
        return [self.device[u] for u in range(self.count)], order
