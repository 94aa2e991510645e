"""`replay`: the time of an iteration from the times of its operators (CDMPP, algorithm 2).

Every device has a queue of operators whose predecessors have run. The device that is free first and
has any takes the one that was ready first; after each operator it pauses for a gap. Streams of one
GPU are devices of their own.

`issued_ahead`: the time of kernels that a host issues without waiting for the GPU. Eager PyTorch
runs so: where kernels are long the host is ahead of the GPU and its part costs nothing; where they
are short it is all that counts. Host and GPU are two devices of `replay`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.errors import GoRLError

HOST, GPU = 0, 1
BETWEEN_KERNELS = 1e-6
"""Seconds between two equal kernels of a stream of which the second is issued already."""
BETWEEN_UNLIKE = 1.7e-6
"""The same of two that differ, as in a network: the median, over an H200's networks of kernels
below 10 µs, of what a launch takes in a CUDA graph beyond the operators' own times."""


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
    """[N] seconds of each operator."""
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


def issued_ahead(
    host: Float64[np.ndarray, "L"],
    start: Float64[np.ndarray, "L"],
    busy: Float64[np.ndarray, "L"],
    before: Sequence[Sequence[int]],
) -> Replay:
    """Return the times of L launches on one stream, each as three operators: until the kernel is
    issued, the rest of the host's part, the kernel.

    Args:
        host: [L] seconds for which the host is busy with each launch.
        start: [L] seconds of these after which the kernel is issued.
        busy: [L] seconds of the kernels.
        before: [L] launches that each one waits for, of lower number.

    Raises:
        ReplayError: a launch waits for a later one, or seconds are negative or not finite.
    """
    if any(b >= place for place, each in enumerate(before) for b in each):
        raise ReplayError("issued_ahead: a launch waits for one that is issued later")
    rest = np.maximum(host - start, 0.0)
    duration = np.stack([start, rest, busy + BETWEEN_UNLIKE], axis=1).ravel()
    waits: list[tuple[int, ...]] = []
    for place, each in enumerate(before):
        issue = 3 * place
        last = (issue - 2,) if place else ()
        kernels = {3 * b + 2 for b in each} | ({issue - 1} if place else set())
        waits += [last, (issue,), (issue, *sorted(kernels))]
    device = np.tile(np.array([HOST, HOST, GPU], np.int64), len(host))
    return replay(Operators(duration, tuple(waits), device))


def _select(queues: Sequence[Sequence[tuple[float, int]]], time: Sequence[float]) -> int | None:
    """The device that is free first of those whose queue is not empty."""
    able = [d for d, queue in enumerate(queues) if queue]
    return min(able, key=lambda d: (time[d], d)) if able else None
