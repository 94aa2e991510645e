"""Measuring the kernels of many models on this machine, each compiled alone by XLA.

Everything lies in one folder: ``records.sqlite`` holds the times (`go_rl.runtime.records`),
``kernels/<model>.npz`` what was measured, ``programs/<model>.zip`` the same as it travels to the
process that measures (`go_rl.costs.kernels.measure.programs`), ``done`` a mark for each model that
is complete, ``pace-<target>.json`` what `go_rl.costs.timing.core_speed.full_pace` found when it was
first asked. What is there is not measured again, so a run that was cut off goes on where it
stopped. Compilation and timing happen in a worker process on a core of its own, some hundred
kernels together (`go_rl.costs.kernels.measure.rounds`), while this one cuts the next; a kernel that
crashes the worker or takes too long leaves a record with the reason. A record is kept as soon as
three visits have timed its kernel, and again when the last one has: whoever stops the run loses
seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from go_rl.core import MissingDependencyError, ReadError
from go_rl.core.files.whole_file import write_text
from go_rl.costs.kernels.measure.exported import part_task, zoo_program
from go_rl.costs.kernels.measure.programs import load_programs, save_programs
from go_rl.costs.kernels.measure.rounds import PARTIAL, Outcome, batches, measure_together
from go_rl.costs.kernels.measure.sampling import sample_kernels
from go_rl.costs.kernels.measure.settings import flag_settings, layout_settings, with_setting
from go_rl.costs.kernels.measure.worker import KernelTask
from go_rl.costs.timing.config import CollectConfig, Varied
from go_rl.costs.timing.worker import (
    WORKER,
    check_worker,
    folder_pace,
    worker_core,
    worker_environment,
)
from go_rl.graphs.cutting import KernelSet, join_kernels
from go_rl.graphs.cutting.file_format import load_kernels, save_kernels
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.graphs.zoo.models.zoo_model import ZooModel
from go_rl.runtime.prefetch import prefetch
from go_rl.runtime.records import RECORDS, Record, RecordStore
from go_rl.runtime.warm_worker import WarmWorker

KERNELS, PROGRAMS = "kernels", "programs"
NODES, MODEL, ASKED = "nodes", "model", "asked"
"""What a file of kernels tells: the nodes of each, the model, and how many were asked for."""
DONE = "done"
Report = Callable[[str], None]


def collect_kernels(
    models: Sequence[ZooModel], folder: Path, config: CollectConfig, report: Report
) -> int:
    """Measure what is missing, and return how many measurements were made.

    Raises:
        RecordError: the folder's records cannot be read or written, or nothing can be measured on
            this platform.
        WorkerError: the core cannot be had.
    """
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(
            WORKER, core=worker_core(config), environment=worker_environment(config)
        ) as worker,
    ):
        full_pace = folder_pace(folder, config)
        known = whole_keys(store, config.target)
        asked = [_Model(model, folder, config, store, full_pace, known) for model in models]
        if not all(model.finished for model in asked):
            check_worker(worker, config, full_pace)
        wanted = (each for model in asked for each in model.wanted())
        measuring = _Measuring(worker, store, config, report, len(models))
        most = config.timing.together
        for batch in batches(prefetch(wanted, most), lambda item: item.size, most):
            measuring.measure(batch)
    return measuring.made


@dataclass(frozen=True)
class Wanted:
    """A measurement to be made."""

    model: str
    hash: str
    setting: str
    task: KernelTask | str
    """Or why there is none."""

    @property
    def size(self) -> float:
        """Bytes that it takes to keep the operands."""
        return 0.0 if isinstance(self.task, str) else self.task.operand_bytes


@dataclass(frozen=True)
class ModelEnd:
    """Behind the last measurement of a model."""

    model: str
    mark: Path | None
    """Says, once it is there, that the model is complete."""
    trouble: str = ""
    """Why it is left out."""
    size: float = 0.0


@dataclass
class _Measuring:
    """Measures batches, keeps their records, and says so model by model."""

    worker: WarmWorker
    store: RecordStore
    config: CollectConfig
    report: Report
    models: int
    made: int = 0
    _count: Counter[str] = field(default_factory=Counter)
    _ended: int = 0

    def measure(self, batch: Iterable[Wanted | ModelEnd]) -> None:
        """Measure a batch, whose items are taken when the worker is ready for them."""
        timed: list[Wanted] = []
        ends: list[ModelEnd] = []

        def tasks() -> Iterator[KernelTask]:
            for item in batch:
                if isinstance(item, ModelEnd):
                    ends.append(item)
                    continue
                self.made += 1
                self._count[item.model] += 1
                if isinstance(item.task, str):
                    self._keep([(item, item.task)])
                else:
                    timed.append(item)
                    yield item.task

        def keep(outcomes: Mapping[int, Outcome]) -> None:
            self._keep((timed[i], outcome) for i, outcome in outcomes.items())

        outcomes = measure_together(self.worker, tasks(), self.config, keep)
        self._keep(zip(timed, outcomes, strict=True))
        for end in ends:
            self._end(end)

    def _keep(self, outcomes: Iterable[tuple[Wanted, Outcome]]) -> None:
        self.store.add(
            record_of((w.hash, w.setting), self.config, outcome, {MODEL: w.model})
            for w, outcome in outcomes
        )

    def _end(self, end: ModelEnd) -> None:
        if end.mark:
            write_text(end.mark, "")
        self._ended += 1
        said = end.trouble or f"{self._count[end.model]} measured"
        self.report(f"{self._ended}/{self.models} {end.model}: {said}")


@dataclass(frozen=True)
class _Model:
    """The kernels of one model, and what is known of them."""

    model: ZooModel
    folder: Path
    config: CollectConfig
    store: RecordStore
    full_pace: float
    known: set[tuple[str, str, int]]
    """Kernel, setting and round of all that is measured or about to be."""

    def wanted(self) -> Iterator[Wanted | ModelEnd]:
        """Yield what is missing, and that this was all."""
        try:
            grown = self._sample()
            if not self._file.exists() or (self._mark.exists() and not grown):
                yield ModelEnd(self.model.name, None)
                return
            kernels, about = load_kernels(self._file)
            before = len(self._tasks)
            for k in self._chosen(kernels):
                yield from self._missing(kernels.hashes[k], about[NODES][k])
            if len(self._tasks) > before:
                save_programs(self._tasks, self._programs, self.config)
        except (ReadError, MissingDependencyError) as error:
            yield ModelEnd(self.model.name, None, f"left out: {error}")
        else:
            yield ModelEnd(self.model.name, self._mark)

    @property
    def finished(self) -> bool:
        """Whether all that is asked for was measured in earlier runs."""
        with suppress(ReadError):  # a damaged file is named when its model's turn comes
            return self._mark.exists() and not self._lacks
        return False

    @property
    def _mark(self) -> Path:
        return self.folder / DONE / f"{self._run_name}--{self.model.name}"

    @property
    def _lacks(self) -> bool:
        """Whether more kernels are to be sampled; other settings and rounds take what is there."""
        first = self.config.vary == "fusion" and not self.config.round
        return first and self._asked < self.config.sampling.kernels

    @property
    def _asked(self) -> int:
        """How many kernels earlier runs asked for."""
        if not self._file.exists():
            return 0
        kernels, about = load_kernels(self._file)
        return int(about.get(ASKED, kernels.num_kernels))

    @property
    def _file(self) -> Path:
        return self.folder / KERNELS / f"{self.model.name}.npz"

    @property
    def _run_name(self) -> str:
        config = self.config
        return f"{config.target}-{config.vary}-{config.round}-{config.share:g}"

    @cached_property
    def _program(self) -> JaxProgram:
        return zoo_program(self.model)

    @property
    def _programs(self) -> Path:
        return self.folder / PROGRAMS / f"{self.model.name}.zip"

    @cached_property
    def _tasks(self) -> dict[str, KernelTask]:
        """Kernels, by hash, that need not be traced."""
        return load_programs(self._programs, self.config, self.full_pace)

    def _task(self, hash_: str, nodes: Sequence[int]) -> KernelTask | str:
        if hash_ not in self._tasks:
            task = part_task(self._program, nodes, self.config, self.full_pace)
            if isinstance(task, str):
                return task
            self._tasks[hash_] = task
        return self._tasks[hash_]

    def _sample(self) -> bool:
        """Choose as many kernels as the file lacks, and keep them behind those that it has; False:
        nothing is to be chosen, or none is new."""
        if not self._lacks:
            return False
        sampling, asked = self.config.sampling, self._asked
        sets: list[KernelSet] = []
        nodes: list[Sequence[int]] = []
        if self._file.exists():
            kernels, about = load_kernels(self._file)
            sets, nodes = [kernels], list(about[NODES])
        known = {hash_ for hash_, _, _ in self.known}.union(*(each.hashes for each in sets))
        rest = replace(sampling, kernels=sampling.kernels - asked, seed=sampling.seed + asked)
        sampled = sample_kernels(self._program.graph, rest, known)
        if sampled is not None:
            sets.append(sampled.kernels)
            nodes.extend(sampled.nodes)
        if sets:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            about = {MODEL: self.model.name, NODES: [list(each) for each in nodes]}
            save_kernels(join_kernels(sets), self._file, {**about, ASKED: sampling.kernels})
        if sampled is not None:
            for mark in (self.folder / DONE).glob(f"*--{self.model.name}"):
                mark.unlink()  # of other rounds and settings: they have a share of more kernels
        return sampled is not None

    def _chosen(self, kernels: KernelSet) -> list[int]:
        """What is small enough, and the share of it."""
        able = range(kernels.num_kernels)
        if self.config.vary != "fusion":
            known = self.store.find(self.config.target, kernels.hashes, 0)
            seconds = {r.workload: r.seconds for r in known if not r.setting and r.seconds}
            least, most = self.config.least_seconds, self.config.most_seconds
            able = [k for k in able if least <= seconds.get(kernels.hashes[k], 0.0) <= most]
        chosen = set(first_by_hash([kernels.hashes[k] for k in able], self.config.share))
        return [k for k in able if kernels.hashes[k] in chosen]

    def _missing(self, hash_: str, nodes: Sequence[int]) -> Iterator[Wanted]:
        """Yield the measurements of a kernel under every setting that is missing."""
        name, round_ = self.model.name, self.config.round
        if self.config.vary == "fusion" and (hash_, "", round_) in self.known:
            return
        task = self._task(hash_, nodes)
        if isinstance(task, str):
            self.known.add((hash_, "", round_))
            yield Wanted(name, hash_, "", task)
            return
        for setting in _settings(self.config.vary, task, hash_):
            if (hash_, setting, round_) not in self.known:
                self.known.add((hash_, setting, round_))
                yield Wanted(name, hash_, setting, with_setting(task, setting))


def whole_keys(store: RecordStore, target: str) -> set[tuple[str, str, int]]:
    """Return workload, setting and round of all that need not be measured again: what was cut off
    before its last visit has a record, and is made whole by the next run."""
    return {
        (record.workload, record.setting, record.round)
        for record in store.find(target)
        if not record.details.get(PARTIAL)
    }


def first_by_hash(hashes: Sequence[str], share: float) -> list[str]:
    """Return the share with the least hashes: a random choice that stays the same."""
    return sorted(hashes)[: round(share * len(hashes))]


def record_of(
    key: tuple[str, str],
    config: CollectConfig,
    outcome: dict[str, Any] | str,
    details: Mapping[str, Any],
) -> Record:
    """Return the record of a measurement, or of why there is none.

    Args:
        key: hash of the kernel, and the setting.
        config: target and round.
        outcome: what `outcome_of` gave.
        details: what else is to be kept.
    """
    common: dict[str, Any] = {
        "workload": key[0], "setting": key[1], "target": config.target, "round": config.round,
    }  # fmt: skip
    if isinstance(outcome, str):
        return Record(**common, reason=outcome, details=details)
    return Record(
        **common,
        seconds=outcome["seconds"],
        spread=outcome["spread"],
        repeats=outcome["calls"],
        details={
            **details,
            "compile_seconds": round(outcome["compile_seconds"], 4),
            "median": float(f"{outcome['median']:.5g}"),
            "slowed": round(outcome["slowed"], 3),
            "away": round(outcome["away"], 3),
            "xla": outcome.get("xla", {}),
            **({PARTIAL: True} if outcome.get(PARTIAL) else {}),
        },
    )


def _settings(vary: Varied, kernel: KernelTask, hash_: str) -> list[str]:
    if vary == "flags":
        return flag_settings()
    return layout_settings(kernel, int(hash_[:8], 16)) if vary == "layouts" else [""]
