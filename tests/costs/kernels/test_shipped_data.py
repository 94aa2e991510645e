"""The measurements and weights that ship: as many as is said, of one target, and read by name."""

import json

import numpy as np

from go_rl.costs.kernels.measure.data import load_kernel_data, plain_seconds
from go_rl.costs.kernels.predictor import KernelPredictor, latest_weights, predict_kernels
from go_rl.costs.tiles.measure.data import load_tile_data


def test_kernels_under_flags_layouts_and_twice():
    data = load_kernel_data("kernels-cpu-1")
    assert (data.name, data.target) == ("kernels-cpu-1", "cpu-1")
    assert np.isfinite(plain_seconds(data)).sum() >= 5000
    assert len(set(data.models)) >= 80
    assert len(data.noise()) >= 500
    told = [json.loads(setting or "{}") for setting in data.settings]
    for name, least in (("flags", 8), ("layouts", 4)):
        rows = np.array([name in setting for setting in told])[data.setting]
        assert (np.bincount(data.kernel[rows]) >= least).sum() >= 200


def test_tilings():
    data = load_tile_data("tiles-cpu-1")
    assert data.target == "cpu-1"
    assert len(data.programs) >= 300
    assert np.median(np.bincount(data.program)) == 20


def test_the_weights_price_what_they_learned_from():
    """Most of some dozens of kernels within a quarter of what was measured."""
    data, weights = load_kernel_data("kernels-cpu-1"), KernelPredictor.load(latest_weights("cpu-1"))
    assert weights.target == data.target
    which = np.flatnonzero(np.isfinite(plain_seconds(data)))[::200]
    found = predict_kernels(weights, data.kernels.take(which))
    assert not found.unfamiliar.any()
    assert np.median(np.abs(found.seconds / plain_seconds(data)[which] - 1)) < 0.25
