"""Checks that configurations of training share; each raises a `TrainingError`."""

from __future__ import annotations

from go_rl.core import TrainingError


def check_least(where: str, config: object, least: int, *names: str) -> None:
    """Each of these fields is a number >= ``least``."""
    for name in names:
        if not (value := getattr(config, name)) >= least:
            raise TrainingError(f"{where}: {name} must be >= {least}, not {value}")


def check_positive(where: str, config: object, *names: str) -> None:
    """Each of these fields is a number > 0."""
    for name in names:
        if not (value := getattr(config, name)) > 0:
            raise TrainingError(f"{where}: {name} must be > 0, not {value}")


def check_top(top: float | None, where: str) -> None:
    """A share that teaches is above 0 and at most 1; None: not chosen."""
    if top is not None and not 0 < top <= 1:
        raise TrainingError(f"{where}: top must be above 0 and at most 1, not {top}")
