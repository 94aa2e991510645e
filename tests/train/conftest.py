"""Fixtures of the tests of training."""

from __future__ import annotations

import pytest

from go_rl.core import Progress


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches go on at a proved optimum: what the policy learns is tested, not what it finds."""
    monkeypatch.setattr(Progress, "proved", property(lambda progress: False))
