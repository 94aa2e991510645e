"""Parts of inner tuners, by hand: chains, diversity, clusters, policies."""

import numpy as np
import pytest

from go_rl.tuning.tuners.simulated_annealing import accepted


def test_moves_that_are_better_are_made_and_others_by_their_heat():
    rng = np.random.default_rng(0)
    old, new = np.zeros(4000), np.repeat([-1.0, 0.0, 1.0, 2.0], 1000)
    share = accepted(old, new, 1.0, rng).reshape(4, 1000).mean(axis=1)
    assert share[:2].tolist() == [1.0, 1.0]
    assert share[2:] == pytest.approx(np.exp([-1.0, -2.0]), abs=0.04)
    assert accepted(np.zeros(3), np.array([-1.0, 0.0, 1e-9]), 0.0, rng).tolist() == [1, 1, 0]
