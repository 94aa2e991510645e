"""`KernelTrials`: one batch of measurements of kernels, and what is taken for faster by them.

The fastest of many noisy measurements was lucky, too. So whatever looks faster than the best so far
is measured again beside it, in turn and more often, and becomes the best if it is faster then. What
a kernel takes is the mean of all measurements of it, those it lost by included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from go_rl.core.printable import counted
from go_rl.runtime.records import AS_IT_COMES, Record
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import GraphFusion, Part
from go_rl.tuning.xla.kernel_timer import KernelTimer
from go_rl.tuning.xla.kernel_times import KernelTime, KernelTimes, MeasuredBatch

MARGIN = 0.02
"""Least relative gain for which a setting or a fusion is taken: less may be noise."""
AGAIN_COSTS = 2.0
"""Factor on the first cost: a comparison has more visits, and no more compilations."""
TOGETHER = 16
"""Kernels, at most, that are measured together: in turn, so that what disturbs the core for a
while disturbs all of them."""

Wanted = tuple[Part, str]
"""A kernel, and the setting that it is to be measured under."""


class KernelTrials:
    """Measures; `times` knows it at once, and `batch` keeps it for whoever else is to know.

    Args:
        times: what was known before; a copy is changed.
        timer: measures.
        budget: says when the time is over.
    """

    def __init__(self, times: KernelTimes, timer: KernelTimer, budget: TuningBudget) -> None:
        self.times, self.batch = times.copy(), MeasuredBatch()
        self._timer, self._budget = timer, budget

    def measure_fusions(self, fusions: Sequence[GraphFusion], left: float) -> None:
        """Measure what is new of fusions, in their order, together, until no more than ``left``
        seconds are left."""
        parts = {part.hash: part for fusion in fusions for part in fusion.parts}
        new = [part for part in parts.values() if not self.times.knows(part.hash)]
        while new and self._budget.left > left:
            count = min(self._timer.affordable(self._budget.left - left), TOGETHER)
            self.measure([(part, AS_IT_COMES) for part in new[:count]])
            new = new[count:]

    def measure(self, wanted: Sequence[Wanted]) -> None:
        """Measure kernels under settings for the first time, together."""
        records = self._timer.measure_together(wanted)
        found = [_time(*pair) for pair in zip(wanted, records, strict=True)]
        self.times.add_first(found)
        self.batch.first += found
        self._note_failures(wanted, records, "")

    def improve(self, fusions: Sequence[GraphFusion]) -> None:
        """Keep the best of fusions whose kernels are known, if it still is when measured again."""
        for fusion in fusions:
            if not np.isfinite(self.times.total_of(fusion)):
                self._note(f"A fusion ({fusion.origin}) was dropped: a kernel cannot be timed")
        waiting = {fusion.key: fusion for fusion in fusions}
        while not self._budget.over:
            gains = {key: gain_of(fusion, self.times) for key, fusion in waiting.items()}
            first = max(gains, key=lambda key: gains[key], default=None)
            if first is None or gains[first] <= 0.0:
                break
            fusion = waiting.pop(first)
            if self._stays_faster(fusion):
                self.times.keep(fusion)

    def take(self, part: Part) -> None:
        """Take the setting of a kernel that looks fastest, if it is when measured beside the best
        so far; if not, the one that looks fastest then."""
        times, refused = self.times, set[str]()
        while not self._budget.over:
            before = times.setting_of(part.hash)
            seconds = {
                s: times.under(h, s)
                for h, s in times.times
                if h == part.hash and s != before and s not in refused
            }
            best = min(seconds, key=lambda s: seconds[s], default=before)
            if best == before or seconds[best] >= (1 - MARGIN) * times.under(part.hash, before):
                return
            again = self._again([(part, before), (part, best)])
            if again is not None and again[1] < (1.0 - MARGIN) * again[0]:
                times.settings[part.hash] = best
            else:
                refused.add(best)

    def _stays_faster(self, fusion: GraphFusion) -> bool:
        """Measure again what a fusion and the best do not share; False: or there was no time."""
        times = self.times
        new, old = _apart(fusion, times.best)
        parts = {part.hash: part for part in (*times.best.parts, *fusion.parts)}
        seconds = self._again([(parts[h], times.setting_of(h)) for h in (*old, *new)])
        if seconds is None:
            return False
        before = sum(n * s for n, s in zip(old.values(), seconds[: len(old)], strict=True))
        after = sum(n * s for n, s in zip(new.values(), seconds[len(old) :], strict=True))
        return after < (1.0 - MARGIN) * before

    def _again(self, wanted: Sequence[Wanted]) -> list[float] | None:
        """Measure kernels again, side by side, and know their times better; None: there was no
        time for it, or one of them failed."""
        if self._budget.left <= AGAIN_COSTS * self._timer.spent_on(wanted):
            return None
        number = self.times.compared[tuple((part.hash, setting) for part, setting in wanted)]
        records = self._timer.again(wanted, number)
        found = [_time(*pair) for pair in zip(wanted, records, strict=True)]
        self.times.add_compared(found)
        self.batch.compared.append(found)
        self._note_failures(wanted, records, ", again")
        seconds = [each.seconds for each in found if each.seconds is not None]
        return seconds if len(seconds) == len(found) else None

    def _note_failures(
        self, wanted: Sequence[Wanted], records: Sequence[Record], when: str
    ) -> None:
        names = self.times.space.graph.names
        for (part, setting), record in zip(wanted, records, strict=True):
            if record.seconds is None:
                under = f" under {setting}" if setting else ""
                count = counted(len(part.nodes), "node")
                what = f"The kernel of {count} from {names[part.nodes[0]]!r}"
                self._note(f"{what}{under}{when}: {record.reason}")

    def _note(self, sentence: str) -> None:
        self.times.notes.append(sentence)
        self.batch.notes.append(sentence)


def gain_of(fusion: GraphFusion, times: KernelTimes) -> float:
    """Return the seconds that a fusion seems to be faster than the best, the margin taken off."""
    new, old = _apart(fusion, times.best)
    after, before = (sum(n * times.best_of(h) for h, n in each.items()) for each in (new, old))
    return (1.0 - MARGIN) * before - after


def _time(wanted: Wanted, record: Record) -> KernelTime:
    part, setting = wanted
    return KernelTime(part.hash, setting, record.seconds)


def _apart(one: GraphFusion, other: GraphFusion) -> tuple[Counter[str], Counter[str]]:
    """Counts of the kernels that one fusion has more often than the other, and reverse."""
    ours, theirs = (Counter(part.hash for part in fusion.parts) for fusion in (one, other))
    return ours - theirs, theirs - ours
