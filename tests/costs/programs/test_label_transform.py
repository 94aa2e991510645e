"""Transforms of seconds into labels, and back."""

import json

import numpy as np
import pytest
from scipy.stats import boxcox

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.label_transform import KINDS, LabelTransform

SECONDS = np.exp(np.random.default_rng(0).normal(-9, 2, 500))


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind):
    fitted = LabelTransform.fit(kind, SECONDS)
    # Normal scores of `quantile` stop short of the last ranks.
    inner = SECONDS if kind != "quantile" else np.sort(SECONDS)[5:-5]
    assert fitted.seconds(fitted.labels(inner)) == pytest.approx(inner, rel=1e-5)
    assert (np.diff(fitted.labels(np.sort(SECONDS))) >= 0).all()


def test_power_is_the_likeliest():
    _, power = boxcox(SECONDS)
    assert LabelTransform.fit("box-cox", SECONDS).power == pytest.approx(power, abs=1e-3)


def test_log_by_hand():
    fitted = LabelTransform.fit("log", np.array([2.0, 8.0]))
    assert fitted.labels(np.array([2.0, 8.0])) == pytest.approx([np.log(2), np.log(8)])


@pytest.mark.parametrize("kind", KINDS)
def test_json_round_trip(kind):
    fitted = LabelTransform.fit(kind, SECONDS)
    again = LabelTransform.from_json(json.loads(json.dumps(fitted.to_json())))
    assert np.array_equal(again.labels(SECONDS), fitted.labels(SECONDS))


def test_bad_input():
    with pytest.raises(TrainingError, match="no label transform 'boxcox'"):
        LabelTransform.fit("boxcox", SECONDS)
    with pytest.raises(TrainingError, match="at least two different times"):
        LabelTransform.fit("log", np.array([1.0, 1.0]))
