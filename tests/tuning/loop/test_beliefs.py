"""Beliefs: planted curves are recovered, priors hold, recorded curves are learned from."""

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.curve_belief import (
    CurveBelief,
    Posterior,
    last_segment,
    segment_starts,
)
from go_rl.tuning.loop.belief.curve_families import FAMILIES
from go_rl.tuning.loop.belief.curve_library import CurveLibrary
from go_rl.tuning.loop.belief.transfer_belief import TransferBelief, context, kernel_weights

PEAK = 1e11


def log_power(x, a, b, c):
    return a / (1 + (np.asarray(x, float) / np.exp(b)) ** -c)


@pytest.mark.parametrize(
    ("name", "theta", "value"),
    [
        ("log-power", (0.6, 2.0, 0.8), 0.6 / (1 + np.exp(0.8 * (2 - np.log(20))))),
        ("pow2", (0.1, 0.3), 0.1 * 20**0.3),
        ("pow4", (0.5, 1.0, 0.9, 0.7), 0.9 - 11**-0.7),
        ("log-linear", (0.02, 0.1), 0.02 * np.log(20) + 0.1),
        ("log-log-linear", (0.02, 1.1), np.log(0.02 * np.log(20) + 1.1)),
    ],
)
def test_families_are_what_their_names_say_and_never_fall(name, theta, value):
    family = FAMILIES[name]
    assert family(np.array([theta]), np.array([20.0]))[0, 0] == pytest.approx(value)
    rng = np.random.default_rng(0)
    lower, upper = np.array(family.lower), np.array(family.upper)
    drawn = rng.uniform(lower, upper, (200, len(lower)))
    assert (np.diff(family(drawn, np.arange(1.0, 50.0)), axis=1) >= -1e-12).all()


@pytest.mark.slow
def test_a_planted_log_power_curve_is_recovered():
    curve = log_power(range(1, 101), 0.6, 2.0, 0.8) * PEAK
    truth = log_power(150, 0.6, 2.0, 0.8) * PEAK
    found = CurveBelief().predict(curve.tolist(), 50, PEAK, (0, 0))
    assert found.mean == pytest.approx(truth, rel=0.01)
    assert found.improvement == pytest.approx(truth - curve[-1], rel=0.3)
    assert 0 < found.deviation < 0.02 * truth
    assert 0.2 < found.acceptance < 0.8
    assert found == CurveBelief().predict(curve.tolist(), 50, PEAK, (0, 0))


def test_segments_begin_where_the_best_rises_by_more_than_a_fifth():
    curve = [0.0, 0.0, 1.0, 1.1, 1.32, 1.4, 1.7, 1.7]
    assert segment_starts(curve) == [2, 6]  # 1.32 is exactly 20 % above 1.1; 1.7 is 21 % above
    start, values = last_segment(curve)
    assert (start, values.tolist()) == (6, [1.7, 1.7])
    assert segment_starts([0.0, 0.0]) == []


def test_the_posterior_by_hand():
    values = np.array([0.2, 0.2])
    posterior = Posterior(FAMILIES["log-linear"], values, 0, 8)
    noise = np.log(0.1)
    theta = np.array([[0.02, 0.2, noise], [-0.01, 0.2, noise], [0.0, 0.19, noise]])
    errors = np.array([0.0, 0.02 * np.log(2)]) / 0.2
    density = -(0.5 * (errors**2).sum() / 0.01 + 2 * noise)
    found = posterior.log_probability(theta)
    assert found[0] == pytest.approx(density)
    assert found[1] == -np.inf  # outside the bounds
    assert found[2] == -np.inf  # ends below the best known


def library():
    """Curves of network a double after 50 trials, those of b stay flat."""
    rising = np.where(np.arange(120) < 50, 0.2, 0.4).astype(np.float32)
    flat = np.full(120, 0.2, np.float32)
    return CurveLibrary((rising,) * 4 + (flat,) * 4, ("a",) * 4 + ("b",) * 4)


def test_recorded_curves_tell_what_will_be():
    curve = [0.2 * PEAK] * 40
    risen = TransferBelief(library().without("b")).predict(curve, 20, PEAK, (0, 0))
    flat = TransferBelief(library().without("a")).predict(curve, 20, PEAK, (0, 0))
    both = TransferBelief(library()).predict(curve, 20, PEAK, (0, 0))
    assert flat.improvement == pytest.approx(0.0)
    assert flat.improvement < both.improvement < risen.improvement
    assert risen.improvement > 0.5 * 0.2 * PEAK
    assert flat.deviation == pytest.approx(0.0, abs=1.0)


def test_contexts_and_weights_by_hand():
    found = context(np.array([0.1, 0.2, 0.2, 0.4, 0.4]))
    assert found == pytest.approx([np.log(5), np.log(2), 0.2, np.log(0.4)])
    weights = kernel_weights(np.array([0.0, 0.0, 1e9]))
    assert weights == pytest.approx([0.5, 0.5, 0.0])


def test_curves_that_teach_nothing_are_refused():
    with pytest.raises(TuningError, match="no curves of network 'c'"):
        library().without("c")
    with pytest.raises(TuningError, match="non-decreasing"):
        CurveLibrary((np.array([0.2, 0.1], np.float32),), ("a",))
    with pytest.raises(TuningError, match="longer than"):
        TransferBelief(CurveLibrary((np.array([0.2], np.float32),), ("a",)))
