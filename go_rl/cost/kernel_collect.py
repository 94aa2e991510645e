"""Measuring the kernels of many models on this machine, one by one, each compiled alone by XLA.

Everything lies in one folder: ``records.sqlite`` holds the times (`go_rl.records`),
``kernels/<model>.npz`` what was measured, ``done`` a mark for each model that is complete,
``pace-<target>.json`` what `go_rl.cost.pace.full_pace` found when it was first asked. What is
there is not measured again, so a run that was cut off goes on where it stopped. Compilation and
timing happen in a worker process on a core of its own; a kernel that crashes it or takes too long
leaves a record with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core import ReadError, RecordError
from go_rl.core.plan import write_text
from go_rl.core.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout
from go_rl.cost.collect_config import CollectConfig, Task
from go_rl.cost.kernel_sampling import sample_kernels
from go_rl.cost.kernel_settings import flag_settings, layout_settings, with_setting
from go_rl.cost.kernel_worker import MEMORY, KernelTask, Operand
from go_rl.kernels import KernelSet
from go_rl.kernels.kernel_file import load_kernels, save_kernels
from go_rl.readers.jax_inline import JaxOptions
from go_rl.readers.jax_stages import JaxProgram, Stage, jax_program
from go_rl.records import Record, RecordStore
from go_rl.zoo.freeze import UNROLL_LIMIT
from go_rl.zoo.models.zoo_model import ZooModel

WORKER = "go_rl.cost.kernel_worker:measure_kernel"
PACE_WORKER, FULL_PACE = "go_rl.cost.pace:full_pace", "full_pace_seconds"
RECORDS, KERNELS = "records.sqlite", "kernels"
NODES, MODEL = "nodes", "model"
DONE = "done"
START_SECONDS = 120.0
"""What starting a worker and its first kernel may take."""
Report = Callable[[str], None]
Types = tuple[jax.ShapeDtypeStruct, ...]


def collect_kernels(
    models: Sequence[ZooModel], folder: Path, config: CollectConfig, report: Report
) -> int:
    """Measure what is missing, and return how many measurements were made.

    Raises:
        RecordError: the folder's records cannot be read or written, or nothing can be measured on
            this platform.
        WorkerError: the core cannot be had.
    """
    made = 0
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(
            WORKER, core=worker_core(config), environment=worker_environment(config)
        ) as worker,
    ):
        full_pace = folder_pace(folder, config)
        check_worker(worker, config, full_pace)
        for i, model in enumerate(models):
            try:
                count = _Model(model, folder, config, store, full_pace).measure(worker)
            except ReadError as error:
                report(f"{i + 1}/{len(models)} {model.name}: left out: {error}")
                continue
            made += count
            report(f"{i + 1}/{len(models)} {model.name}: {count} measured")
    return made


def folder_pace(folder: Path, config: CollectConfig) -> float:
    """Return the full pace of the core, as all measurements in a folder on one target know it.

    Raises:
        RecordError: the file that keeps it is damaged.
        WorkerError: the core cannot be had.
    """
    path = folder / f"pace-{config.target}.json"
    if path.exists():
        return _read_pace(path)
    with WarmWorker(PACE_WORKER, core=worker_core(config)) as worker:
        found = float(worker.call(config.timing.pace_seconds, START_SECONDS))
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({FULL_PACE: found}) + "\n")
    return found


def _read_pace(path: Path) -> float:
    try:
        found = float(json.loads(path.read_text())[FULL_PACE])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: must hold a number {FULL_PACE!r} ({error})") from error
    if not 0 < found < float("inf"):
        raise RecordError(f"{path}: {FULL_PACE} must be seconds above 0, not {found}")
    return found


def check_worker(worker: WarmWorker, config: CollectConfig, full_pace: float) -> None:
    """Measure a sum: what fails for every kernel must not become a record of each.

    Raises:
        RecordError: nothing can be measured on this platform.
        WorkerError: the core cannot be had.
    """
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    stage = (lambda weights, inputs: (inputs[0] + 1.0,)), (), (one,)
    try:
        task = _task(*stage, config, full_pace)
        outcome = outcome_of(worker, task, START_SECONDS)
    except ValueError as error:  # of jax.export: no such platform
        outcome = _sentence(error)
    if isinstance(outcome, str):
        raise RecordError(f"nothing can be measured on platform {config.platform!r}: {outcome}")


@dataclass(frozen=True)
class _Model:
    """The kernels of one model, and what is known of them."""

    model: ZooModel
    folder: Path
    config: CollectConfig
    store: RecordStore
    full_pace: float

    def measure(self, worker: WarmWorker) -> int:
        """Measure what is missing."""
        mark = self.folder / DONE / f"{self._run_name}--{self.model.name}"
        if mark.exists() or not (self._file.exists() or self._sample()):
            return 0
        kernels, about = load_kernels(self._file)
        count, wanted = 0, self._wanted(kernels)
        for k in wanted:
            for setting, outcome in self._outcomes(kernels.hashes[k], about[NODES][k], worker):
                key = (kernels.hashes[k], setting)
                details = {MODEL: self.model.name}
                self.store.add([record_of(key, self.config, outcome, details)])
                count += 1
        write_text(mark, "")
        return count

    @property
    def _file(self) -> Path:
        return self.folder / KERNELS / f"{self.model.name}.npz"

    @property
    def _run_name(self) -> str:
        config = self.config
        return f"{config.target}-{config.task}-{config.round}-{config.share:g}"

    @cached_property
    def _program(self) -> JaxProgram:
        return zoo_program(self.model)

    def _sample(self) -> bool:
        """Choose kernels and keep them; False: nothing is to be sampled, or none is new."""
        if self.config.round or self.config.task != "fusion":
            return False
        known = {hash_ for hash_, _, _ in self._known}
        sampled = sample_kernels(self._program.graph, self.config.sampling, known)
        if sampled is None:
            return False
        self._file.parent.mkdir(parents=True, exist_ok=True)
        about = {MODEL: self.model.name, NODES: [list(nodes) for nodes in sampled.nodes]}
        save_kernels(sampled.kernels, self._file, about)
        return True

    def _wanted(self, kernels: KernelSet) -> list[int]:
        """What is small enough, and the share of it."""
        able = range(kernels.num_kernels)
        if self.config.task != "fusion":
            known = self.store.find(self.config.target, kernels.hashes, 0)
            seconds = {r.workload: r.seconds for r in known if not r.setting and r.seconds}
            least, most = self.config.least_seconds, self.config.most_seconds
            able = [k for k in able if least <= seconds.get(kernels.hashes[k], 0.0) <= most]
        chosen = set(first_by_hash([kernels.hashes[k] for k in able], self.config.share))
        return [k for k in able if kernels.hashes[k] in chosen]

    def _outcomes(
        self, hash_: str, nodes: Sequence[int], worker: WarmWorker
    ) -> Iterator[tuple[str, dict[str, Any] | str]]:
        """Measure a kernel under every setting that is missing: what the worker says, or why there
        is no time."""
        done = self._known
        if self.config.task == "fusion" and (hash_, "", self.config.round) in done:
            return
        task = part_task(self._program, nodes, self.config, self.full_pace)
        if isinstance(task, str):
            yield "", task
            return
        for setting in _settings(self.config.task, task, hash_):
            if (hash_, setting, self.config.round) not in done:
                yield setting, outcome_of(worker, with_setting(task, setting), self.config.timeout)

    @cached_property
    def _known(self) -> set[tuple[str, str, int]]:
        return self.store.keys(self.config.target)


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
            "slowed": round(outcome["slowed"], 3),
            "xla": outcome.get("xla", {}),
        },
    )


def _settings(task: Task, kernel: KernelTask, hash_: str) -> list[str]:
    if task == "flags":
        return flag_settings()
    return layout_settings(kernel, int(hash_[:8], 16)) if task == "layouts" else [""]


def outcome_of(worker: WarmWorker, task: Any, timeout: float) -> dict[str, Any] | str:
    """Return what the worker says, or why it says nothing."""
    try:
        return worker.call(task, timeout)
    except WorkerTimeout:
        return f"took more than {timeout:g} s"
    except (WorkerDied, WorkerFailed) as error:
        return _sentence(error)


def zoo_program(model: ZooModel) -> JaxProgram:
    """Return a model of the zoo as a program that can be cut into its kernels."""
    function, args, weights = model.build()
    options = JaxOptions(unroll_limit=UNROLL_LIMIT)
    return jax_program(function, args, weights=weights, name=model.name, options=options)


def part_task(
    program: JaxProgram, nodes: Sequence[int], config: CollectConfig, full_pace: float
) -> KernelTask | str:
    """Return some nodes of a program as they travel to a worker, or why they cannot."""
    try:
        return kernel_task(program.part(nodes), config, full_pace)
    except Exception as error:  # whatever JAX cannot export
        return f"cannot be exported: {_sentence(error)}"


def kernel_task(stage: Stage, config: CollectConfig, full_pace: float) -> KernelTask:
    """Return a stage as it travels to a worker.

    Raises:
        ValueError: an operand is no plain array, such as a random key.
    """
    return _task(stage.function, stage.weight_types, stage.input_types, config, full_pace)


def _task(
    function: Callable[..., Any],
    weights: Types,
    inputs: Types,
    config: CollectConfig,
    full_pace: float,
) -> KernelTask:
    exported = jax.export.export(jax.jit(function), platforms=(config.platform,))
    return KernelTask(
        program=bytes(exported(weights, inputs).serialize()),
        weights=tuple(map(_operand, weights)),
        inputs=tuple(map(_operand, inputs)),
        full_pace=full_pace,
        timing=config.timing,
    )


def _operand(array: jax.ShapeDtypeStruct) -> Operand:
    if jnp.issubdtype(array.dtype, jax.dtypes.extended):
        raise ValueError(f"an operand is of type {array.dtype}")
    return tuple(array.shape), str(array.dtype)


def _sentence(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def worker_environment(config: CollectConfig) -> dict[str, str]:
    """Return the variables that a worker's process is started with."""
    return {"JAX_PLATFORMS": config.platform, **MEMORY}


def worker_core(config: CollectConfig) -> int | None:
    """Return the core that measures: the last one of this process unless told; None: any."""
    if config.core is not None or not hasattr(os, "sched_getaffinity"):
        return config.core
    return max(os.sched_getaffinity(0))
