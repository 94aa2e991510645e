"""Stale kernels go, fresh ones stay."""

import os
from pathlib import Path

import pytest
from stale_compiled import drop_stale_compiled


@pytest.fixture
def package(tmp_path) -> Path:
    """A package with one kernel cached at 100 s; sources are older."""
    files = {"core/word.py": 90, "solve/a.py": 90, "cli/b.py": 90}
    caches = {"solve/__pycache__/a.f-1.py311.nbi": 100, "solve/__pycache__/a.f-1.py311.1.nbc": 101}
    for name, seconds in (files | caches).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (seconds, seconds))
    return tmp_path


@pytest.mark.parametrize(
    ("edited", "dropped"), [(None, 0), ("cli/b.py", 0), ("solve/a.py", 2), ("core/word.py", 2)]
)
def test_kernels_go_when_what_they_may_inline_changes(package, edited, dropped):
    if edited:
        os.utime(package / edited, (200, 200))
    assert drop_stale_compiled(package) == dropped
    assert len(list(package.rglob("*.nb?"))) == 2 - dropped
