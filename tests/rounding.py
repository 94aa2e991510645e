"""Equality of float32 results that may differ by the order in which they were rounded."""

from typing import Any

import numpy as np

UNIT = 2.0**-24
"""Largest relative error of one rounding to float32."""


def assert_rounded_alike(found: Any, expected: Any, roundings: int = 1000) -> None:
    """Assert that the arrays agree up to ``roundings`` errors, each of a number as large as the
    largest expected, and at least 1: as far as intermediate results go.

    Processors fuse and order sums differently, and so do programs of other shapes. A tolerance
    relative to each number alone fails where large numbers cancel, an absolute one where all are
    large.
    """
    wanted = np.asarray(expected, np.float64)
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0))
    np.testing.assert_allclose(
        np.asarray(found, np.float64), wanted, rtol=0, atol=roundings * UNIT * largest
    )
