"""`KernelBackend`: fusions of a graph, and settings of its kernels, measured as candidates.

Operator 0 is the fusion of the whole graph; the others are the kernels of the best fusion so far,
with the number of their uses. A candidate of the first is a fusion, which takes the sum of its
kernels' seconds; a candidate of a kernel is a setting of XLA's flags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial, TunedOperator
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion
from go_rl.tuning.xla.kernel_timer import KernelTimer
from go_rl.tuning.xla.kernel_times import INCOMPLETE, KernelTimes
from go_rl.tuning.xla.kernel_trials import KernelTrials
from go_rl.tuning.xla.setting_space import SettingSpace

GRAPH_SHARE = 0.6
"""Share of the time left that the fusions of one batch may take; kernels get the rest."""
PEAK_FLOPS = 64 * 4.5e9
"""FLOP/s that no operator on one core exceeds: two vector units of 512 bits at 4.5 GHz."""
FAILED = "a kernel cannot be timed"


class KernelBackend:
    """Back end of the kernels of one graph (`go_rl.tuning.loop.tuning_run.LiveBackend`).

    Args:
        times: what is known; the inner tuners tell it of trials.
        timer: measures kernels.
        budget: of the run.
        target: of the records.
    """

    def __init__(
        self, times: KernelTimes, timer: KernelTimer, budget: TuningBudget, target: str
    ) -> None:
        self.times, self.timer, self.budget, self.target = times, timer, budget, target
        self.fixed_seconds, self.peak_flops = 0.0, PEAK_FLOPS
        self.known: Mapping[int, Sequence[Trial]] = _AsTheyCome(times)

    @property
    def model(self) -> str:
        """Name of the graph."""
        return self._space.graph.name

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        return tuple(self.times.operators)

    @property
    def untuned_seconds(self) -> tuple[float, ...]:
        """Seconds of the default fusion, and of each kernel as it comes."""
        kernels = self.times.operators[1:]
        plain = (self.times.under(each.workload, AS_IT_COMES) for each in kernels)
        return (self.default_seconds, *plain)

    @property
    def default_seconds(self) -> float:
        """Seconds of XLA's default; infinite until it was measured."""
        times = self.times
        return times.default_total if times.knows_all(self._space.default) else float("inf")

    def space(self, operator: int) -> CandidateSpace:
        if operator == 0:
            return self._space
        return SettingSpace(self.times.operators[operator].workload)

    def measure(self, operator: int, candidates: Sequence[Candidate]) -> list[Trial]:
        """Time candidates; what was measured is in the details of the first trial.

        Raises:
            TuningError: the default fusion has nothing to run, cannot be timed, or not in the time.
        """
        self.timer.settle(self.times.times)
        trials, began = KernelTrials(self.times, self.timer, self.budget), self.clock()
        if operator == 0:
            found = self._fusions(trials, candidates)
        else:
            found = self._settings(trials, self.times.operators[operator].workload, candidates)
        spent = (self.clock() - began) / max(len(found), 1)
        details = [trials.batch.document, *(None for _ in found)]
        return [
            Trial(candidate, seconds, spent, reason, verdict, told)
            for (candidate, seconds, reason, verdict), told in zip(found, details, strict=False)
        ]

    def clock(self) -> float:
        """Return seconds of the budget that are spent, those of replayed measurements included."""
        return self.budget.spent

    def lapse(self, seconds: float) -> None:
        self.budget.charge(seconds)

    @property
    def _space(self) -> FusionSpace:
        return self.times.space

    def _fusions(self, trials: KernelTrials, candidates: Sequence[Candidate]) -> list[_Outcome]:
        fusions = [self._space.read(candidate) for candidate in candidates]
        before, times = self.times.best.key, trials.times
        if not self.times.tried:
            self._default(trials)
        else:
            trials.measure_fusions(fusions, (1.0 - GRAPH_SHARE) * self.budget.left)
        trials.improve([fusion for fusion in fusions if times.knows_all(fusion)])
        found: list[_Outcome] = []
        for candidate, fusion in zip(candidates, fusions, strict=True):
            first = not self.times.tried and fusion.key == before
            best = first or (fusion.key == times.best.key != before)
            found.append((candidate, *_seconds_of(times, fusion), best))
        return found

    def _settings(
        self, trials: KernelTrials, kernel: str, candidates: Sequence[Candidate]
    ) -> list[_Outcome]:
        part = next(part for part in self.times.best.parts if part.hash == kernel)
        new = [each for each in candidates if (kernel, each.key) not in self.times.times]
        new = new[: self.timer.affordable(self.budget.left)]
        trials.measure([(part, each.key) for each in new])
        trials.take(part)
        best, before = trials.times.setting_of(kernel), self.times.setting_of(kernel)
        if best != before and best not in {each.key for each in candidates}:
            new = [*new, Candidate(best)]  # measured when there was no time to compare it
        known = [each for each in candidates if (kernel, each.key) in self.times.times]
        found: list[_Outcome] = []
        for each in (*known, *new):
            seconds = trials.times.under(kernel, each.key)
            ours, reason = (seconds, "") if np.isfinite(seconds) else (None, FAILED)
            found.append((each, ours, reason, each.key == best != before))
        return found

    def _default(self, trials: KernelTrials) -> None:
        name, default = self._space.graph.name, self._space.default
        if not default.parts:
            raise TuningError(f"{name}: has no operator, so there is no kernel to tune")
        trials.measure_fusions([default], 0.0)
        if not trials.times.knows_all(default):
            count = len({part.hash for part in default.parts})
            raise TuningError(
                f"{name}: {self.budget.seconds / 60:g} minutes were over when "
                f"{len(trials.times.times)} of the {count} kernels of the default fusion were "
                "measured; they are kept: run again with more --minutes"
            )
        if not np.isfinite(trials.times.total):
            said = trials.batch.notes[-1]
            raise TuningError(f"{name}: the default fusion cannot be timed: {said}")


_Outcome = tuple[Candidate, float | None, str, bool]
"""Candidate, its seconds or why there are none, and whether it is the best now."""


def _seconds_of(times: KernelTimes, fusion: GraphFusion) -> tuple[float | None, str]:
    """Seconds of a fusion, or why there are none."""
    if not times.knows_all(fusion):
        return None, INCOMPLETE
    seconds = times.total_of(fusion)
    return (seconds, "") if np.isfinite(seconds) else (None, FAILED)


class _AsTheyCome(Mapping[int, Sequence[Trial]]):
    """The first trial of each kernel, which its fusion had."""

    def __init__(self, times: KernelTimes) -> None:
        self._times = times

    def __getitem__(self, operator: int) -> Sequence[Trial]:
        if not 0 < operator <= len(self):
            raise KeyError(operator)
        seconds = self._times.under(self._times.operators[operator].workload, AS_IT_COMES)
        return (Trial(Candidate(AS_IT_COMES), seconds, 0.0),)

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, 1 + len(self)))

    def __len__(self) -> int:
        return len(self._times.operators) - 1
