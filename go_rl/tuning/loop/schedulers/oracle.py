"""The oracle: every curve is known (DynaTune's upper bound; needs recorded curves)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class Oracle:
    """Gives the slot to the operator whose curve falls fastest from here on, over whatever stretch:
    the most seconds of the network per second of tuning, a stretch shorter than a slot counting as
    one."""

    paths: Sequence[Sequence[Trial]]
    """The trials that each operator's inner tuner will make, in order, from the first on."""

    def choose(self, state: TuningState) -> int:
        return max(state.unfinished, key=lambda k: self._slope(state, k))

    def predicted(self, state: TuningState, operator: int) -> float:
        """Return by how many seconds the next slot will shorten the network."""
        spent, best = self._ahead(state, operator)
        within = best[spent <= max(state.slot_seconds, spent[0])] if len(spent) else best
        fastest = float(within[-1]) if len(within) else np.inf
        each = state.operators[operator]
        return each.operator.repeats * max(each.seconds - fastest, 0.0)

    def _slope(self, state: TuningState, operator: int) -> float:
        spent, best = self._ahead(state, operator)
        each = state.operators[operator]
        if not len(spent):
            return 0.0
        gains = np.maximum(each.seconds - best, 0.0) / np.maximum(spent, state.slot_seconds)
        return float(each.operator.repeats * gains.max())

    def _ahead(self, state: TuningState, operator: int) -> tuple[np.ndarray, np.ndarray]:
        """Return seconds spent from now on, and best seconds, after each trial to come."""
        done = len(state.operators[operator].curve)
        spent, best = self._curves[operator]
        before = spent[done - 1] if done else 0.0
        return spent[done:] - before, best[done:]

    @cached_property
    def _curves(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            (
                np.cumsum([trial.spent for trial in path]),
                np.minimum.accumulate(
                    [np.inf if trial.seconds is None else trial.seconds for trial in path]
                ),
            )
            for path in self.paths
        ]
