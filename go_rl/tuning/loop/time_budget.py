"""`TimeBudget`: the minutes of one run, from the import of the network to the written module."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

PREPARING = 0.25
"""Share of the budget in which operators are timed without schedules; what is left by then has no
time of its own."""
TUNING = 0.5
"""Least share of tuning, however long importing and preparing took."""
AGAIN = 0.1
"""Share of the budget in which the best candidates are measured again at the end."""
WHOLE = 0.02
"""Share of the budget that one run of a whole network may take: a slower one is not run."""
PACE = 0.05
"""Largest share of the budget in which the reference speed of the core is found."""
ENDING = 0.25
"""Share of the budget kept for compiling and timing the network, at most `LONGEST_ENDING`."""
LONGEST_ENDING = 120.0


@dataclass(frozen=True)
class TimeBudget:
    """Seconds of a run, by the wall."""

    seconds: float
    began: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def preparing(self) -> float:
        """Seconds that timing operators without schedules may take."""
        return PREPARING * self.seconds

    @property
    def pace(self) -> float:
        """Seconds that finding the reference speed of the core may take."""
        return PACE * self.seconds

    @property
    def again(self) -> float:
        """Seconds that measuring the best candidates again may take."""
        return AGAIN * self.seconds

    @property
    def slowest_network(self) -> float:
        """Seconds from which on a whole network is not run."""
        return WHOLE * self.seconds

    def tuning(self) -> float:
        """Return seconds that tuning may take in all, those of earlier runs included: what is left
        now, but for the end."""
        left = self.seconds - self.spent - min(ENDING * self.seconds, LONGEST_ENDING)
        return max(TUNING * self.seconds, left)
