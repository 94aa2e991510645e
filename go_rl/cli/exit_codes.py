"""What the exit code of ``go-rl`` means."""

from __future__ import annotations

OK = 0
REJECTED = 1
"""``check``: the judge rejects the plan."""
BAD_INPUT = 2
"""The input or the command line is wrong; one line on standard error says how."""
FAILED_SEARCH = 3
"""The input is sound, but there is no plan; the status says why."""
INTERRUPTED = 130
"""Stopped by the user (Ctrl-C)."""
