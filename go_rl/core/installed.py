"""`check_installed`: releases of packages whose private parts or binary interface go_rl uses;
`optional_library`: a library of an extra.

The bounds are those of ``pyproject.toml``, which pip holds at installation; a package that is
replaced afterwards would fail far from its cause.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from packaging.requirements import Requirement

from go_rl.core.errors import MissingDependencyError

PRIVATE_PARTS = ("jax", "jaxlib", "numba")
"""Packages of every installation whose private parts go_rl uses (`tests/test_private_parts.py`)."""


@cache
def check_installed(names: tuple[str, ...] = PRIVATE_PARTS) -> None:
    """Check that packages that are installed have releases that go_rl was tried with; once a
    process, since each look at the metadata takes milliseconds.

    Args:
        names: as in ``pyproject.toml``; one that is not installed is passed over.

    Raises:
        MissingDependencyError: a release is out of bounds; the message has the command that
            installs one within.
    """
    for stated in requires("go_rl") or ():
        wanted = Requirement(stated)
        if wanted.name not in names:
            continue
        try:
            found = version(wanted.name)
        except PackageNotFoundError:
            continue
        if not wanted.specifier.contains(found, prereleases=True):
            raise MissingDependencyError(
                f"{wanted.name} {found} is installed; go_rl uses parts of it that change between "
                f"releases: pip install '{wanted.name}{wanted.specifier}'"
            )


def optional_library(name: str, missing: str) -> Any:
    """Return a library of an extra, which is imported when it is first used.

    Args:
        name: of its module.
        missing: what the user is told where it is not installed, with the command that does.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(missing) from error
