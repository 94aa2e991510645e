"""`Episode`: the state of one attempt at a problem, shared by single and vector environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Int8

from go_rl.core import EnvironmentUseError

Mask = Int8[np.ndarray, "choices"] | tuple[Int8[np.ndarray, "choices"], ...]
"""What ``Space.sample(mask=...)`` takes: 1 for what may be chosen; a tuple where an action has
several parts."""


class Episode(ABC):
    """Abstract: one attempt at a problem; ``over`` before the first and after each one."""

    case: Any
    """The problem, with what prices it."""
    index: int
    """Which of the environment's problems that is."""

    def __init__(self, form: str, space: spaces.Space[Any]) -> None:
        self.form = form
        self.space = space
        self.over = True

    @abstractmethod
    def begin(self, case: Any, index: int) -> None:
        """Start afresh on a problem, the ``index``-th of the environment."""

    @abstractmethod
    def check(self, action: Any) -> np.ndarray:
        """Return the action as an array; an `EnvironmentUseError` says what is wrong with it."""

    @abstractmethod
    def observe(self, observer: Any) -> Any:
        """Return what the agent sees now, as the environment's ``observer`` builds it."""

    @property
    @abstractmethod
    def current(self) -> int:
        """The node whose turn it is, or `NO_NODE`."""

    @abstractmethod
    def action_mask(self) -> Mask:
        """What may be chosen for the current node (node form); something always may, see
        `with_a_choice`."""

    def info(self) -> dict[str, Any]:
        """Return the ``info`` of a reset, or of a step that does not end the episode."""
        info: dict[str, Any] = {"graph": self.index}
        if self.form == "node":
            info |= {"action_mask": self.action_mask(), "node": self.current}
        return info

    @abstractmethod
    def plan(self, result: Any) -> dict[str, np.ndarray]:
        """Return what was decided, [N] each, by its name in the last ``info``."""

    def final_info(self, result: Any, rows: int) -> dict[str, Any]:
        """Return the ``info`` of the step that ends the episode, plans padded to ``rows``."""
        info = self.info()
        for name in ("status", "detail", "seconds", "baseline_seconds"):
            info[name] = getattr(result, name)
        for name, values in self.plan(result).items():
            info[name] = np.full(rows, -1, values.dtype)
            info[name][: len(values)] = values
        return info

    def shaped(self, action: Any) -> np.ndarray:
        """Return the action as an array of the space's shape.

        Raises:
            EnvironmentUseError: it has another shape.
        """
        array = np.asarray(action)
        if array.shape != self.space.shape:
            raise EnvironmentUseError(
                f"action has shape {list(array.shape)}; the {self.form} form takes "
                f"{list(self.space.shape or ())}, see action_space"
            )
        return array


def with_a_choice(allowed: Bool[np.ndarray, "choices"]) -> Int8[np.ndarray, "choices"]:
    """Return a mask that can be sampled from: of everything where nothing is allowed.

    That is so once an episode is over, and where no plan exists: any action then ends it.
    """
    return (allowed if allowed.any() else np.ones_like(allowed)).astype(np.int8)


def check_running(running: bool) -> None:
    """Raise an `EnvironmentUseError` where no episode is."""
    if not running:
        raise EnvironmentUseError("no episode is running; call reset() before step()")


def choose_case(cases: int, options: dict[str, Any] | None, random: np.random.Generator) -> int:
    """Return ``options["graph"]``, or a case drawn where there are several.

    Raises:
        EnvironmentUseError: an unknown option, or no such graph.
    """
    given = dict(options or {})
    index = given.pop("graph", None)
    if given:
        raise EnvironmentUseError(f"unknown option {sorted(given)[0]!r}; reset takes 'graph'")
    if index is None:
        return int(random.integers(cases)) if cases > 1 else 0
    if not isinstance(index, (int, np.integer)) or not 0 <= index < cases:
        raise EnvironmentUseError(f"options['graph'] must be 0..{cases - 1}, not {index!r}")
    return int(index)
