"""Shared by all tests. Its presence puts this folder on the import path: tests import their twins
as ``reference.<module>``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numba
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "go_rl"


def unchecked(njit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``numba.njit`` for functions that the type checker has wrapped: Numba can compile only
    what is inside, and then finds the caches that users' runs left, too."""

    def compile_inside(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda inner: njit(**options)(inspect.unwrap(inner))
        return njit(**options)(inspect.unwrap(function))

    return compile_inside


numba.njit = unchecked(numba.njit)


def pytest_configure(config: pytest.Config) -> None:
    """Draw without a display; in the process that starts all others, drop stale kernels."""
    mpl.use("Agg")
    if not hasattr(config, "workerinput"):
        drop_stale_kernels(PACKAGE)


def drop_stale_kernels(package: Path) -> int:
    """Delete all of Numba's on-disk caches when a source is newer than one; returns how many.

    Numba compares a kernel with its own file only, not with the files whose functions and constants
    it inlines: those lie in the rooms that have caches, and in ``core``.
    """
    caches = [path for suffix in ("nbi", "nbc") for path in package.rglob(f"*.{suffix}")]
    rooms = {package / "core", *(path.parent.parent for path in caches)}
    oldest = min((path.stat().st_mtime for path in caches), default=float("inf"))
    if all(path.stat().st_mtime <= oldest for room in rooms for path in room.glob("*.py")):
        return 0
    for path in caches:
        path.unlink(missing_ok=True)
    return len(caches)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets, which the package does not ship."""
    folder = Path(os.environ.get("GO_RL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data sets are not here ({folder}); set GO_RL_DATA to their folder")
    return folder
