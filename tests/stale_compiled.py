"""Numba's on-disk caches that no longer match the sources."""

from pathlib import Path


def drop_stale_compiled(package: Path) -> int:
    """Delete all of Numba's on-disk caches when a source is newer than one; returns how many.

    Numba compares a function with its own file only, not with the files whose functions and
    constants it inlines: those lie in the folders that have caches, and in ``core`` and
    ``runtime``.
    """
    caches = [path for suffix in ("nbi", "nbc") for path in package.rglob(f"*.{suffix}")]
    rooms = {package / "core", package / "runtime", *(path.parent.parent for path in caches)}
    oldest = min((path.stat().st_mtime for path in caches), default=float("inf"))
    if all(path.stat().st_mtime <= oldest for room in rooms for path in room.glob("*.py")):
        return 0
    for path in caches:
        path.unlink(missing_ok=True)
    return len(caches)
