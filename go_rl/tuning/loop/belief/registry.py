"""Beliefs by name."""

from __future__ import annotations

from go_rl.core.errors import nearest
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.belief import Belief
from go_rl.tuning.loop.belief.curve_families import FAMILIES

TRANSFER = "transfer"
BELIEFS = (*FAMILIES, TRANSFER)
"""Names: a family of curves, the default first, or our own that learned from recorded curves."""


def belief_of(name: str) -> Belief:
    """Return the belief of a name, one of `BELIEFS`.

    Raises:
        MissingDependencyError: emcee, which a family of curves needs, is not installed.
        TuningError: the name is unknown, or the recorded curves cannot be read.
    """
    check_belief(name)
    if name in FAMILIES:
        from go_rl.tuning.loop.belief.curve_belief import CurveBelief

        return CurveBelief(family=name)
    from go_rl.tuning.loop.belief.curve_library import load_curves
    from go_rl.tuning.loop.belief.transfer_belief import TransferBelief

    return TransferBelief(load_curves())


def check_belief(name: str) -> None:
    """Raise a `TuningError` for a name that is none of `BELIEFS`."""
    if name not in BELIEFS:
        known = ", ".join(BELIEFS)
        raise TuningError(f"unknown belief {name!r}{nearest(name, BELIEFS)} There are {known}")
