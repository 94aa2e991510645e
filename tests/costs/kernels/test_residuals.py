"""What measured kernels say of a prediction's error on others."""

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.kernels import residuals
from go_rl.costs.kernels.residuals import FEWEST, ResidualExamples, Residuals


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_prediction_that_is_off_by_a_factor_is_put_right_everywhere():
    features = rng().normal(size=(20, 3))
    found = Residuals.fit(ResidualExamples(features, np.full(20, np.log(2.0))))
    far = 100.0 + rng().normal(size=(5, 3))
    np.testing.assert_allclose(found.predict(np.concatenate([features, far])), np.log(2.0))


def test_what_depends_on_features_is_learned_and_the_rest_is_noise():
    """Residuals follow the first of two features; 0.05 of chance is added."""
    features = rng().normal(size=(200, 2))
    truth = np.sin(features[:, 0])
    noisy = truth + 0.05 * rng().normal(size=200)
    found = Residuals.fit(ResidualExamples(features[:150], noisy[:150]))
    off = found.predict(features[150:]) - truth[150:]
    assert np.sqrt(np.mean(off**2)) < 0.05
    assert found.noise <= 0.1


def test_pure_chance_is_not_believed():
    features, chance = rng().normal(size=(100, 4)), 0.2 * rng().normal(size=100)
    found = Residuals.fit(ResidualExamples(features, chance))
    assert np.abs(found.predict(rng().normal(size=(100, 4))) - found.constant).mean() < 0.1


def test_a_feature_that_never_changes_is_none():
    features = np.stack([np.linspace(0.0, 1.0, 10), np.full(10, 7.0)], axis=1)
    found = Residuals.fit(ResidualExamples(features, np.linspace(0.0, 1.0, 10)))
    other = features.copy()
    other[:, 1] = 8.0
    np.testing.assert_array_equal(found.predict(other), found.predict(features))


def test_few_are_refused():
    with pytest.raises(TrainingError, match="learned from 8 kernels or more, not 7"):
        Residuals.fit(ResidualExamples(rng().normal(size=(7, 2)), rng().normal(size=7)))


@pytest.mark.parametrize(("count", "kept"), [(FEWEST, FEWEST), (55, 50)])
def test_of_very_many_the_last_ones_count(monkeypatch, count, kept):
    monkeypatch.setattr(residuals, "MOST", 50)
    found = Residuals.fit(ResidualExamples(rng().normal(size=(count, 2)), rng().normal(size=count)))
    assert len(found.known) == kept
