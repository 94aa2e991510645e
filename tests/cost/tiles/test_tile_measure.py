"""Timing: how samples are taken and summed up, and what a payload must hold."""

from __future__ import annotations

import pickle
import sys
from math import comb
from typing import Any

import pytest

from go_rl.core import MissingDependencyError
from go_rl.cost.tiles import TileError, TileProgram, Tiles, measure_tiles
from go_rl.cost.tiles.tile_measure import (
    example_arguments,
    interval_rank,
    summarise,
    time_runs,
)
from go_rl.cost.tiles.tile_stages import import_tvm

PROGRAM = TileProgram("matmul", (8, 16, 8), "bias+relu")
PAYLOAD: dict[str, Any] = {
    "program": PROGRAM.to_json(),
    "tiles": Tiles((4, 16, 8), (2, 8, 2), True).setting,
    "least_seconds": 0.001,
    "repeats": 6,
}


class Clock:
    """A kernel that takes given seconds, run after run, and remembers how it was called."""

    def __init__(self, seconds: list[float]) -> None:
        self.seconds, self.asked = seconds, []

    def __call__(self, number: int) -> float:
        self.asked.append(number)
        return self.seconds[min(len(self.asked), len(self.seconds)) - 1]


def test_a_short_kernel_fills_the_time_asked_for():
    """0.1 s over 10 samples of a 1 ms kernel are 10 runs each."""
    clock = Clock([5e-3, 1e-3])
    timing = time_runs(clock, 0.1, 10)
    assert clock.asked == [1, 1] + [10] * 10
    assert timing.seconds == 1e-3
    assert timing.repeats == 10
    assert timing.spread == 0


def test_a_slow_kernel_runs_twice():
    clock = Clock([0.4, 0.6])
    timing = time_runs(clock, 5.0, 20)
    assert clock.asked == [1, 1]
    assert timing.seconds == pytest.approx(0.5)
    assert timing.spread == pytest.approx(0.2)
    assert timing.repeats == 2


def test_a_kernel_longer_than_its_share_runs_once_a_sample():
    clock = Clock([0.2])
    assert time_runs(clock, 0.1, 3).repeats == 3
    assert clock.asked == [1, 1, 1, 1, 1]


@pytest.mark.parametrize(("seconds", "repeats"), [(0.1, 0), (-1.0, 5), (float("nan"), 5)])
def test_senseless_times_are_refused(seconds: float, repeats: int):
    with pytest.raises(TileError, match="repeats must be >= 1 and least_seconds >= 0"):
        time_runs(Clock([1e-3]), seconds, repeats)


@pytest.mark.parametrize(
    ("samples", "rank"), [(1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (20, 5)]
)
def test_ranks_are_those_of_the_tables(samples: int, rank: int):
    """Of the sign test's tables: with 9 samples the second to the eighth, with 20 the sixth to the
    fifteenth."""
    assert interval_rank(samples) == rank


@pytest.mark.parametrize("samples", range(6, 60))
def test_the_interval_is_the_narrowest_that_holds(samples: int):
    def coverage(rank: int) -> float:
        """The chance that more than ``rank`` samples lie on either side of the median."""
        return sum(comb(samples, k) for k in range(rank + 1, samples - rank)) / 2**samples

    rank = interval_rank(samples)
    assert coverage(rank) >= 0.95 > coverage(rank + 1)


def test_the_summary_is_median_and_relative_half_width():
    """Of nine the second to the eighth: (8 - 2) / 2 / 5."""
    timing = summarise([float(i) for i in (9, 1, 8, 2, 7, 3, 6, 4, 5)])
    assert timing.seconds == 5
    assert timing.spread == pytest.approx(0.6)


def test_arguments_are_the_same_each_time():
    first, second = example_arguments(PROGRAM), example_arguments(PROGRAM)
    assert list(first) == ["left", "right", "bias"]
    for name, array in first.items():
        assert array.shape == PROGRAM.input_shapes[name]
        assert array.dtype == "float32"
        assert (array == second[name]).all()
        assert -1 <= array.min() < array.max() < 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"program": "{"}, "a program is not JSON"),
        ({"tiles": "{"}, "tiles are not JSON"),
        ({"tiles": Tiles((4, 16, 8), (3, 8, 2)).setting}, "register tile 3 must divide"),
    ],
)
def test_a_malformed_payload_is_named(change: dict[str, Any], said: str):
    with pytest.raises(TileError, match=said):
        measure_tiles(PAYLOAD | change)


def test_a_payload_that_lacks_something_is_named():
    with pytest.raises(TileError, match="the payload lacks repeats, tiles"):
        measure_tiles({"program": PROGRAM.to_json(), "least_seconds": 0.1})


def test_without_tvm_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[tiles\]'"):
        import_tvm()


@pytest.mark.usefixtures("builder")
def test_a_configuration_is_built_and_timed():
    found = measure_tiles(pickle.loads(pickle.dumps(PAYLOAD)))
    assert set(found) == {"seconds", "spread", "repeats", "build_seconds"}
    assert 0 < found["seconds"] < 1
    assert found["spread"] >= 0
    assert found["repeats"] == 6
    assert found["build_seconds"] > 0
