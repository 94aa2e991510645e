"""Measuring the kernels of many models on this machine, each compiled alone by XLA.

Everything lies in one folder of a `go_rl.costs.timing.collector.Collector`: beside the records
``kernels/<model>.npz`` holds what was measured, ``programs/<model>.zip`` the same as it travels to
the process that measures (`go_rl.costs.kernels.measure.exported`), ``done`` a mark for each model
that is complete. What is there is not measured again, so a run that was cut off goes on where it
stopped. Compilation and timing happen in a worker process on a core of its own, some hundred
kernels together (`go_rl.costs.timing.rounds`), while this one cuts the next; a kernel that crashes
the worker or takes too long leaves a record with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from go_rl.core import MissingDependencyError, ReadError
from go_rl.core.files.whole_file import write_text
from go_rl.costs.kernels.measure.exported import (
    load_programs,
    part_request,
    save_programs,
    zoo_program,
)
from go_rl.costs.kernels.measure.sampling import sample_kernels
from go_rl.costs.kernels.measure.settings import flag_settings, layout_settings, with_setting
from go_rl.costs.kernels.measure.worker import KernelRequest
from go_rl.costs.timing.collector import MODEL, Asked, Collector, Report, collecting
from go_rl.costs.timing.config import CollectConfig, Varied
from go_rl.costs.timing.rounds import batches
from go_rl.costs.timing.worker import WORKER, check_worker
from go_rl.graphs.cutting.file_format import load_kernels, save_kernels
from go_rl.graphs.cutting.kernel_set import KernelSet, join_kernels
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.graphs.zoo.models.building import ZooModel
from go_rl.runtime.prefetch import prefetch
from go_rl.runtime.records import AS_IT_COMES

KERNELS, PROGRAMS = "kernels", "programs"
NODES, ASKED = "nodes", "asked"
"""Fields of a file of kernels, beside the model: the nodes of each, and how many were asked for."""
DONE = "done"


def collect_kernels(
    models: Sequence[ZooModel], folder: Path, config: CollectConfig, report: Report
) -> int:
    """Measure what is missing, and return how many measurements were made.

    Raises:
        RecordError: the folder's records cannot be read or written, or nothing can be measured on
            this platform.
        WorkerError: the core cannot be had.
    """
    with collecting(folder, config, WORKER) as collector:
        asked = [_Model(model, folder, collector) for model in models]
        if not all(model.finished for model in asked):
            check_worker(collector.worker, config, collector.full_pace)
        wanted = (each for model in asked for each in model.wanted())
        measuring = _Measuring(collector, report, len(models))
        most = config.timing.together
        for batch in batches(prefetch(wanted, most), operand_bytes, most):
            measuring.measure(batch)
        return collector.made


def operand_bytes(item: Asked | ModelEnd) -> float:
    """Return bytes that it takes to keep the operands of a kernel that is asked for."""
    request = item.request if isinstance(item, Asked) else None
    return request.operand_bytes if isinstance(request, KernelRequest) else 0.0


@dataclass(frozen=True)
class ModelEnd:
    """Marker behind the last measurement of a model."""

    model: str
    mark: Path | None
    """Says, once it is there, that the model is complete."""
    trouble: str = ""
    """Reason why the kernel is left out."""


@dataclass
class _Measuring:
    """Measures batches, and says so model by model."""

    collector: Collector
    report: Report
    models: int
    _count: Counter[str] = field(default_factory=Counter)
    _ended: int = 0

    def measure(self, batch: Iterable[Asked | ModelEnd]) -> None:
        """Measure a batch, whose items are taken when the worker is ready for them."""
        ends: list[ModelEnd] = []

        def asked() -> Iterator[Asked]:
            for item in batch:
                if isinstance(item, ModelEnd):
                    ends.append(item)
                else:
                    self._count[item.details[MODEL]] += 1
                    yield item

        self.collector.measure(asked())
        for end in ends:
            self._end(end)

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
    collector: Collector
    """Collector whose ``known`` holds all that is measured or about to be."""

    @property
    def config(self) -> CollectConfig:
        """Configuration of the measurement."""
        return self.collector.config

    def wanted(self) -> Iterator[Asked | ModelEnd]:
        """Yield what is missing, and that this was all."""
        try:
            grown = self._sample()
            if not self._file.exists() or (self._mark.exists() and not grown):
                yield ModelEnd(self.model.name, None)
                return
            kernels, about = load_kernels(self._file)
            before = len(self._requests)
            for k in self._chosen(kernels):
                yield from self._missing(kernels.hashes[k], about[NODES][k])
            if len(self._requests) > before:
                save_programs(self._requests, self._programs, self.config)
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
        """Number of kernels that earlier runs asked for."""
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
    def _requests(self) -> dict[str, KernelRequest]:
        """Kernels, by hash, that need not be traced."""
        return load_programs(self._programs, self.config, self.collector.full_pace)

    def _request(self, hash_: str, nodes: Sequence[int]) -> KernelRequest | str:
        if hash_ not in self._requests:
            request = part_request(self._program, nodes, self.config, self.collector.full_pace)
            if isinstance(request, str):
                return request
            self._requests[hash_] = request
        return self._requests[hash_]

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
        measured = {hash_ for hash_, _, _ in self.collector.known}
        known = measured.union(*(each.hashes for each in sets))
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
        """Kernels that are small enough; of them the share with the least hashes, a random choice
        that stays the same."""
        able = range(kernels.num_kernels)
        if self.config.vary != "fusion":
            known = self.collector.store.find(self.config.target, kernels.hashes, 0)
            seconds = {r.workload: r.seconds for r in known if not r.setting and r.seconds}
            least, most = self.config.least_seconds, self.config.most_seconds
            able = [k for k in able if least <= seconds.get(kernels.hashes[k], 0.0) <= most]
        hashes = sorted(kernels.hashes[k] for k in able)
        chosen = set(hashes[: round(self.config.share * len(hashes))])
        return [k for k in able if kernels.hashes[k] in chosen]

    def _missing(self, hash_: str, nodes: Sequence[int]) -> Iterator[Asked]:
        """Yield the measurements of a kernel under every setting that is missing."""
        vary, lacks = self.config.vary, self.collector.lacks
        if vary == "fusion" and not lacks(hash_, AS_IT_COMES):
            return
        request = self._request(hash_, nodes)
        if isinstance(request, str):
            yield self._wanted(hash_, AS_IT_COMES, request)
            return
        for setting in _settings(vary, request, hash_):
            if lacks(hash_, setting):
                yield self._wanted(hash_, setting, with_setting(request, setting))

    def _wanted(self, hash_: str, setting: str, request: KernelRequest | str) -> Asked:
        self.collector.known.add((hash_, setting, self.config.round))
        return Asked(hash_, setting, request, {MODEL: self.model.name})


def _settings(vary: Varied, kernel: KernelRequest, hash_: str) -> list[str]:
    if vary == "flags":
        return flag_settings()
    return layout_settings(kernel, int(hash_[:8], 16)) if vary == "layouts" else [""]
