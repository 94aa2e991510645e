"""`KernelTuner`: fusions of a graph, then settings of its slowest kernels, verified by measuring.

"A Learned Performance Model for TPUs" (Kaufman et al., MLSys 2021): a search guided by the learned
model; the top k of what it finds are run for real, and the best of these is kept, k = 10 for
decisions of the whole graph and k = 5 for those of single kernels. Rounds of both follow each other
until the time is over. A graph takes the sum of its kernels' seconds.

The fastest of many noisy measurements was lucky, too, and the first visit to a kernel takes longer
than later ones. So first visits are compared with first visits only; whatever looks faster than the
best so far is measured again beside it, longer and in turn, and becomes the best if it is faster
then. What was measured so is what counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from go_rl.cost.kernel_settings import flag_settings
from go_rl.records import AS_IT_COMES
from go_rl.tuning.budget import Budget
from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.fusions import Fusion, FusionSpace, Part
from go_rl.tuning.guides import Guide
from go_rl.tuning.kernel_timer import Job, KernelTimer
from go_rl.tuning.outcome import TunePoint
from go_rl.tuning.proposals import propose

SEARCH_SHARE, GRAPH_SHARE = 0.2, 0.6
"""Of the time that is left, what a round's search and then its fusions may take; kernels get the
rest."""
COVERAGE = 0.9
"""Share of the graph's time in the kernels whose settings are tuned, the slowest ones."""
MARGIN = 0.02
"""A setting or a fusion is taken where what it changes is faster by more than this: less may be
noise."""


@dataclass
class Found:
    """What tuning knows so far."""

    best: Fusion
    plain: dict[str, float] = field(default_factory=dict)
    """Seconds of each kernel as it comes; inf: it cannot be timed."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The same under its best setting."""
    quick: dict[str, float] = field(default_factory=dict)
    """What the first visit said of that."""
    settings: dict[str, str] = field(default_factory=dict)
    """Best setting of each kernel that has a better one than as it comes."""
    curve: list[TunePoint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tried: set[bytes] = field(default_factory=set)
    """Fusions that were measured."""
    tuned: set[str] = field(default_factory=set)
    """Kernels whose settings were."""

    @property
    def total(self) -> float:
        """Seconds of the best."""
        return self.total_of(self.best)

    def total_of(self, fusion: Fusion) -> float:
        """Return the seconds of a fusion whose kernels are all known."""
        return sum(self.seconds[part.hash] for part in fusion.parts)

    def quick_of(self, fusion: Fusion) -> float:
        """Return what first visits say of it."""
        return sum(self.quick[part.hash] for part in fusion.parts)


@dataclass(frozen=True)
class KernelTuner:
    """Tunes the kernels of one graph."""

    space: FusionSpace
    guide: Guide
    timer: KernelTimer
    budget: Budget
    config: TuneConfig
    report: Callable[[str], None] = lambda _: None

    def tune(self) -> Found:
        """Return what was found when the time was over, or nothing was left to be tried.

        Raises:
            TuningError: the baseline has nothing to run, cannot be timed, or not in this time.
        """
        found = Found(self.space.default, notes=list(self.guide.notes))
        self._baseline(found)
        rng = np.random.default_rng((self.config.seed, 0))
        while not self.budget.over:
            new = self._fusions(found, rng)
            if not (self._settings(found) or new):
                found.notes.append("Nothing new was left to be tried")
                break
        return found

    def _baseline(self, found: Found) -> None:
        name, parts = self.space.graph.name, found.best.parts
        if not parts:
            raise TuningError(f"{name}: has no operator, so there is no kernel to tune")
        if not self._measured(found, found.best):
            count = len({part.hash for part in parts})
            raise TuningError(
                f"{name}: {self.config.minutes:g} minutes were over when {len(found.seconds)} of "
                f"the {count} kernels of the default fusion were measured; they are kept: run "
                "again with more --minutes"
            )
        if not np.isfinite(found.total):
            raise TuningError(f"{name}: the default fusion cannot be timed: {found.notes[-1]}")
        self._again(found, [(p, AS_IT_COMES) for p in {p.hash: p for p in parts}.values()])
        self._mark(found, found.best.origin)

    def _fusions(self, found: Found, rng: np.random.Generator) -> bool:
        """Measure the fusions that the guide puts first; whether there were any."""
        budget, config = self.budget, self.config
        searched = budget.spent + SEARCH_SHARE * budget.left
        deadline = budget.spent + GRAPH_SHARE * budget.left
        self.report(f"searching fusions ({self.guide.name})")
        best = None if len(found.tried) == 1 else found.best
        pool = propose(
            self.space, self.guide, best, config.candidates, rng,
            lambda: budget.spent >= searched,
        )  # fmt: skip
        fresh = [fusion for fusion in pool if fusion.key not in found.tried]
        chosen = fresh[: config.k_graph] if self.guide.selective else fresh
        for i, fusion in enumerate(chosen):
            if i and budget.spent >= deadline:
                break
            if not self._measured(found, fusion):
                break
            self._improve(found, fusion)
            self.report(f"fusion {i + 1}/{len(chosen)}: best {found.total:.6g} s")
        return bool(chosen)

    def _measured(self, found: Found, fusion: Fusion) -> bool:
        """Measure what is new of a fusion; False: the time was over before."""
        for part in fusion.parts:
            if part.hash in found.seconds:
                continue
            if self.budget.over:
                return False
            record = self.timer.measure(part, AS_IT_COMES)
            seconds = record.seconds or float("inf")
            for known in (found.plain, found.seconds, found.quick):
                known[part.hash] = seconds
            if record.seconds is None:
                found.notes.append(self._failure(part, "", record.reason))
        found.tried.add(fusion.key)
        return True

    def _improve(self, found: Found, fusion: Fusion) -> None:
        """Keep a fusion that looks the best, if it still does when measured again."""
        quick = found.quick_of(fusion)
        if not np.isfinite(quick):
            found.notes.append(f"A fusion ({fusion.origin}) was dropped: a kernel cannot be timed")
        if quick < found.quick_of(found.best) and self._stays_faster(found, fusion):
            found.best = fusion
            self._mark(found, fusion.origin)

    def _stays_faster(self, found: Found, fusion: Fusion) -> bool:
        """Measure again what a fusion and the best do not share; False: or there was no time."""
        parts = {part.hash: part for part in (*found.best.parts, *fusion.parts)}
        ours, theirs = (Counter(p.hash for p in x.parts) for x in (fusion, found.best))
        apart = [part for hash_, part in parts.items() if ours[hash_] != theirs[hash_]]
        jobs = [(part, found.settings.get(part.hash, AS_IT_COMES)) for part in apart]
        if self._again(found, jobs) is None:
            return False
        new, old = (
            sum(count[part.hash] * found.seconds[part.hash] for part in apart)
            for count in (ours, theirs)
        )
        return new < (1.0 - MARGIN) * old

    def _again(self, found: Found, jobs: list[Job]) -> list[float] | None:
        """Measure kernels again, side by side, and know their times better; None: there was no
        time for it, or one of them failed. What counts are the times under a kernel's best setting.
        """
        if self.budget.left <= self.timer.spent_on(jobs):
            return None
        records = self.timer.again(jobs)
        for (part, setting), record in zip(jobs, records, strict=True):
            if record.seconds is None:
                under = f" under {setting}" if setting else ""
                found.notes.append(self._failure(part, f"{under}, again", record.reason))
                return None
        seconds = [float(record.seconds or 0.0) for record in records]
        for (part, setting), value in zip(jobs, seconds, strict=True):
            if setting == AS_IT_COMES:
                found.plain[part.hash] = value
            if setting == found.settings.get(part.hash, AS_IT_COMES):
                found.seconds[part.hash] = value
        return seconds

    def _settings(self, found: Found) -> bool:
        """Measure settings of the best fusion's slowest kernels; whether any was new."""
        parts = [part for part in slowest(found) if part.hash not in found.tuned]
        for i, part in enumerate(parts):
            if not self._tune_kernel(found, part):
                break
            self.report(f"settings of kernel {i + 1}/{len(parts)}: best {found.total:.6g} s")
        return bool(parts)

    def _tune_kernel(self, found: Found, part: Part) -> bool:
        """Measure a kernel under its first k settings; False: the time was over before."""
        names = flag_settings()
        for s in self._setting_order(found, part):
            if self.budget.over:
                return False
            record = self.timer.measure(part, names[s])
            if record.seconds is None:
                found.notes.append(self._failure(part, f" under {names[s]}", record.reason))
            elif record.seconds < (1.0 - MARGIN) * found.quick[part.hash]:
                self._take(found, part, names[s], record.seconds)
        found.tuned.add(part.hash)
        return True

    def _take(self, found: Found, part: Part, setting: str, quick: float) -> None:
        """Take a setting that looks faster, if it is when measured beside the best one so far."""
        before = found.settings.get(part.hash, AS_IT_COMES)
        seconds = self._again(found, [(part, before), (part, setting)])
        if seconds is not None and seconds[1] < (1.0 - MARGIN) * seconds[0]:
            found.settings[part.hash], found.seconds[part.hash] = setting, seconds[1]
            found.quick[part.hash] = quick
            self._mark(found, setting)

    def _setting_order(self, found: Found, part: Part) -> list[int]:
        """Settings to be measured, by number; the first of all are the defaults."""
        kernels = found.best.kernels
        which = np.array([kernels.hashes.index(part.hash)], np.int64)
        scores = self.guide.settings.order(kernels.take(which))[0, 1:]
        order = (1 + np.argsort(scores, kind="stable")).tolist()
        return order[: self.config.k_kernel] if self.guide.selective else order

    def _mark(self, found: Found, what: str) -> None:
        found.curve.append(TunePoint(self.budget.spent / 60.0, found.total, what))

    def _failure(self, part: Part, under: str, reason: str) -> str:
        name = self.space.graph.names[part.nodes[0]]
        return f"The kernel of {len(part.nodes)} nodes from {name!r}{under}: {reason}"


def slowest(found: Found) -> list[Part]:
    """Return the distinct kernels of the best fusion that take `COVERAGE` of its time, by falling
    time over all places where they occur."""
    count = Counter(part.hash for part in found.best.parts)
    distinct = list({part.hash: part for part in found.best.parts}.values())
    times = {h: n * found.seconds[h] for h, n in count.items()}
    ranked = sorted(distinct, key=lambda part: -times[part.hash])
    before = np.cumsum([0.0, *(times[part.hash] for part in ranked)])[:-1]
    wanted = COVERAGE * sum(times.values())
    return [part for part, done in zip(ranked, before.tolist(), strict=True) if done < wanted]
