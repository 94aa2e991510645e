"""`SettingSpace`: the settings of XLA's flags as schedules of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.tuning.loop.nouns import Schedule


class SettingSpace:
    """See `go_rl.tuning.loop.nouns.ScheduleSpace`. The key of a schedule is its setting; none
    is as it comes, which is known before.

    Args:
        kernel: hash of the kernel.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._settings = flag_settings()[1:]

    def draw(self, count: int, rng: np.random.Generator) -> list[Schedule]:
        """Return up to ``count`` random settings."""
        return [Schedule(self._settings[i]) for i in rng.permutation(len(self._settings))[:count]]

    def neighbour(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """Return another setting: each is one flag away from the defaults."""
        others = [each for each in self._settings if each != schedule.key]
        return Schedule(others[int(rng.integers(len(others)))])

    def features(self, schedules: Sequence[Schedule]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, settings] which setting each is: 1, and 0 elsewhere."""
        rows = [[each.key == setting for setting in self._settings] for each in schedules]
        return np.array(rows, np.float32)
