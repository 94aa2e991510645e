"""Shared by the solver's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture
def unchecked_types() -> Iterator[None]:
    """Switch type checks off for tests over thousands of problems: they cost more than the work."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
