"""The measurements and weights that ship: as many as is said, of one target, and read by name."""

import numpy as np

from go_rl.costs.kernels.measure.data import load_kernel_data, plain_seconds
from go_rl.costs.kernels.predictor import KernelPredictor, latest_weights, predict_kernels


def test_the_weights_price_what_they_learned_from():
    """Most of some dozens of kernels within a quarter of what was measured."""
    data, weights = load_kernel_data("kernels-cpu-1"), KernelPredictor.load(latest_weights("cpu-1"))
    assert weights.target == data.target
    which = np.flatnonzero(np.isfinite(plain_seconds(data)))[::200]
    found = predict_kernels(weights, data.kernels.take(which))
    assert not found.unfamiliar.any()
    assert np.median(np.abs(found.seconds / plain_seconds(data)[which] - 1)) < 0.25
