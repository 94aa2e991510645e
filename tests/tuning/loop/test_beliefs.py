"""Beliefs: planted curves are recovered, priors hold, recorded curves are learned from."""

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.curve_belief import CurveBelief
from go_rl.tuning.loop.belief.curve_families import FAMILIES

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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"family": "log-pwer"}, "unknown curve family 'log-pwer'; did you mean 'log-power'"),
        ({"walkers": 7}, "walkers >= 8"),
        ({"burn_in": 500}, "burn_in must be below steps"),
    ],
)
def test_beliefs_out_of_range_are_refused(given, said):
    with pytest.raises(TuningError, match=said):
        CurveBelief(**given)
