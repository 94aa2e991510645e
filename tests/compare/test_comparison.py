"""Mean curves, bands and thresholds, against numbers worked out by hand."""

import math

import numpy as np
import pytest
from reference.comparison_runs import run

from go_rl.compare.benchmark.comparison import (
    best_so_far,
    throughput_curve,
)
from go_rl.compare.benchmark.run_store import Run
from go_rl.core import TrainingError

FALLING = ((2, 0.5, 8.0), (5, 1.0, 4.0), (20, 3.0, 2.0))
GRID = np.array([1.0, 2.0, 4.0, 5.0, 20.0, 100.0])


def test_best_so_far_is_a_staircase_over_samples_and_seconds():
    by_samples = best_so_far(run(curve=FALLING), GRID)
    np.testing.assert_array_equal(by_samples, [np.nan, 8, 8, 4, 2, 2])
    by_seconds = best_so_far(run(curve=FALLING), np.array([0.4, 0.5, 2.9, 3.0]), "seconds")
    np.testing.assert_array_equal(by_seconds, [np.nan, 8, 4, 2])


def test_a_failed_run_stands_for_the_heuristic():
    np.testing.assert_array_equal(best_so_far(run(curve=()), GRID), [8.0] * 6)
    assert np.isnan(best_so_far(run(curve=(), heuristic=None), GRID)).all()


def test_the_mean_over_graphs_is_geometric():
    # Improvements 8/8, 8/4, 8/2 on graph a; 8/8 throughout on graph b: square roots.
    curve = throughput_curve([run(curve=FALLING), run(graph="b")], GRID)
    expected = [math.nan, 1.0, 1.0, math.sqrt(2), 2.0, 2.0]
    np.testing.assert_allclose(curve.mean, expected)
    assert (curve.graphs, curve.seeds) == (2, 1)
    assert np.isnan(curve.low).all()
    assert np.isnan(curve.high).all()


def test_seeds_on_different_graphs_are_refused():
    with pytest.raises(TrainingError, match="every seed on the same graphs"):
        throughput_curve([run(), run(seed=1), run(graph="b", seed=1)], GRID)


def test_a_run_survives_json():
    original = run(curve=FALLING, cold_seconds=1.5)
    assert Run.from_json(original.to_json()) == original
    assert original.gap == pytest.approx(1.0)
    assert run(curve=()).gap is None
