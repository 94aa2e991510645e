"""What sizes tell of convolutions beyond products: found again, bounded, GPUs left out."""

import numpy as np

from go_rl.costs.operators.conv_residuals import (
    LARGEST,
    SIZES,
    TERMS,
    fit_residuals,
    residuals,
    terms,
)
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES as ALL_SIZES


def _rows(count: int) -> OperatorRows:
    rng = np.random.default_rng(0)
    sizes = {name: np.exp2(rng.integers(2, 9, count)).astype(np.int64) for name in ALL_SIZES}
    sizes |= {"kernel_size": rng.choice((1, 3, 5, 7), count), "stride": rng.choice((1, 2), count)}
    return OperatorRows(np.full(count, "conv"), sizes)


def test_terms_by_hand():
    """32 images of 32 × 32, channels 64 to 128, 3 × 3: all at the centre but the filters."""
    one = _rows(1)
    for name, size in zip(SIZES, (32, 32, 64, 128, 3, 1), strict=True):
        one.sizes[name][0] = size
    found = terms(one)[0]
    assert len(found) == TERMS == 28
    assert found.tolist() == [1, 0, 0, 0, 0.5, 0, 0, *[0] * 15, 0.25, *[0] * 5]


def test_each_row_may_have_coefficients_of_its_own():
    rows, each = _rows(2), np.zeros((2, TERMS))
    each[1, 0] = 0.3
    assert residuals(each, rows).tolist() == [0.0, 0.3]


def test_a_quadratic_rest_is_found_again_without_the_gpu_left_out():
    rows = _rows(600)
    truth = np.zeros(TERMS)
    truth[[0, 1, 7]] = 0.1, -0.1, 0.05
    rest, weight = terms(rows) @ truth, np.ones(600)
    rest[:200], weight[:200] = 5.0, 0.0
    found = fit_residuals(rows, rest, weight)
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_a_correction_is_bounded():
    far = np.zeros(TERMS)
    far[0] = 3.0
    assert residuals(far, _rows(3)).tolist() == [LARGEST] * 3
    assert residuals(-far, _rows(3)).tolist() == [-LARGEST] * 3
