"""A host that issues kernels ahead of the GPU: times by hand."""

import numpy as np
import pytest

from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS, ReplayError, issued_ahead


def _run(host, start, busy):
    count = len(host)
    chain = tuple((n - 1,) if n else () for n in range(count))
    return issued_ahead(*(np.array(each, np.float64) for each in (host, start, busy)), chain)


def test_long_kernels_hide_the_host():
    """Three kernels of 100: the host is ahead after its first start of 2."""
    found = _run([5, 5, 5], [2, 2, 2], [100, 100, 100])
    assert found.seconds == pytest.approx(2 + 300, abs=1e-5)


def test_short_kernels_wait_for_the_host():
    """Kernels of 1 are issued at 2, 7 and 12; the host is done at 15, after the last kernel."""
    found = _run([5, 5, 5], [2, 2, 2], [1, 1, 1])
    assert found.end[2::3].tolist() == pytest.approx([3, 8, 13], abs=1e-5)
    assert found.seconds == 15


def test_one_launch_takes_the_longer_of_host_and_gpu():
    assert _run([5], [2], [10]).seconds == pytest.approx(12 + BETWEEN_KERNELS)
    assert _run([5], [2], [1]).seconds == 5


def test_a_launch_that_waits_for_a_later_one():
    one = np.ones(2)
    with pytest.raises(ReplayError, match="issued later"):
        issued_ahead(one, one, one, ((1,), ()))
