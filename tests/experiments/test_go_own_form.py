"""The page of GO's own form: ratios by hand."""

from __future__ import annotations

from experiments.placement.go_own_form import ARMS, Run, page
from experiments.placement.go_rows import ROWS, SMALL_FIRST


def run(row: str, arm: str, seed: int, curve: list[list[float]], samples: int = 2000) -> Run:
    """The expert takes 10 ms."""
    return Run(row, arm, seed, samples, 10.0, curve[-1][1], 1.0, curve)


def test_ratios_and_pairs_by_hand():
    """Two rows; learned 8 and 2 ms, untrained 8 and 8 ms: geometric means 0.4 and 0.8."""
    one, two = list(ROWS)[:2]
    runs = [
        run(one, "learned", 0, [[1, 20.0], [300, 10.0], [1500, 8.0]]),
        run(two, "learned", 0, [[1, 5.0], [900, 2.0]]),
        run(one, "untrained", 0, [[1, 20.0], [100, 8.0]]),
        run(two, "untrained", 0, [[1, 8.0]]),
        run(two, "untrained", 1, [[1, 1.0]]),
        run(two, "learned", 0, [[1, 1.0]], samples=9000),
    ]
    text = page(runs, 2000)
    assert f"| {one} | 2.000 / 1.000 / 0.800 | 0.800 / 0.800 / 0.800 |" in text
    assert "1.000 / 0.447 / 0.400 (2 rows)" in text
    # Seed 1 of untrained has no partner: 2 over 8 and 8 over 8.
    assert "| untrained | 0.500 | 1 | 1 | 0 |" in text
    assert "## Over the expert, runs of 9,000 samples" in text
    assert "| **geometric mean** | 0.100 / 0.100 / 0.100 (1 rows) |" in text


def test_every_row_and_arm_can_be_run():
    assert set(SMALL_FIRST) == set(ROWS)
    assert {"learned", "untrained", "blind", "annealing"} <= set(ARMS)
    assert ARMS["untrained"](0).name == "nodes"
