"""`run_samples`: many samples through the stages of a device.

A stage runs as soon as its tensors are there and there is room for its results; of several that
could, the one that is at the earliest sample. So a device whose stages alternate with those of
another works on one sample while the other has the next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from go_rl.plans.pipeline.sessions import Session

Slots = Mapping[int, list[np.ndarray]]


@dataclass(frozen=True)
class Channel:
    """One tensor on its way from a stage to another, in slots that are filled in turn."""

    name: str
    """Name of the tensor."""
    free: Any
    """Semaphore: slots that the sender may fill."""
    full: Any
    """Semaphore: slots that the receiver may read."""
    sender_bell: Any
    """Semaphore of the sender's device: something has changed that it may wait for."""
    receiver_bell: Any


@dataclass
class StageClock:
    """Times of a stage, seconds, of each timed sample."""

    busy: list[float] = field(default_factory=list)
    """Running the program."""
    sending: list[float] = field(default_factory=list)
    """Copying tensors to other stages."""
    waiting: list[float] = field(default_factory=list)
    """Until it could run, with its device idle."""
    processor: list[float] = field(default_factory=list)
    """Processor time of running and copying, which no other process on the core adds to."""
    ends: list[float] = field(default_factory=list)
    """Times at which inputs left the stage, on the machine's clock."""


@dataclass
class Lane:
    """A stage, and the sample that it is at."""

    session: Session
    given: Mapping[str, Any]
    """The model's inputs and weights."""
    receives: Sequence[tuple[int, Channel]]
    """Channels by number, of tensors from other stages."""
    sends: Sequence[tuple[int, Channel]]
    slots: Slots
    """Slots by the number of a channel."""
    sample: int = 0
    clock: StageClock = field(default_factory=StageClock)

    def missing(self) -> str | None:
        """Take what a sample needs and return None; or take nothing, and name what is missing."""
        wanted = [(c.full, f"tensor {c.name!r}") for _, c in self.receives]
        wanted += [(c.free, f"room for tensor {c.name!r}") for _, c in self.sends]
        for place, (semaphore, name) in enumerate(wanted):
            if not semaphore.acquire(block=False):
                for taken, _ in wanted[:place]:
                    taken.release()
                return name
        return None

    def run(self, idle_since: float) -> None:
        """Run a sample for which everything is there, and hand on its results."""
        begun, counted = time.perf_counter(), time.process_time()
        feeds = dict(self.given)
        for number, channel in self.receives:
            feeds[channel.name] = self._slot(number)
        found = self.session.run(feeds)
        del feeds
        ran = time.perf_counter()
        for _, channel in self.receives:
            channel.free.release()
            channel.sender_bell.release()
        for number, channel in self.sends:
            self._slot(number)[...] = found[channel.name]
            channel.full.release()
            channel.receiver_bell.release()
        clock = self.clock
        clock.busy.append(ran - begun)
        clock.sending.append(time.perf_counter() - ran)
        clock.waiting.append(begun - idle_since)
        clock.processor.append(time.process_time() - counted)
        clock.ends.append(time.monotonic())
        self.sample += 1

    def _slot(self, number: int) -> np.ndarray:
        return self.slots[number][self.sample % len(self.slots[number])]


def run_samples(
    lanes: Sequence[Lane], bell: Any, warm_up: int, samples: int, timeout: float
) -> None:
    """Run all samples; the clock of each lane has those after ``warm_up``.

    Args:
        lanes: stages of a device in the order in which a sample runs through them.
        bell: of the device.
        warm_up: samples before those that are timed.
        samples: number of timed samples.
        timeout: seconds without progress after which a `TimeoutError` names what is missing.
    """
    idle_since = time.perf_counter()
    while left := [lane for lane in lanes if lane.sample < warm_up + samples]:
        lane = _next(left, bell, timeout)
        if lane.sample == warm_up:
            lane.clock = StageClock()
        lane.run(idle_since)
        idle_since = time.perf_counter()


def _next(lanes: Sequence[Lane], bell: Any, timeout: float) -> Lane:
    """The lane to run, with what it needs taken."""
    in_turn = sorted(lanes, key=lambda lane: lane.sample)
    while True:
        while bell.acquire(block=False):
            pass  # what rang before is seen now
        first = ""
        for lane in in_turn:
            missing = lane.missing()
            if missing is None:
                return lane
            first = first or missing
        if not bell.acquire(timeout=timeout):
            raise TimeoutError(f"nothing moved for {timeout:g} s: {first} is missing")
