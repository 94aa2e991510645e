"""Errors raised where a loop nest, or its description, is malformed."""

from __future__ import annotations

from go_rl.core import GoRLError


class NestError(GoRLError):
    """A loop nest breaks one of its rules, or cannot be made from what was given."""
