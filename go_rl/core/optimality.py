"""When a plan counts as optimal: the one tolerance that methods, reports and the checker share."""

from __future__ import annotations

from math import isfinite

OPTIMAL_GAP = 1e-6
"""Largest value / bound - 1 that counts as closed: the difference that rounding, and the integer
costs of CP-SAT, may leave between an optimal plan and its bound."""


def proved_optimal(value: float, bound: float) -> bool:
    """Return whether a proven lower ``bound`` (seconds) shows that nothing beats ``value``
    (seconds); never for a failure, whose value is infinite."""
    return isfinite(value) and value <= bound * (1.0 + OPTIMAL_GAP)
