"""Mean curves, bands and thresholds, against numbers worked out by hand."""

import math

import numpy as np
import pytest
from reference.comparison_runs import run

from go_rl.compare.benchmark.comparison import (
    best_so_far,
    bound_curve,
    change_points,
    reach_value,
    samples_to_reach,
    throughput_curve,
)
from go_rl.compare.benchmark.evaluate import best_bounds
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


def test_the_band_over_three_seeds():
    # Improvements 2, 4, 8: logarithms 1, 2, 3 times log 2; deviation log 2; t(0.975, 2) = 4.3027.
    runs = [run(seed=i, curve=((1, 0.1, 4.0 / 2**i),)) for i in range(3)]
    curve = throughput_curve(runs, np.array([1.0]))
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert curve.mean[0] == pytest.approx(4.0)
    assert curve.low[0] == pytest.approx(4.0 / math.exp(half), rel=1e-6)
    assert curve.high[0] == pytest.approx(4.0 * math.exp(half), rel=1e-6)


def test_graphs_without_a_heuristic_are_left_out():
    curve = throughput_curve([run(curve=FALLING), run(graph="b", heuristic=None)], GRID)
    assert curve.graphs == 1
    assert curve.mean[-1] == pytest.approx(4.0)
    nothing = throughput_curve([run(heuristic=None)], GRID)
    assert nothing.graphs == 0
    assert np.isnan(nothing.mean).all()


def test_seeds_on_different_graphs_are_refused():
    with pytest.raises(TrainingError, match="every seed on the same graphs"):
        throughput_curve([run(), run(seed=1), run(graph="b", seed=1)], GRID)


def test_over_the_bound():
    runs = [run(curve=FALLING), run(graph="b", curve=((1, 0.1, 4.0),))]
    bounds = {runs[0].problem: 2.0, runs[1].problem: 1.0}
    np.testing.assert_allclose(bound_curve(runs, bounds, np.array([2.0, 20.0])).mean, [4.0, 2.0])
    bounds[runs[1].problem] = 0.0
    alone = bound_curve(runs, bounds, np.array([20.0]))
    assert (alone.graphs, alone.mean[0]) == (1, pytest.approx(1.0))


def test_samples_to_reach_thresholds_on_the_exact_grid():
    runs = [run(curve=FALLING), run(graph="b", curve=((7, 0.1, 8.0),))]
    points = change_points(runs)
    np.testing.assert_array_equal(points, [2, 5, 7, 20])
    curve = throughput_curve(runs, points)
    # From 7 samples on both graphs have a plan: sqrt(2 * 1); from 20: sqrt(4 * 1).
    assert samples_to_reach(curve, (1.0, 1.41, 1.42, 2.0, 2.01)) == (7.0, 7.0, 20.0, 20.0, None)


def test_when_a_run_is_as_good_as_another():
    assert reach_value(run(curve=FALLING), 4.0) == 5.0
    assert reach_value(run(curve=FALLING), 3.9, "seconds") == 3.0
    assert reach_value(run(curve=FALLING), 1.9) is None


def test_the_best_bound_of_each_problem_is_not_above_its_best_plan():
    proofs = [run(bound=3.0), run("n", bound=9.0), run(graph="b", bound=0.5)]
    assert list(best_bounds(proofs).values()) == [8.0, 0.5]


def test_a_run_survives_json():
    original = run(curve=FALLING, cold_seconds=1.5)
    assert Run.from_json(original.to_json()) == original
    assert original.gap == pytest.approx(1.0)
    assert run(curve=()).gap is None
