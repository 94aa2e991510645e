"""Ranking the settings of flags: data, training and weights."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from costs.kernels.ranks import SETTINGS, flag_data, learned, times

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.kernels.ranks import predictor
from go_rl.costs.kernels.ranks.flag_times import CONFIDENT, flag_times
from go_rl.costs.kernels.ranks.predictor import FlagRanks, shipped_ranks
from go_rl.costs.learning.losses import group_loss
from go_rl.runtime.array_file import read_parameters, write_parameters

LOG1P = np.log1p(np.exp(np.array([-2.0, -1.0, 1.0])))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("hinge", ((0.0 + 0.0 + 2.0) / 3 + 0.0) / 2),
        ("logistic", (LOG1P.sum() / 3 + LOG1P[0]) / 2),
        ("mse", (0.0 + 0.0 + 4.0 + 0.0 + 4.0) / 5),
    ],
)
def test_losses_by_hand(loss, expected):
    """In the first group 0 is faster than 1 and scored so by 2, 1 is faster than 2 but scored
    slower by 1; the second has a pair scored right by 2; the third is padding."""
    score = jnp.array([[0.0, 2.0, 1.0], [7.0, 5.0, 9.0], [3.0, 3.0, 3.0]])
    times = jnp.array([[0.0, 2.0, 3.0], [7.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    real = jnp.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert group_loss(loss, score, times, real) == pytest.approx(expected, rel=1e-5)


def test_first_confident_times_of_kernels_under_two_settings_are_learned_from():
    data = flag_data()
    count = data.kernels.num_kernels
    assert times().number.tolist() == list(range(count - 1))  # the last has one time only
    np.testing.assert_array_equal(times().seconds.ravel(), data.seconds[:-1])
    spread, later = data.spread.copy(), data.round.copy()
    spread[1], later[2] = 1.01 * CONFIDENT, 1
    spread[SETTINGS : 2 * SETTINGS - 1] = 1.0
    found = flag_times(replace(data, spread=spread, round=later))
    assert found.number.tolist() == [0, *range(2, count - 1)]
    assert np.flatnonzero(~found.known).tolist() == [1, 2]
    part = found.take(np.array([2, 0]))
    assert part.kernels.hashes == tuple(data.kernels.hashes[k] for k in (3, 0))
    np.testing.assert_array_equal(part.seconds, found.seconds[[2, 0]])
    with pytest.raises(TrainingError, match="made: no kernel was measured under two settings"):
        flag_times(replace(data, setting=np.zeros_like(data.setting)))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("ranks") / "ranks-cpu-1.npz"
    learned().save(found)
    return found


def test_shipped_weights_are_found_by_target(path, monkeypatch):
    monkeypatch.setattr(predictor, "SHIPPED", path.parent)
    found = shipped_ranks("cpu-1")
    assert found is not None
    assert found.name == "ranks-cpu-1"
    assert shipped_ranks("cpu-2") is None


def test_other_files_are_refused(path, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="no rank weights 'ranks-9'"):
        FlagRanks.load("ranks-9")
    manifest, arrays = read_parameters(path)
    for changed, complaint in (
        ({"interface": 1}, "its interface is 1, and this version of go_rl reads 3"),
        ({"network": {"embedding": 3}}, "manifest does not fit this version"),
        ({"network": {**manifest["network"], "head": 4}}, "this version expects"),
    ):
        write_parameters(tmp_path / "bad.npz", _tree(arrays), {**manifest, **changed})
        with pytest.raises(CheckpointError, match=complaint):
            FlagRanks.load(tmp_path / "bad.npz")
    monkeypatch.setattr(predictor, "flag_settings", lambda: ["one"])
    with pytest.raises(CheckpointError, match="its features is "):
        FlagRanks.load(path)


def _tree(arrays):
    from go_rl.runtime.array_file import parameter_tree

    return parameter_tree(arrays)
