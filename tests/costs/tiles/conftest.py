"""Shared by the tests of tiled programs."""

import pytest

from go_rl.core import ExecutionError
from go_rl.costs.tiles.schedule import check_processor


@pytest.fixture
def builder() -> None:
    """Skip where kernels cannot be built and run."""
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    try:
        check_processor()
    except ExecutionError as error:
        pytest.skip(str(error))
