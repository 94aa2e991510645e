"""The order in which a device runs its stages: whichever can, at the earliest sample."""

import threading

import numpy as np
import pytest

from go_rl.plans.pipeline.sessions import Session
from go_rl.plans.pipeline.turns import Channel, Lane, run_samples


class _Semaphore:
    """A semaphore of threads with the names that those of processes have."""

    def __init__(self, count):
        self._inner = threading.Semaphore(count)
        self.release = self._inner.release

    def acquire(self, block=True, timeout=None):
        return self._inner.acquire(block, timeout if block else None)


class _Step(Session):
    """Adds one to what it reads, and says that it ran."""

    def __init__(self, name, reads, makes, said, before=None):
        self.inputs, self._name, self._reads, self._makes = {}, name, reads, makes
        self._said, self._before = said, before or (lambda: None)

    def run(self, feeds):
        self._before()
        self._said.append(self._name)
        return {self._makes: feeds[self._reads] + 1}


def _channel(name, bells, slots=2):
    return Channel(name, _Semaphore(slots), _Semaphore(0), *bells)


def _lane(session, receives, sends, given=()):
    slots = {n: [np.zeros(1) for _ in range(2)] for n, _ in (*receives, *sends)}
    return Lane(session, dict(given), receives, sends, slots)


def test_a_device_begins_the_next_sample_while_another_has_the_first():
    """Device 0 has stages 0 and 2, device 1 stage 1, which ends only when device 0 has begun the
    second sample."""
    bells = [_Semaphore(0), _Semaphore(0)]
    there = (0, _channel("a", (bells[0], bells[1])))
    back = (1, _channel("b", (bells[1], bells[0])))
    said: list[str] = []
    begun = threading.Semaphore(0)
    waits = _Step(
        "1", "a", "b", said, lambda: begun.acquire(timeout=10) and begun.acquire(timeout=10)
    )
    first = _lane(_Step("0", "x", "a", said, begun.release), (), (there,), {"x": np.ones(1)})
    last = _lane(_Step("2", "b", "y", said), (back,), ())
    middle = _lane(waits, (there,), (back,))
    middle.slots = {0: first.slots[0], 1: last.slots[1]}
    other = threading.Thread(target=run_samples, args=([middle], bells[1], 0, 1, 10.0))
    other.start()
    with pytest.raises(TimeoutError, match="is missing"):
        run_samples([first, last], bells[0], 0, 4, 0.5)
    other.join()
    assert said[:3] == ["0", "0", "1"]
    assert said.count("2") == 1
