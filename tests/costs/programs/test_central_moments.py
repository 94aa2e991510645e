"""Central moment discrepancy by hand."""

import jax.numpy as jnp
import pytest

from go_rl.costs.programs.learn.central_moments import central_moment_discrepancy


def test_by_hand():
    """Means 0 and 1/2; second central moments 1 and 1/4; width 2."""
    one = jnp.array([[1.0], [-1.0]])
    other = jnp.array([[1.0], [0.0]])
    expected = 0.5 / 2 + (1 - 0.25) / 4
    assert float(central_moment_discrepancy(one, other, 2)) == pytest.approx(expected, abs=1e-4)


def test_zero_of_equal_samples():
    sample = jnp.array([[0.3, -0.2], [0.1, 0.9]])
    assert float(central_moment_discrepancy(sample, sample[::-1])) == pytest.approx(0, abs=1e-5)
