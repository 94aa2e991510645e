"""`KernelTuner`: fusions of a graph, then settings of its slowest kernels, verified by measuring.

"A Learned Performance Model for TPUs" (Kaufman et al., MLSys 2021): a search guided by the learned
model; the top k of what it finds are run for real, and the best of these is kept, k = 10 for
decisions of the whole graph and k = 5 for those of single kernels. Rounds of both follow each other
until the time is over. A graph takes the sum of its kernels' seconds.

The fastest of many noisy measurements was lucky, too. So whatever looks faster than the best so far
is measured again beside it, in turn and more often, and becomes the best if it is faster then. What
a kernel takes is the mean of all measurements of it, those it lost by included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from go_rl.measure.kernels.settings import flag_settings
from go_rl.records import AS_IT_COMES
from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.kernels.budget import TuningBudget
from go_rl.tuning.kernels.fusions import Fusion, FusionSpace, Part
from go_rl.tuning.kernels.guides import Guide
from go_rl.tuning.kernels.kernel_timer import AGAIN, KernelTimer
from go_rl.tuning.kernels.outcome import TunePoint
from go_rl.tuning.kernels.proposals import propose
from go_rl.tuning.progress import TuningProgress, Watch, unwatched

SEARCH_SHARE, GRAPH_SHARE = 0.2, 0.6
"""Of the time that is left, what a round's search and then its fusions may take; kernels get the
rest."""
COVERAGE = 0.9
"""Share of the graph's time in the kernels whose settings are tuned, the slowest ones."""
MARGIN = 0.02
"""A setting or a fusion is taken where what it changes is faster by more than this: less may be
noise."""
AGAIN_COSTS = 2.0
"""Times what it cost at first: a comparison has more visits, and no more compilations."""
TOGETHER = 16
"""Kernels, at most, that are measured together: in turn, so that what disturbs the core for a
while disturbs all of them."""

Job = tuple[str, str]
"""Hash of a kernel, and its setting."""


@dataclass
class TuningState:
    """What tuning knows so far."""

    best: Fusion
    times: dict[Job, list[float]] = field(default_factory=dict)
    """Seconds of kernels, by hash, under settings, each as often as it weighs; inf: it cannot be
    timed."""
    settings: dict[str, str] = field(default_factory=dict)
    """Best setting of each kernel that has a better one than as it comes."""
    curve: list[TunePoint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tried: set[bytes] = field(default_factory=set)
    """Fusions all of whose kernels were measured."""
    compared: Counter[tuple[Job, ...]] = field(default_factory=Counter)
    """How often the same kernels were measured again side by side."""
    tuned: set[str] = field(default_factory=set)
    """Kernels whose settings were."""

    def knows(self, hash_: str) -> bool:
        """Whether a kernel was measured as it comes."""
        return (hash_, AS_IT_COMES) in self.times

    def setting_of(self, hash_: str) -> str:
        """Return the best setting of a kernel."""
        return self.settings.get(hash_, AS_IT_COMES)

    def under(self, hash_: str, setting: str) -> float:
        """Return the seconds of a kernel under a setting that it was measured under."""
        times = self.times[hash_, setting]
        return sum(times) / len(times)

    def best_of(self, hash_: str) -> float:
        """Return the seconds of a kernel under its best setting."""
        return self.under(hash_, self.setting_of(hash_))

    def knows_all(self, fusion: Fusion) -> bool:
        """Whether all kernels of a fusion were measured as they come."""
        return all(self.knows(part.hash) for part in fusion.parts)

    @property
    def plain(self) -> dict[str, float]:
        """Seconds of each kernel measured, as it comes."""
        return {h: self.under(h, s) for h, s in self.times if s == AS_IT_COMES}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each kernel measured, under its best setting."""
        return {h: self.best_of(h) for h, s in self.times if s == AS_IT_COMES}

    @property
    def total(self) -> float:
        """Seconds of the best."""
        return sum(self.best_of(part.hash) for part in self.best.parts)


@dataclass(frozen=True)
class KernelTuner:
    """Tunes the kernels of one graph."""

    space: FusionSpace
    guide: Guide
    timer: KernelTimer
    budget: TuningBudget
    config: TuneConfig
    report: Callable[[str], None] = lambda _: None
    watch: Watch = unwatched

    def tune(self) -> TuningState:
        """Return what was found when the time was over, or nothing was left to be tried.

        Raises:
            TuningError: the baseline has nothing to run, cannot be timed, or not in this time.
        """
        found = TuningState(self.space.default, notes=list(self.guide.notes))
        self._baseline(found)
        rng = np.random.default_rng((self.config.seed, 0))
        while not self.budget.over:
            new = self._fusions(found, rng)
            if not (self._settings(found) or new):
                found.notes.append("Nothing new was left to be tried")
                break
        return found

    def _baseline(self, found: TuningState) -> None:
        name, parts = self.space.graph.name, found.best.parts
        if not parts:
            raise TuningError(f"{name}: has no operator, so there is no kernel to tune")
        if not self._measured(found, [found.best], 0.0):
            count = len({part.hash for part in parts})
            raise TuningError(
                f"{name}: {self.config.minutes:g} minutes were over when {len(found.times)} of "
                f"the {count} kernels of the default fusion were measured; they are kept: run "
                "again with more --minutes"
            )
        if not np.isfinite(found.total):
            raise TuningError(f"{name}: the default fusion cannot be timed: {found.notes[-1]}")
        found.tried.add(found.best.key)
        self._mark(found, found.best.origin)

    def _fusions(self, found: TuningState, rng: np.random.Generator) -> bool:
        """Measure the fusions that the guide puts first; whether there were any."""
        budget, config = self.budget, self.config
        searched = budget.spent + SEARCH_SHARE * budget.left
        left = (1.0 - GRAPH_SHARE) * budget.left
        self.report(f"searching fusions ({self.guide.name})")
        self.guide.fusions.learn(found.seconds)
        best = None if len(found.tried) == 1 else found.best
        pool = propose(
            self.space, self.guide, best, config.candidates, rng,
            lambda: budget.spent >= searched,
        )  # fmt: skip
        fresh = [fusion for fusion in pool if fusion.key not in found.tried]
        costly = [fusion for fusion in fresh if not found.knows_all(fusion)]
        chosen = costly[: config.k_graph] if self.guide.selective else costly
        self._measured(found, chosen, left)
        known = [fusion for fusion in fresh if found.knows_all(fusion)]
        found.tried |= {fusion.key for fusion in known}
        self._improve(found, known)
        self.report(f"{len(found.tried)} fusions: best {found.total:.6g} s")
        return bool(fresh)

    def _measured(self, found: TuningState, fusions: Sequence[Fusion], left: float) -> bool:
        """Measure what is new of fusions, in their order, together; False: before that, no more
        than ``left`` seconds were left."""
        parts = {part.hash: part for fusion in fusions for part in fusion.parts}
        new = [part for part in parts.values() if not found.knows(part.hash)]
        while new:
            if self.budget.left <= left:
                return False
            count = min(self.timer.affordable(self.budget.left - left), TOGETHER)
            batch, new = new[:count], new[count:]
            self._first(found, [(part, AS_IT_COMES) for part in batch])
        return True

    def _first(self, found: TuningState, jobs: Sequence[tuple[Part, str]]) -> None:
        """Measure kernels under settings for the first time, together."""
        records = self.timer.measure_together(jobs)
        for (part, setting), record in zip(jobs, records, strict=True):
            found.times[part.hash, setting] = [record.seconds or float("inf")]
            if record.seconds is None:
                under = f" under {setting}" if setting else ""
                found.notes.append(self._failure(part, under, record.reason))

    def _improve(self, found: TuningState, fusions: Sequence[Fusion]) -> None:
        """Keep the best of fusions whose kernels are known, if it still is when measured again."""
        for fusion in fusions:
            if not all(np.isfinite(found.under(p.hash, AS_IT_COMES)) for p in fusion.parts):
                found.notes.append(
                    f"A fusion ({fusion.origin}) was dropped: a kernel cannot be timed"
                )
        waiting = {fusion.key: fusion for fusion in fusions}
        while not self.budget.over:
            gains = {key: self._gain(found, fusion) for key, fusion in waiting.items()}
            first = max(gains, key=lambda key: gains[key], default=None)
            if first is None or gains[first] <= 0.0:
                break
            fusion = waiting.pop(first)
            if self._stays_faster(found, fusion):
                found.best = fusion
                self._mark(found, fusion.origin)

    def _gain(self, found: TuningState, fusion: Fusion) -> float:
        """Seconds that a fusion seems to be faster than the best, the margin taken off."""
        new, old = _apart(fusion, found.best)
        after, before = (sum(n * found.best_of(h) for h, n in x.items()) for x in (new, old))
        return (1.0 - MARGIN) * before - after

    def _stays_faster(self, found: TuningState, fusion: Fusion) -> bool:
        """Measure again what a fusion and the best do not share; False: or there was no time."""
        new, old = _apart(fusion, found.best)
        parts = {part.hash: part for part in (*found.best.parts, *fusion.parts)}
        jobs = [(parts[h], found.setting_of(h)) for h in (*old, *new)]
        seconds = self._again(found, jobs)
        if seconds is None:
            return False
        before = sum(n * s for n, s in zip(old.values(), seconds[: len(old)], strict=True))
        after = sum(n * s for n, s in zip(new.values(), seconds[len(old) :], strict=True))
        return after < (1.0 - MARGIN) * before

    def _again(self, found: TuningState, jobs: Sequence[tuple[Part, str]]) -> list[float] | None:
        """Measure kernels again, side by side, and know their times better; None: there was no
        time for it, or one of them failed."""
        if self.budget.left <= AGAIN_COSTS * self.timer.spent_on(jobs):
            return None
        told = tuple((part.hash, setting) for part, setting in jobs)
        records = self.timer.again(jobs, found.compared[told])
        found.compared[told] += 1
        for (part, setting), record in zip(jobs, records, strict=True):
            if record.seconds is None:
                under = f" under {setting}" if setting else ""
                found.notes.append(self._failure(part, f"{under}, again", record.reason))
                return None
        seconds = [float(record.seconds or 0.0) for record in records]
        for (part, setting), value in zip(jobs, seconds, strict=True):
            found.times[part.hash, setting] += AGAIN * [value]
        return seconds

    def _settings(self, found: TuningState) -> bool:
        """Measure settings of the best fusion's slowest kernels; whether any was new."""
        parts = [part for part in slowest(found) if part.hash not in found.tuned]
        for i, part in enumerate(parts):
            if not self._tune_kernel(found, part):
                break
            self.report(f"settings of kernel {i + 1}/{len(parts)}: best {found.total:.6g} s")
        return bool(parts)

    def _tune_kernel(self, found: TuningState, part: Part) -> bool:
        """Measure a kernel under its first k settings; False: the time was over before."""
        names = flag_settings()
        order = [names[s] for s in self._setting_order(found, part)]
        new = [(part, s) for s in order if (part.hash, s) not in found.times]
        count = self.timer.affordable(self.budget.left)
        self._first(found, new[:count])
        self._take(found, part)
        if count < len(new):
            return False
        found.tuned.add(part.hash)
        return True

    def _take(self, found: TuningState, part: Part) -> None:
        """Take the setting that looks fastest, if it is when measured beside the best so far; if
        not, the one that looks fastest then."""
        refused: set[str] = set()
        while not self.budget.over:
            before = found.setting_of(part.hash)
            seconds = {
                s: found.under(h, s)
                for h, s in found.times
                if h == part.hash and s != before and s not in refused
            }
            best = min(seconds, key=lambda s: seconds[s], default=before)
            if best == before or seconds[best] >= (1 - MARGIN) * found.under(part.hash, before):
                return
            again = self._again(found, [(part, before), (part, best)])
            if again is not None and again[1] < (1.0 - MARGIN) * again[0]:
                found.settings[part.hash] = best
                self._mark(found, best)
            else:
                refused.add(best)

    def _setting_order(self, found: TuningState, part: Part) -> list[int]:
        """Settings to be measured, by number; the first of all are the defaults."""
        kernels = found.best.kernels
        which = np.array([kernels.hashes.index(part.hash)], np.int64)
        scores = self.guide.settings.order(kernels.take(which))[0, 1:]
        order = (1 + np.argsort(scores, kind="stable")).tolist()
        return order[: self.config.k_kernel] if self.guide.selective else order

    def _mark(self, found: TuningState, what: str) -> None:
        default = sum(found.under(part.hash, AS_IT_COMES) for part in self.space.default.parts)
        point = TunePoint(self.budget.spent / 60.0, found.total, default, what)
        found.curve.append(point)
        self.watch(
            TuningProgress(
                model=self.space.graph.name, minutes=point.minutes,
                of_minutes=self.config.minutes, seconds=point.seconds,
                default_seconds=default, trials=self.timer.made + self.timer.replayed, doing=what,
            )
        )  # fmt: skip

    def _failure(self, part: Part, under: str, reason: str) -> str:
        name = self.space.graph.names[part.nodes[0]]
        return f"The kernel of {len(part.nodes)} nodes from {name!r}{under}: {reason}"


def slowest(found: TuningState) -> list[Part]:
    """Return the distinct kernels of the best fusion that take `COVERAGE` of its time, by falling
    time over all places where they occur."""
    count = Counter(part.hash for part in found.best.parts)
    distinct = list({part.hash: part for part in found.best.parts}.values())
    times = {h: n * found.best_of(h) for h, n in count.items()}
    ranked = sorted(distinct, key=lambda part: -times[part.hash])
    before = np.cumsum([0.0, *(times[part.hash] for part in ranked)])[:-1]
    wanted = COVERAGE * sum(times.values())
    return [part for part, done in zip(ranked, before.tolist(), strict=True) if done < wanted]


def _apart(one: Fusion, other: Fusion) -> tuple[Counter[str], Counter[str]]:
    """How often each kernel occurs that one fusion has more often than the other, and reverse."""
    ours, theirs = (Counter(part.hash for part in fusion.parts) for fusion in (one, other))
    return ours - theirs, theirs - ours
