"""`tune_kernels`: a model in, what was found and checked out.

The folder's journal holds each batch of trials, as that of `go_rl.tuning.tvm.tune_network`
does: whoever is killed, or stops with Ctrl-C, loses the batch that was being measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.costs.kernels.measure.settings import FLAGS, flag_settings
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.runtime.records import AS_IT_COMES, RecordStore
from go_rl.tuning.config import GUIDED, ROUNDS, TuneConfig, TuningError
from go_rl.tuning.loop.journal import FileJournal, Journal
from go_rl.tuning.loop.progress import Watch, unwatched
from go_rl.tuning.loop.result_folder import JOURNAL, records_of
from go_rl.tuning.loop.schedulers.registry import SEQUENTIAL, WITH_BELIEF, live_scheduler
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_run import run_tuning
from go_rl.tuning.loop.tuning_state import TrialBatch
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion
from go_rl.tuning.xla.guided_tuner import kernel_tuner
from go_rl.tuning.xla.guides import Guide, guide_of
from go_rl.tuning.xla.kernel_backend import KernelBackend
from go_rl.tuning.xla.kernel_timer import KernelTimer, WorkerSource
from go_rl.tuning.xla.kernel_times import Job, KernelTimes
from go_rl.tuning.xla.outcome import Check, Tuned, TunePoint, write_tuned

FAST_MATH = "xla_cpu_enable_fast_math"
ONE_BATCH = 1e-9
"""Seconds of a slot of the scheduler `ROUNDS`: a slot has at least one batch of trials."""
ENDLESS = 10**9
"""Trials without improvement: a kernel is finished when its settings are, fusions never."""


def tune_kernels(
    program: JaxProgram,
    folder: Path,
    config: TuneConfig,
    guide: Guide | None = None,
    report: Callable[[str], None] = lambda _: None,
    records: str | Path | None = None,
    watch: Watch = unwatched,
) -> Tuned:
    """Tune a model on this machine, and leave ``tuned.json`` and ``curve.csv`` in a folder.

    Args:
        program: of the model.
        folder: where these go; a run that began here goes on.
        config: configuration of tuning.
        guide: None: the one that the configuration names.
        report: is told what is going on.
        records: store of measurements, a folder, a file or a URL, which several runs may share:
            what it knows is not measured again, and takes as long as it took then; None: the
            folder's own.
        watch: is told of each improvement, and of the end of each slot.

    Raises:
        MissingDependencyError: what the scheduler or the inner tuner needs is not installed.
        TuningError: as `guide_of` and `KernelBackend.measure`; a name is unknown, or the folder is
            of another run.
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    guide, measuring = guide or guide_of(config), config.measuring
    store_at, pace_at = records_of(records, folder)
    with RecordStore(store_at) as store, WorkerSource(program, measuring, pace_at) as source:
        budget = TuningBudget(60.0 * config.minutes)
        timer = KernelTimer(store, source, measuring, program.graph.name, budget)
        run = KernelTuning(FusionSpace(program.graph), guide, timer, budget, config, report, watch)
        tuned = run.tune(FileJournal(folder / JOURNAL, run.about))
    write_tuned(tuned, config, folder)
    return tuned


@dataclass(frozen=True)
class KernelTuning:
    """Tunes the kernels of one graph."""

    space: FusionSpace
    guide: Guide
    timer: KernelTimer
    budget: TuningBudget
    config: TuneConfig
    report: Callable[[str], None] = lambda _: None
    watch: Watch = unwatched

    @property
    def about(self) -> dict[str, Any]:
        """Facts that identify the run of a journal."""
        config = self.config
        names = ("target", "seed", "scheduler", "tuner", "cost", "ranks", "k_graph", "k_kernel",
                 "candidates")  # fmt: skip
        chosen = {name: getattr(config, name) for name in names}
        if config.scheduler in WITH_BELIEF:
            chosen["belief"] = config.belief
        return {"graph": self.space.graph.digest, "guide": self.guide.name, **chosen}

    def tune(self, journal: Journal) -> Tuned:
        """Return what is found when the time is over, or nothing is left to be tried, checked by a
        fresh measurement.

        Args:
            journal: of this run; what it holds is not measured again.
        """
        times = KernelTimes.of(self.space)
        make_tuner = kernel_tuner(times, self.guide, self.budget, self.config)
        self.budget.charge(sum((batch.seconds for batch in journal.batches()), 0.0))
        backend = KernelBackend(times, self.timer, self.budget, self.config.target)
        slots = self._slots()
        ends = run_tuning(
            backend, self._scheduler(slots), make_tuner, slots, journal, known=backend.known,
            watch=self.watch,
        )  # fmt: skip
        if not times.tried:
            raise TuningError(
                f"{self.space.graph.name}: stopped before the default fusion was measured; what "
                "was measured is kept, and the same command goes on"
            )
        if not self.budget.over and any(b.exhausted and not b.operator for b in journal.batches()):
            ends.append("Nothing new was left to be tried")
        notes = [*self.guide.notes, *times.notes, *ends]
        return self._checked(times, list(journal.batches()), notes)

    def _scheduler(self, slots: SlotConfig) -> Scheduler:
        """Sequential: each has an equal share of the time, as fusions are never finished."""
        name, share = self.config.scheduler, None
        if name == SEQUENTIAL:
            share = self.budget.seconds / (1 + self._kernels)
        return live_scheduler(name, self.config.belief, share)

    def _slots(self) -> SlotConfig:
        config = self.config
        count = max(config.k_graph, config.k_kernel)
        if not self.guide.selective and config.tuner == GUIDED:
            count = max(config.candidates, len(flag_settings()))
        slots = SlotConfig(
            seconds=self.budget.seconds, trials=config.trials, batch=count, patience=ENDLESS,
            seed=config.seed,
        )  # fmt: skip
        slot = slots.slot_seconds(1 + self._kernels)
        return replace(slots, slot=ONE_BATCH if config.scheduler == ROUNDS else slot)

    @property
    def _kernels(self) -> int:
        """Number of distinct kernels of the default fusion."""
        return len({part.hash for part in self.space.default.parts})

    def _checked(
        self, times: KernelTimes, batches: Sequence[TrialBatch], notes: list[str]
    ) -> Tuned:
        minutes, space, config = self.budget.spent / 60.0, self.space, self.config
        settings = {p.hash: times.settings[p.hash] for p in times.best.parts
                    if p.hash in times.settings}  # fmt: skip
        check = self._check(times, settings, notes)
        kept = check is not None and check.faster
        if kept and any(FAST_MATH in json.loads(s)[FLAGS] for s in settings.values()):
            notes.append("Some kernels run with fast math: their results differ in rounding")
        return Tuned(
            model=space.graph.name, guide=self.guide.name, target=config.target,
            scheduler=config.scheduler, tuner=config.tuner,
            fusion=times.best if kept else space.default,
            settings=settings if kept else {},
            seconds=times.seconds if kept else times.plain,
            kept="tuned" if kept else "default",
            check=check, curve=kernel_curve(space, batches), minutes=minutes,
            measured=self.timer.made, replayed=self.timer.replayed,
            trials=sum(len(b.trials) for b in batches if b.phase != "known"),
            candidates=len(times.tried), notes=tuple(dict.fromkeys(notes)),
        )  # fmt: skip

    def _check(
        self, times: KernelTimes, settings: dict[str, str], notes: list[str]
    ) -> Check | None:
        """Check of both times; None where there is nothing to check, or it failed."""
        default = self.space.default
        if times.best.key == default.key and not settings:
            notes.append("Nothing faster than the default was found")
            return None
        self.report("measuring the best and the default again")
        rounds = self.config.check_rounds
        check = check_alternately(self.timer, default, times.best, settings, rounds)
        if isinstance(check, str):
            notes.append(f"The default is kept: {check}")
            return None
        if not check.faster:
            notes.append("The default is kept: measured again, the best was not faster")
        return check


def kernel_curve(space: FusionSpace, batches: Sequence[TrialBatch]) -> tuple[TunePoint, ...]:
    """Return the best so far, from the default on, whenever another fusion or setting became it.

    Args:
        space: of the graph.
        batches: of the run, in order.
    """
    times, elapsed, points = KernelTimes.of(space), 0.0, list[TunePoint]()
    for batch in batches:
        elapsed += batch.seconds
        kernel = times.operators[batch.operator].workload if batch.operator else None
        times.observe(batch.trials, kernel)
        if any(trial.verdict for trial in batch.trials):
            what = times.best.origin if kernel is None else times.settings[kernel]
            points.append(TunePoint(elapsed / 60.0, times.total, times.default_total, what))
    return tuple(points)


def check_alternately(
    timer: KernelTimer,
    default: GraphFusion,
    best: GraphFusion,
    settings: Mapping[str, str],
    rounds: int,
) -> Check | str:
    """Return times of default and winner, their kernels measured again in turn, or why there is
    none.

    What won was the fastest of many noisy measurements, so these flatter it; a fresh round does
    not. Kernels that both share are measured once and count for both.

    Args:
        timer: an equal check that it has records of is not made again; checks are numbered from -1
            downwards, and share no number with what was compared while tuning.
        default: run as it comes.
        best: run under ``settings``.
        settings: by hash of kernel.
        rounds: of which each kernel's median counts.
    """
    ours = [(part.hash, settings.get(part.hash, AS_IT_COMES)) for part in best.parts]
    theirs = [(part.hash, AS_IT_COMES) for part in default.parts]
    parts = {part.hash: part for part in (*default.parts, *best.parts)}
    jobs = _in_turn(theirs, ours)
    whose = [(parts[hash_], setting) for hash_, setting in jobs]
    seconds: dict[Job, list[float]] = {job: [] for job in jobs}
    for number in range(1, rounds + 1):
        for job, record in zip(jobs, timer.again(whose, -number), strict=True):
            if record.seconds is None:
                return f"a kernel could not be timed again: {record.reason}"
            seconds[job].append(record.seconds)
    median = {job: float(np.median(times)) for job, times in seconds.items()}
    return Check(sum(median[job] for job in theirs), sum(median[job] for job in ours), rounds)


def _in_turn(one: Sequence[Job], two: Sequence[Job]) -> list[Job]:
    """All jobs, each once, from both lists by turns."""
    mixed = [job for pair in zip_longest(one, two) for job in pair if job is not None]
    return list(dict.fromkeys(mixed))
