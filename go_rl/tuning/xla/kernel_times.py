"""`KernelTimes`: times of the kernels of one graph, a function of its trials alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from go_rl.core import OpKind
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.loop.nouns import Trial, TunedOperator
from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion, Part
from go_rl.tuning.xla.kernel_timer import AGAIN

Job = tuple[str, str]
"""Hash of a kernel, and its setting."""
FIRST, COMPARED, NOTES = "first", "compared", "notes"
INCOMPLETE = "the time was over before all of its kernels were measured"


class KernelTime(NamedTuple):
    """Time of a kernel under a setting."""

    hash: str
    setting: str
    seconds: float | None
    """Seconds of one run; None: the kernel cannot be timed."""

    @property
    def job(self) -> Job:
        """Kernel and setting that were measured."""
        return self.hash, self.setting


@dataclass
class MeasuredBatch:
    """Measurements of one batch of trials, in order."""

    first: list[KernelTime] = field(default_factory=list)
    """Kernels measured for the first time."""
    compared: list[list[KernelTime]] = field(default_factory=list)
    """Kernels measured again side by side, after those of ``first``."""
    notes: list[str] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """Details of a trial: JSON."""
        return {FIRST: self.first, COMPARED: self.compared, NOTES: self.notes}


@dataclass(eq=False)
class KernelTimes:
    """Times of kernels, and the best fusion and settings so far."""

    space: FusionSpace
    best: GraphFusion
    times: dict[Job, list[float]] = field(default_factory=dict)
    """Seconds of kernels under settings, each as often as it weighs; inf: it cannot be timed."""
    settings: dict[str, str] = field(default_factory=dict)
    """Best setting of each kernel that has a better one than as it comes."""
    compared: Counter[tuple[Job, ...]] = field(default_factory=Counter)
    """Number of times that the same kernels were measured again side by side."""
    tried: set[str] = field(default_factory=set)
    """Keys of fusions all of whose kernels were measured."""
    operators: list[TunedOperator] = field(default_factory=list)
    """Fusion of the whole graph, and kernels in the order in which a best fusion had them
    first."""
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, space: FusionSpace) -> KernelTimes:
        """Return that nothing is known of a graph's kernels."""
        graph = space.graph
        flops = max(float(graph.flops.sum()), 1.0)
        whole = TunedOperator(f"fusion of {graph.name}", graph.digest, 1, flops, whole=True)
        return cls(space, space.default, operators=[whole])

    def copy(self) -> KernelTimes:
        """Return the same, to be changed for itself."""
        times = {job: list(seconds) for job, seconds in self.times.items()}
        return replace(
            self, times=times, settings=dict(self.settings), compared=self.compared.copy(),
            tried=set(self.tried), operators=list(self.operators), notes=list(self.notes),
        )  # fmt: skip

    def knows(self, hash_: str) -> bool:
        """Whether a kernel was measured as it comes."""
        return (hash_, AS_IT_COMES) in self.times

    def knows_all(self, fusion: GraphFusion) -> bool:
        """Whether all kernels of a fusion were measured as they come."""
        return all(self.knows(part.hash) for part in fusion.parts)

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

    def total_of(self, fusion: GraphFusion) -> float:
        """Return the seconds of a fusion whose kernels are known, under their best settings."""
        return sum(self.best_of(part.hash) for part in fusion.parts)

    @property
    def total(self) -> float:
        """Seconds of the best fusion."""
        return self.total_of(self.best)

    @property
    def default_total(self) -> float:
        """Seconds of XLA's default, its kernels as they come."""
        return sum(self.under(part.hash, AS_IT_COMES) for part in self.space.default.parts)

    @property
    def plain(self) -> dict[str, float]:
        """Seconds of each kernel measured, as it comes."""
        return {h: self.under(h, s) for h, s in self.times if s == AS_IT_COMES}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each kernel measured, under its best setting."""
        return {h: self.best_of(h) for h, s in self.times if s == AS_IT_COMES}

    def add_first(self, times: Iterable[KernelTime]) -> None:
        """Take in first measurements."""
        for each in times:
            self.times[each.job] = [float("inf") if each.seconds is None else each.seconds]

    def add_compared(self, times: Sequence[KernelTime]) -> None:
        """Take in what was measured side by side; nothing is learned where one failed."""
        self.compared[tuple(each.job for each in times)] += 1
        if all(each.seconds is not None for each in times):
            for each in times:
                self.times[each.job] += AGAIN * [float(each.seconds or 0.0)]

    def keep(self, fusion: GraphFusion) -> None:
        """Make a fusion the best one."""
        self.best = fusion
        uses = Counter(part.hash for part in fusion.parts)
        whole, *kernels = self.operators
        known = {each.workload for each in kernels}
        kernels = [replace(each, repeats=uses[each.workload]) for each in kernels]
        new = {part.hash: part for part in fusion.parts if part.hash not in known}
        self.operators = [whole, *kernels, *_operators(fusion, list(new.values()), uses)]

    def observe(self, trials: Sequence[Trial], kernel: str | None) -> None:
        """Take in a batch of trials: of a kernel's settings, or (None) of fusions."""
        for trial in trials:
            self._measured(trial.details or {})
            if kernel is not None:
                if trial.verdict:
                    self.settings[kernel] = trial.candidate.key
                continue
            if trial.reason != INCOMPLETE:
                self.tried.add(trial.candidate.key)
            if trial.verdict:
                self.keep(self.space.read(trial.candidate))

    def _measured(self, details: dict[str, Any]) -> None:
        self.add_first(KernelTime(*each) for each in details.get(FIRST, ()))
        for group in details.get(COMPARED, ()):
            self.add_compared([KernelTime(*each) for each in group])
        self.notes += details.get(NOTES, ())


def _operators(
    fusion: GraphFusion, parts: Sequence[Part], uses: Counter[str]
) -> list[TunedOperator]:
    """Kernels of a fusion as operators that are tuned."""
    graph, flops = fusion.graph, kernel_work(fusion.kernels).flops
    row = {hash_: k for k, hash_ in enumerate(fusion.kernels.hashes)}
    found = []
    for part in parts:
        nodes = list(part.nodes)
        heaviest = nodes[int(np.argmax(graph.flops[nodes]))]
        kind = OpKind(int(graph.kind[heaviest])).name.lower()
        name = f"{kind} {graph.names[heaviest]} of {len(nodes)}"
        # Moving data has no FLOP; a performance is wanted of all.
        work = max(float(flops[row[part.hash]]), 1.0)
        found.append(TunedOperator(name, part.hash, uses[part.hash], work))
    return found
