"""What sizes tell of convolutions beyond products: found again, bounded, GPUs left out."""

import numpy as np

from go_rl.costs.operators.conv_residuals import LARGEST, TERMS, fit_residuals, residuals, terms
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import SIZES


def _rows(count: int) -> OperatorRows:
    rng = np.random.default_rng(0)
    sizes = {name: np.exp2(rng.integers(2, 9, count)).astype(np.int64) for name in SIZES}
    return OperatorRows(np.full(count, "conv"), sizes)


def test_terms_by_hand():
    """32 images of 32 × 32, channels 64 to 128: all at the centre but the last."""
    one = _rows(1)
    for name, size in zip(("batch", "input_size", "input_channel", "output_channel"),
                          (32, 32, 64, 128), strict=True):  # fmt: skip
        one.sizes[name][0] = size
    found = terms(one)[0]
    assert len(found) == TERMS == 15
    assert found.tolist() == [1, 0, 0, 0, 0.5, *[0] * 9, 0.25]


def test_a_quadratic_rest_is_found_again_without_the_gpu_left_out():
    rows = _rows(600)
    truth = np.zeros(TERMS)
    truth[[0, 1, 6]] = 0.1, -0.1, 0.05
    rest, weight = terms(rows) @ truth, np.ones(600)
    rest[:200], weight[:200] = 5.0, 0.0
    found = fit_residuals(rows, rest, weight)
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_a_correction_is_bounded():
    far = np.zeros(TERMS)
    far[0] = 3.0
    assert residuals(far, _rows(3)).tolist() == [LARGEST] * 3
    assert residuals(-far, _rows(3)).tolist() == [-LARGEST] * 3
