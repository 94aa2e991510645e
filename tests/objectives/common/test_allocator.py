"""The offset allocator: brute force, plain twins, invariants, and MiniMalloc's instances."""

import csv
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import allocator as reference

from go_rl.core import GoRLError, Status
from go_rl.objectives.common.allocator.allocate import (
    AllocationError,
    Buffers,
    allocate,
    check_allocation,
)
from go_rl.objectives.common.allocator.cp_sat import solve_with_cp_sat
from go_rl.objectives.common.allocator.first_fit import first_fit
from go_rl.objectives.common.allocator.restarts import RestartedSearch
from go_rl.objectives.common.allocator.search import EXHAUSTED, SOLVED, run_search, start_search
from go_rl.objectives.common.allocator.sections import sections_of

DATA = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[3] / "../shared/data"))

GAP = [(0, 2, 3), (1, 4, 3), (2, 4, 2), (1, 3, 2), (3, 5, 3), (0, 1, 5), (2, 3, 1), (4, 5, 5)]
"""At most 8 bytes live at any step, yet no allocation in fewer than 9."""


def buffers_of(triples) -> Buffers:
    """Turn (lower, upper, size) triples into `Buffers`."""
    return Buffers(*np.array(triples, np.int64).reshape(-1, 3).T.copy())


NINE_GAP = [(4, 6, 2), (2, 5, 2), (2, 4, 1), (1, 3, 3), (3, 5, 2)]
TEN_GAP = [(3, 6, 4), (3, 5, 2), (0, 2, 4), (4, 6, 2), (2, 4, 1), (1, 3, 3), (1, 4, 1)]
"""Like `GAP`, once `topped_up`."""


def topped_up(triples: list[reference.Triple]) -> list[reference.Triple]:
    """Add one-step buffers so that every step has the same live bytes: no room for holes."""
    steps = range(max(t[1] for t in triples))
    live = [sum(size for low, up, size in triples if low <= t < up) for t in steps]
    return triples + [(t, t + 1, max(live) - live[t]) for t in steps if live[t] < max(live)]


def tight(rng: np.random.Generator, most: int = 8) -> list[reference.Triple]:
    """At most so many random buffers, topped up, some of them alike, in random order."""
    while True:
        steps, count = int(rng.integers(3, 6)), int(rng.integers(3, 6))
        lower = rng.integers(0, steps - 1, count)
        upper = np.minimum(lower + rng.integers(1, 4, count), steps)
        rows = np.stack([lower, upper, rng.integers(1, 5, count)], axis=1).tolist()
        rows += rows[:1] * int(rng.integers(3))
        triples = topped_up([(low, up, size) for low, up, size in rows])
        if len(triples) <= most:
            return [triples[i] for i in rng.permutation(len(triples))]


def near_gap(rng: np.random.Generator) -> list[reference.Triple]:
    """A case with a gap, in either direction of time, disturbed by up to two more buffers."""
    triples = [GAP, NINE_GAP, TEN_GAP][rng.integers(3)]
    if rng.random() < 0.5:
        triples = [(6 - up, 6 - low, size) for low, up, size in triples]
    lower = rng.integers(0, 5, rng.integers(3)).tolist()
    extra = [(low, low + int(rng.integers(1, 3)), int(rng.integers(1, 4))) for low in lower]
    return topped_up(triples + extra)


def test_a_hand_computed_case_is_placed():
    # Two buffers of 2 live together twice in turn, below or above one of 3 that lives throughout.
    buffers = buffers_of([(0, 2, 2), (2, 4, 2), (0, 4, 3), (1, 3, 1)])
    plan = allocate(buffers, 6)
    assert (plan.status, plan.lower_bound) == (Status.OK, 6)
    check_allocation(buffers, plan.offsets, 6)
    assert plan.height == int((plan.offsets + buffers.size).max()) == 6


def test_a_gap_above_the_live_bytes_is_proved_and_one_byte_more_suffices():
    assert reference.least_height(GAP) == 9
    proof = allocate(buffers_of(GAP), 8)
    assert (proof.status, proof.method, proof.lower_bound) == (Status.OUT_OF_MEMORY, "search", 8)
    plan = allocate(buffers_of(GAP), 9)
    assert (plan.status, plan.height) == (Status.OK, 9)
    check_allocation(buffers_of(GAP), plan.offsets, 9)


def test_first_fit_agrees_with_its_twin():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower = rng.integers(0, 12, 14)
        b = Buffers(lower, lower + rng.integers(1, 9, 14), rng.integers(1, 20, 14))
        order = rng.permutation(14)
        triples = list(zip(b.lower.tolist(), b.upper.tolist(), b.size.tolist(), strict=True))
        expected = reference.first_fit(triples, order.tolist())
        assert first_fit(b.lower, b.upper, b.size, order).tolist() == expected


def test_the_search_finds_the_least_height_and_proves_one_byte_less_impossible():
    rng, gaps = np.random.default_rng(3), 0
    cases = [GAP, topped_up(NINE_GAP)] + [tight(rng) for _ in range(60)]
    for triples in cases:
        least, buffers = reference.least_height(triples), buffers_of(triples)
        sections = sections_of(buffers)
        gaps += least > sections.live_bytes.max()
        order = rng.permutation(len(buffers))
        arrays = (sections.first[order], sections.last[order], buffers.size[order])
        search = start_search(*arrays)
        assert run_search(search, least, 10**6) == SOLVED
        offsets = np.empty(len(buffers), np.int64)
        offsets[order] = search.floor
        check_allocation(buffers, offsets, least)
        assert run_search(start_search(*arrays), least - 1, 10**6) == EXHAUSTED
    assert gaps >= 2


def test_the_search_decides_as_cp_sat_does_where_brute_force_is_too_slow():
    rng, decided = np.random.default_rng(5), []
    for case in range(40):
        triples = near_gap(rng) if case % 2 else tight(rng, 9) + tight(rng, 9) + tight(rng, 9)
        buffers = buffers_of(triples)
        capacity = int(sections_of(buffers).live_bytes.max())
        status, offsets = RestartedSearch(buffers, capacity).run(time.monotonic() + 60)
        truth, _ = solve_with_cp_sat(buffers, capacity, 60.0, workers=1)
        assert status is truth
        decided.append(status)
        if offsets is not None:
            check_allocation(buffers, offsets, capacity)
    assert set(decided) == {Status.OK, Status.OUT_OF_MEMORY}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9), st.integers(1, 30)), min_size=1),
    st.floats(1.0, 1.5),
)
def test_an_allocation_is_legal_and_no_lower_than_the_live_bytes(triples, slack):
    triples = [(low, low + length, size) for low, length, size in triples]
    peak = max(sum(triples[i][2] for i in live) for live in reference.live_sets(triples))
    buffers, capacity = buffers_of(triples), int(peak * slack)
    plan = allocate(buffers, capacity, seconds=5.0)
    assert plan.lower_bound == peak
    if plan.status.ok:
        check_allocation(buffers, plan.offsets, capacity)
        assert peak <= plan.height <= capacity
    assert allocate(buffers, sum(t[2] for t in triples)).status.ok
    assert allocate(buffers, peak - 1).status is Status.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("offsets", "capacity", "message"),
    [
        ([0, 2, 0], 9, r"buffers 0 and 1 overlap: both are live from step 1 and .* from 2 to 3"),
        ([0, 3, -1], 9, r"buffer 2 occupies bytes -1 to 4, outside 0 to 9"),
        ([0, 3, 0], 6, r"buffer 1 occupies bytes 3 to 7, outside 0 to 6"),
        ([0, 3], 9, r"2 offsets were given for 3 buffers"),
    ],
)
def test_the_checker_names_what_is_wrong(offsets, capacity, message):
    buffers = buffers_of([(0, 2, 3), (1, 3, 4), (3, 4, 5)])
    check_allocation(buffers, np.array([0, 3, 0]), 7)
    with pytest.raises(AllocationError, match=message):
        check_allocation(buffers, np.array(offsets, np.int64), capacity)


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([(0, 1, 1), (0, 1, 0)], r"size\[1\] is 0; a buffer needs at least 1 byte"),
        ([(0, 1, -5)], r"size\[0\] is -5"),
        ([(0, 1, 1), (2, 2, 1)], r"upper\[1\] is 2, which must be above lower\[1\] = 2"),
        ([(3, 1, 1)], r"upper\[0\] is 1, which must be above lower\[0\] = 3"),
        ([(0, 1, 2**61), (0, 1, 2**61)], r"add up to 2\*\*62 bytes or more"),
    ],
)
def test_bad_buffers_are_named(triples, message):
    with pytest.raises(AllocationError, match=message):
        buffers_of(triples)


def test_bad_arguments_are_named():
    one = np.ones(1, np.int64)
    with pytest.raises(GoRLError, match="one entry a buffer each, but have 2, 1 and 1"):
        # Without the annotation's check, as in production.
        Buffers.__post_init__(_Unchecked(np.zeros(2, np.int64), one, one))
    with pytest.raises(AllocationError, match="capacity is -1 bytes"):
        allocate(buffers_of([(0, 1, 1)]), -1)
    with pytest.raises(AllocationError, match="seconds is 0"):
        allocate(buffers_of([(0, 1, 1)]), 1, seconds=0.0)


class _Unchecked:
    """The fields of `Buffers` without its checks of shape."""

    def __init__(self, lower, upper, size):
        self.lower, self.upper, self.size = lower, upper, size


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in "ABE" else ()) for n in "ABCDE"]
)
def test_minimalloc_instances_are_solved(name):
    path = DATA / "minimalloc" / f"{name}.1048576.csv"
    if not path.exists():
        pytest.skip("MiniMalloc's instances are not here; set GO_RL_DATA to the folder with them")
    with path.open() as file:
        rows = [[int(row[k]) for k in ("lower", "upper", "size")] for row in csv.DictReader(file)]
    plan = allocate(buffers_of(rows), 1048576, seconds=120.0)
    assert plan.status is Status.OK
    check_allocation(buffers_of(rows), plan.offsets, 1048576)
