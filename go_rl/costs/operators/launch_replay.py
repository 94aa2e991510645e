"""`replay`: the time of an iteration from the times of its operators (CDMPP, algorithm 2).

Every device has a queue of operators whose predecessors have run. The device that is free first and
has any takes the one that was ready first; after each operator it pauses for a gap. Streams of one
GPU are devices of their own.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.errors import GoRLError


class ReplayError(GoRLError):
    """Operators, their order or their devices do not fit together."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Times of ``N`` operators on ``D`` devices, seconds."""

    start: Float64[np.ndarray, "N"]
    end: Float64[np.ndarray, "N"]
    """[N] when each has run; its gap follows."""
    device_time: Float64[np.ndarray, "D"]
    """[D] when each device is done, its last gap included."""

    @property
    def seconds(self) -> float:
        """Time of the iteration."""
        return float(self.device_time.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Operators:
    """``N`` operators with their dependencies."""

    duration: Float64[np.ndarray, "N"]
    """[N] seconds."""
    before: tuple[tuple[int, ...], ...]
    """[N] operators that each one waits for."""
    device: Int64[np.ndarray, "N"]
    """[N] where each runs, from 0."""
    gap: float = 0.0
    """Seconds for which a device pauses after an operator."""

    def __post_init__(self) -> None:
        count = len(self.duration)
        if not len(self.before) == len(self.device) == count:
            raise ReplayError("replay: durations, dependencies and devices must be equally many")
        if count and not (np.isfinite(self.duration).all() and self.duration.min() >= 0):
            raise ReplayError("replay: durations must be finite and not negative")
        if not self.gap >= 0:
            raise ReplayError(f"replay: the gap must not be negative, not {self.gap}")
        if count and self.device.min() < 0:
            raise ReplayError("replay: devices are numbered from 0")
        if any(not 0 <= b < count for each in self.before for b in each):
            raise ReplayError("replay: an operator waits for one that is not there")


def replay(operators: Operators) -> Replay:
    """Return the times of all operators.

    Raises:
        ReplayError: operators wait for each other in a circle.
    """
    count = len(operators.duration)
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [len(set(each)) for each in operators.before]
    for number, each in enumerate(operators.before):
        for b in set(each):
            after[b].append(number)
    device, duration = operators.device.tolist(), operators.duration.tolist()
    queues: list[list[tuple[float, int]]] = [[] for _ in range(max(device, default=-1) + 1)]
    time, ready = [0.0] * len(queues), [0.0] * count
    start, end = np.zeros(count), np.zeros(count)
    for number in range(count):
        if not waiting[number]:
            heapq.heappush(queues[device[number]], (0.0, number))
    done = 0
    while (chosen := _select(queues, time)) is not None:
        _, number = heapq.heappop(queues[chosen])
        start[number] = max(time[chosen], ready[number])
        end[number] = start[number] + duration[number]
        time[chosen] = end[number] + operators.gap
        done += 1
        for user in after[number]:
            waiting[user] -= 1
            ready[user] = max(ready[user], time[chosen])
            if not waiting[user]:
                heapq.heappush(queues[device[user]], (ready[user], user))
    if done < count:
        raise ReplayError("replay: operators wait for each other in a circle")
    return Replay(start, end, np.array(time, np.float64))


def split_over_cores(operators: Operators, cores: Sequence[Sequence[int]]) -> Operators:
    """Return operators with each one that may use several cores cut into equal parts.

    CDMPP's example is Habana's HL-100: of a convolution of y seconds, each of 3 matrix cores
    computes a third in y / 3 seconds; what follows waits for all parts.

    Args:
        operators: their ``device`` is ignored.
        cores: [N] devices over which each operator is cut; one or more.
    """
    if len(cores) != len(operators.duration) or not all(cores):
        raise ReplayError("replay: every operator needs one core or more")
    parts: list[range] = []
    for each in cores:
        first = parts[-1].stop if parts else 0
        parts.append(range(first, first + len(each)))
    before = tuple(
        tuple(p for b in operators.before[number] for p in parts[b])
        for number, each in enumerate(cores)
        for _ in each
    )
    counts = np.array([len(each) for each in cores], np.int64)
    duration = np.repeat(operators.duration / np.maximum(counts, 1), counts)
    device = np.array([core for each in cores for core in each], np.int64)
    return Operators(duration, before, device, operators.gap)


def _select(queues: Sequence[Sequence[tuple[float, int]]], time: Sequence[float]) -> int | None:
    """The device that is free first of those whose queue is not empty."""
    able = [d for d, queue in enumerate(queues) if queue]
    return min(able, key=lambda d: (time[d], d)) if able else None
