"""One operator after the other, in the network's order (AutoTVM; Chen et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from go_rl.core.ranges import POSITIVE, check_ranges
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class Sequential:
    """Tunes each operator until it is finished, or has used its share of the time.

    Raises:
        TuningError: the share is not above 0.
    """

    share: float = inf
    """Seconds of each operator, at most; infinite: until it is finished. A run on a budget divides
    it by the number of operators, as users of AutoTVM divide trials."""
    name: str = "sequential"
    dynamic: bool = False

    def __post_init__(self) -> None:
        check_ranges(self, "sequential", TuningError, share=POSITIVE)

    def choose(self, state: TuningState) -> int | None:
        """Return the operator of the next slot; None: all have had their share."""
        for k in state.unfinished:
            if state.operators[k].spent < self.share:
                return k
        return None

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
