"""Offsets for a ring plan: as high as the peak at least, and honest about what does not fit."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from objectives.ring.test_ring import problem_with, random_devices, richer, sets_of
from reference.ring import lifetimes, price, tensors

from go_rl.core import Problem, Status
from go_rl.objectives.ring.simulate.memory import confirm_memory
from go_rl.objectives.ring.simulate.pricing import RingPricer


def confirmed(problem: Problem, *device: int):
    home, present = RingPricer(problem).place(np.array(device, np.int16))
    return confirm_memory(problem, home, present)


def test_too_little_is_proved():
    chain = [(0, 1, 10.0), (1, 2, 6.0)]
    for room, status in ((16.0, Status.OK), (15.0, Status.OUT_OF_MEMORY)):
        assert confirmed(problem_with(3, chain, 1, memory_bytes=room), 0, 0, 0)[0] is status


def test_weights_alone_may_be_too_much():
    status, used = confirmed(problem_with(2, [], 2, weights=[101.0, 3.0]), 0, 1)
    assert status is Status.OUT_OF_MEMORY
    assert used.tolist() == [101.0, 3.0]


@pytest.mark.parametrize("chunk", range(1))
def test_heights_cover_the_peak_and_stay_within_the_chip(chunk):
    seen: Counter[Status] = Counter()
    for seed in range(100 * chunk, 100 * chunk + 100):
        problem = replace(richer(seed), memory=True)
        pricer = RingPricer(problem)
        device = random_devices(seed, problem, 2)[1]
        home, present = pricer.place(device)
        evaluation = pricer.evaluate(device)
        if evaluation.status is Status.ILLEGAL:
            continue
        status, used = confirm_memory(problem, home, present)
        seen[status] += 1
        if evaluation.status is Status.OUT_OF_MEMORY:
            assert status is Status.OUT_OF_MEMORY
        if status.ok:
            room = [chip.memory_bytes for chip in problem.hardware.devices]
            assert (used >= evaluation.peak_bytes).all()
            assert (used <= room).all()
            assert (used <= most_bytes(problem, home, present)).all()
    assert min(seen[Status.OK], seen[Status.OUT_OF_MEMORY]) > 10


def most_bytes(problem: Problem, home: np.ndarray, present: np.ndarray) -> list[float]:
    """Everything side by side: no allocation needs more."""
    sets, found = sets_of(present), tensors(problem)
    twin = price(problem, home.tolist(), sets)
    return [
        held + sum(size for _, _, size in lifetimes(problem, found, home.tolist(), sets, chip))
        for chip, held in enumerate(twin.weights)
    ]
