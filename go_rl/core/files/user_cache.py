"""`user_cache`: the folder of what go_rl keeps for a user between runs."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Return the folder: ``go_rl`` in ``XDG_CACHE_HOME``, or in ``~/.cache`` without it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "go_rl"
