"""`SettingSpace`: the settings of XLA's flags as candidates of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.tuning.loop.nouns import Candidate


class SettingSpace:
    """Settings of one kernel (`go_rl.tuning.loop.nouns.CandidateSpace`). The key of a candidate is
    its setting; none is as it comes, which is known before.

    Args:
        kernel: hash of the kernel.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._settings = flag_settings()[1:]

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        """Return up to ``count`` random settings."""
        return [Candidate(self._settings[i]) for i in rng.permutation(len(self._settings))[:count]]

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return another setting: each is one flag away from the defaults."""
        others = [each for each in self._settings if each != candidate.key]
        return Candidate(others[int(rng.integers(len(others)))])

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, settings] which setting each is: 1, and 0 elsewhere."""
        rows = [[each.key == setting for setting in self._settings] for each in candidates]
        return np.array(rows, np.float32)
