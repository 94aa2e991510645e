"""Algorithm 2 of CDMPP (EuroSys 2024, appendix C), line by line.

A device takes the operator of its queue that has been ready longest; the paper's comment breaks off
after "the op with the smallest", and `readyTime` is what the operators in a queue have. Tensors
travel in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(eq=False)
class Op:
    """A tensor program of the data flow graph."""

    number: int
    device: int
    duration: float
    gap: float
    successors: list[Op] = field(default_factory=list)
    ref: int = 0
    ready_time: float = 0.0
    start: float = 0.0


@dataclass(eq=False)
class Device:
    """A device, or one stream of a device."""

    number: int
    device_time: float = 0.0
    queue: list[Op] = field(default_factory=list)


@dataclass(frozen=True)
class Simulated:
    """What Algorithm 2 returns, and what it did on the way."""

    iteration_time: float
    start: list[float]
    order: list[int]
    """Operators in the order in which they were taken out of a queue."""


def simulate(
    duration: Sequence[float],
    gap: Sequence[float],
    edges: Sequence[tuple[int, int]],
    device: Sequence[int],
) -> Simulated:
    """Run Algorithm 2. ``edges`` are (producer, consumer), each pair once."""
    ops = [Op(n, d, t, g) for n, (d, t, g) in enumerate(zip(device, duration, gap, strict=True))]
    for u, v in edges:
        ops[u].successors.append(ops[v])
    devices = [Device(d) for d in range(max(device) + 1)]  # lines 3-6
    home = {d.number: d for d in devices}
    order: list[int] = []
    for u in ops:  # lines 7-12
        u.ref = sum(u in p.successors for p in ops)
        if u.ref == 0:
            home[u.device].queue.append(u)
    while True:  # line 13
        d = next((d for d in devices if d.queue), None)  # line 14
        if d is None:  # lines 15-17
            break
        u = min(d.queue, key=lambda op: (op.ready_time, op.number))  # line 18
        d.queue.remove(u)
        order.append(u.number)
        u.start = max(d.device_time, u.ready_time)  # line 19
        d.device_time = u.start + u.duration + u.gap  # line 20
        devices.sort(key=lambda d: d.device_time)  # line 21
        for c in u.successors:  # lines 22-28
            c.ref -= 1
            c.ready_time = max(c.ready_time, u.start + u.duration + u.gap)
            if c.ref == 0:
                home[c.device].queue.append(c)
    iteration_time = max(d.device_time for d in devices)  # line 30
    return Simulated(iteration_time, [u.start for u in ops], order)
