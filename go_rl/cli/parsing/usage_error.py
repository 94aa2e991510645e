"""`UsageError`: the command line is wrong."""

from __future__ import annotations

from go_rl.core import GoRLError


class UsageError(GoRLError):
    """A command, a flag or its value is unknown, missing or gone; the message is one line."""
