"""`AlternatingRounds`: the whole network, then its slowest operators, as the autotuner of kernels
(Kaufman et al., "A Learned Performance Model for TPUs", MLSys 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.tuning.loop.tuning_state import TuningState

COVERAGE = 0.9
"""Share of the network's time in the operators that have a turn, the slowest ones."""


@dataclass(frozen=True)
class AlternatingRounds:
    """A slot for the operator that stands for the whole network, such as its fusion, then slots for
    each of the slowest operators until it is finished; then anew."""

    coverage: float = COVERAGE

    def choose(self, state: TuningState) -> int:
        unfinished = set(state.unfinished)
        whole = [k for k in unfinished if state.operators[k].operator.whole]
        fresh = [k for k in whole if not state.operators[k].slots]
        slow = [k for k in self.slowest(state) if k in unfinished]
        by_time = sorted(unfinished, key=lambda k: -state.operators[k].weighted)
        return (fresh or slow or whole or by_time)[0]

    def slowest(self, state: TuningState) -> list[int]:
        """Return the operators that take `coverage` of the time of all, the slowest first."""
        times = {
            k: each.weighted
            for k, each in enumerate(state.operators)
            if not each.operator.whole
        }  # fmt: skip
        ranked = sorted(times, key=lambda k: -times[k])
        wanted, done, found = self.coverage * sum(times.values()), 0.0, list[int]()
        for k in ranked:
            if done < wanted:
                found.append(k)
            done += times[k]
        return found

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
