"""`run_stages`: exported stages run as a pipeline of processes, compared with the whole model."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from go_rl.core import ExecutionError, MissingDependencyError
from go_rl.plans.pipeline.config import RunConfig
from go_rl.plans.pipeline.worker import (
    Block,
    Channel,
    DeviceTask,
    StageTask,
    StageTimes,
    serve,
    session_of,
)
from go_rl.plans.stages.manifest import FROM_USER, Manifest, read_manifest

START_SECONDS = 120.0
"""Seconds that all stages may take to load."""
CONTEXT = multiprocessing.get_context("spawn")
FLOOR = 1e-3
"""Share of the largest number of an output below which its differences count absolutely."""


@dataclass(frozen=True)
class StageRun:
    """A stage that was run; seconds a sample."""

    stage: int
    device: int
    core: int
    nodes: int
    busy_seconds: float
    sending_seconds: float
    waiting_seconds: float
    predicted_seconds: float | None
    """By the plan, on its own hardware."""


@dataclass(frozen=True)
class OutputError:
    """Differences of an output from the whole model's."""

    output: str
    max_absolute: float
    max_relative: float
    """Of numbers of at least `FLOOR` of the largest; smaller ones are measured against that."""


@dataclass(frozen=True)
class PipelineRun:
    """Stages that were run."""

    stages: tuple[StageRun, ...]
    throughput: float
    """Samples a second, of the steady pipeline."""
    predicted_throughput: float | None
    """By the plan, on its own hardware."""
    outputs: tuple[OutputError, ...] | None
    """None: the whole model was not run."""
    whole_throughput: float | None
    """Samples a second of the whole model in one process that has all cores."""
    notes: tuple[str, ...] = ()

    @property
    def max_relative_error(self) -> float | None:
        """The largest of all outputs; None: the whole model was not run."""
        if self.outputs is None:
            return None
        return max((each.max_relative for each in self.outputs), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Return one JSON object."""
        return {**asdict(self), "max_relative_error": self.max_relative_error}


def run_stages(
    folder: Path,
    inputs: Mapping[str, np.ndarray],
    settings: RunConfig,
    whole: Path | None = None,
) -> PipelineRun:
    """Run the stages of a folder, each on a core of this machine, with the same inputs for every
    sample.

    Args:
        folder: with the manifest.
        inputs: of the model, by name.
        settings: see there.
        whole: the model itself; its outputs are compared, its throughput is measured.

    Raises:
        MissingDependencyError: onnxruntime is not installed, or cannot be imported.
        PlanError: no manifest.
        ExecutionError: a stage cannot be loaded, dies, or makes no progress; none stays behind.
    """
    _check_onnxruntime()
    manifest = read_manifest(folder)
    cores = sorted(os.sched_getaffinity(0))
    with _processes(folder, manifest, cores, settings) as running:
        made = running.probe(inputs)
        times = running.pipeline(made)
    reference = None if whole is None else _Whole(whole, inputs, len(cores), settings.as_written)
    outputs = None if reference is None else tuple(reference.compare(manifest, made))
    devices = sorted({stage.device for stage in manifest.stages})
    stages = tuple(
        StageRun(
            number, stage.device, cores[devices.index(stage.device) % len(cores)], stage.nodes,
            took.busy / settings.samples, took.sending / settings.samples,
            took.waiting / settings.samples,
            stage.predicted_seconds,
        )
        for number, (stage, took) in enumerate(zip(manifest.stages, times, strict=True))
    )  # fmt: skip
    return PipelineRun(
        stages, _throughput(times), manifest.predicted_throughput, outputs,
        None if reference is None else reference.throughput(settings),
        _notes(len(devices), len(cores)),
    )  # fmt: skip


def _check_onnxruntime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"stages are run by onnxruntime, which cannot be imported ({error}); install it with "
            "pip install 'go_rl[onnxruntime]'"
        ) from error


def _notes(devices: int, cores: int) -> tuple[str, ...]:
    if devices <= cores:
        return ()
    return (f"{devices} devices share {cores} cores: throughput says nothing of the plan",)


def _throughput(times: Sequence[StageTimes]) -> float:
    """Samples a second between the first and the last timed sample of the slowest stage."""
    ends = max((took.ends for took in times), key=lambda each: each[-1])
    return (len(ends) - 1) / max(ends[-1] - ends[0], 1e-9)


@contextmanager
def _processes(
    folder: Path, manifest: Manifest, cores: Sequence[int], settings: RunConfig
) -> Iterator[_Running]:
    running = _Running(manifest, settings)
    try:
        running.start(folder, cores)
        yield running
    finally:
        running.stop()


@contextmanager
def _apart() -> Iterator[None]:
    """A block whose new processes neither run the user's script again nor hear its Ctrl-C.

    A script without ``if __name__ == "__main__"`` would start the stages of stages.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.modules["__main__"] = main


class _Running:
    """The processes of a run, their pipes and shared memory."""

    def __init__(self, manifest: Manifest, settings: RunConfig) -> None:
        self.manifest, self.settings = manifest, settings
        self.channels = [
            (tensor.sender, receiver, Channel(
                tensor.name, CONTEXT.Semaphore(settings.slots), CONTEXT.Semaphore(0)
            ))
            for receiver, stage in enumerate(manifest.stages)
            for tensor in stage.inputs
            if tensor.sender != FROM_USER
        ]  # fmt: skip
        self.devices = sorted({stage.device for stage in manifest.stages})
        self.processes: list[Any] = []
        """A process a device, in the order of `devices`."""
        self.pipes: list[Connection] = []
        self.lifelines: list[Connection] = []
        self.memories: list[SharedMemory] = []

    def start(self, folder: Path, cores: Sequence[int]) -> None:
        """Start a process a device; wait until all have loaded."""
        for place, device in enumerate(self.devices):
            ours, theirs = CONTEXT.Pipe()
            lifeline, held = CONTEXT.Pipe(duplex=False)
            stages = {
                number: StageTask(
                    str(folder / stage.file), self._of(number, 1), self._of(number, 0)
                )
                for number, stage in enumerate(self.manifest.stages)
                if stage.device == device
            }
            core, settings = cores[place % len(cores)], self.settings
            task = DeviceTask(core, stages, settings.timeout, settings.as_written)
            process = CONTEXT.Process(target=serve, args=(task, theirs, lifeline), daemon=True)
            with _apart():
                process.start()
            theirs.close()
            lifeline.close()
            self.lifelines.append(held)
            self.processes.append(process)
            self.pipes.append(ours)
        for place in range(len(self.pipes)):
            self._answer(place, START_SECONDS)

    def _of(self, stage: int, side: int) -> tuple[tuple[int, Channel], ...]:
        """Channels that a stage sends (side 0) or receives (side 1)."""
        return tuple(
            (number, entry[2]) for number, entry in enumerate(self.channels) if entry[side] == stage
        )

    def probe(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run one sample through all stages, one after the other; return all tensors by name."""
        made = dict(inputs)
        for number, stage in enumerate(self.manifest.stages):
            wanted = {tensor.name: made[tensor.name] for tensor in stage.inputs}
            place = self.devices.index(stage.device)
            self._ask(place, "probe", (number, wanted))
            made.update(self._answer(place, self.settings.timeout))
        return made

    def pipeline(self, made: Mapping[str, np.ndarray]) -> list[StageTimes]:
        """Run all samples; return the times of each stage."""
        blocks = [self._block(channel.name, made[channel.name]) for *_, channel in self.channels]
        counts = self.settings.warm_up, self.settings.samples
        for place, device in enumerate(self.devices):
            inside = [n for n, each in enumerate(self.manifest.stages) if each.device == device]
            own = {n: blocks[n] for at in inside for side in (0, 1) for n, _ in self._of(at, side)}
            self._ask(place, "pipeline", (own, *counts))
        found: dict[int, StageTimes] = {}
        left = set(range(len(self.pipes)))
        while left:
            for place in self._ready(sorted(left)):
                found |= self._answer(place, self.settings.timeout)
                left.discard(place)
        return [found[number] for number in range(len(self.manifest.stages))]

    def _block(self, name: str, array: np.ndarray) -> Block:
        if array.dtype.hasobject:
            raise ExecutionError(
                f"tensor {name!r} is text, which goes to no other stage here; keep its producer "
                "and its readers on one device (--fixed)"
            )
        slots = self.settings.slots
        memory = SharedMemory(create=True, size=max(1, array.nbytes * slots))
        self.memories.append(memory)
        return Block(memory.name, array.shape, array.dtype.str, slots)

    def _ready(self, places: Sequence[int]) -> list[int]:
        """The processes that have something to say, or have ended."""
        waiting: dict[Any, int] = {self.pipes[p]: p for p in places}
        waiting |= {self.processes[p].sentinel: p for p in places}
        return sorted({waiting[each] for each in wait(list(waiting))})

    def _ask(self, place: int, word: str, content: Any) -> None:
        """Send a request; a process that is gone says so when it is asked for the answer."""
        with suppress(BrokenPipeError):
            self.pipes[place].send((word, content))

    def _name(self, place: int, number: int | None = None) -> str:
        """A process, by the stage that it is at or by all of them, in words."""
        device = self.devices[place]
        stages = [
            (n, each) for n, each in enumerate(self.manifest.stages)
            if each.device == device and number in (None, n)
        ]  # fmt: skip
        (first, stage), *others = stages
        more = f" and {len(others)} more" if others else ""
        return f"stage {first} ({stage.file}{more}, device {device})"

    def _answer(self, place: int, timeout: float) -> Any:
        """What a process answers."""
        pipe = self.pipes[place]
        deadline = time.monotonic() + timeout
        while not pipe.poll(0.1):
            if not self.processes[place].is_alive() and not pipe.poll(0):
                raise self._death(place)
            if time.monotonic() > deadline:
                raise ExecutionError(
                    f"{self._name(place)} made no progress for {timeout:g} s; the run was ended"
                )
        try:
            word, content = pipe.recv()
        except (EOFError, OSError) as error:
            raise self._death(place) from error
        if word == "failed":
            raise ExecutionError(f"{self._name(place, content[0])}: {content[1]}")
        return content

    def _death(self, place: int) -> ExecutionError:
        self.processes[place].join(1)
        code = self.processes[place].exitcode
        cause = f"exit code {code}"
        if code is not None and code < 0:
            cause = f"killed by {signal.Signals(-code).name}"
        return ExecutionError(f"{self._name(place)} died ({cause}); the run was ended")

    def stop(self) -> None:
        """End all processes and free the memory."""
        for pipe in (*self.pipes, *self.lifelines):
            pipe.close()
        for process in self.processes:
            process.join(0.2)
            if process.is_alive():
                process.kill()
                process.join()
        for memory in self.memories:
            memory.close()
            memory.unlink()


class _Whole:
    """The whole model in this process."""

    def __init__(
        self, path: Path, inputs: Mapping[str, np.ndarray], threads: int, as_written: bool
    ) -> None:
        try:
            self.session = session_of(str(path), threads, as_written)
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise ExecutionError(f"{path}: onnxruntime refuses the model ({reason})") from error
        self.feeds = {
            value.name: inputs[value.name] if value.name in inputs else _unread(value)
            for value in self.session.get_inputs()
        }

    def compare(self, manifest: Manifest, made: Mapping[str, np.ndarray]) -> Iterator[OutputError]:
        """Yield the differences of each output."""
        names = [tensor.name for tensor in manifest.outputs]
        for name, expected in zip(names, self.session.run(names, self.feeds), strict=True):
            yield _difference(name, np.asarray(made[name]), np.asarray(expected))

    def throughput(self, settings: RunConfig) -> float:
        """Return samples a second."""
        for _ in range(settings.warm_up):
            self.session.run(None, self.feeds)
        begun = time.perf_counter()
        for _ in range(settings.samples):
            self.session.run(None, self.feeds)
        return settings.samples / (time.perf_counter() - begun)


def _unread(value: Any) -> np.ndarray:
    """An input that no stage reads, and onnxruntime wants: zeros, each open extent 1."""
    word = value.type.removeprefix("tensor(").removesuffix(")")
    shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
    return np.zeros(shape, {"float": "f4", "double": "f8", "string": "O"}.get(word, word))


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> OutputError:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ExecutionError(
            f"output {name!r} is {found.dtype} {list(found.shape)}; the whole model makes "
            f"{expected.dtype} {list(expected.shape)}"
        )
    if not np.issubdtype(expected.dtype, np.number):
        wrong = float((found != expected).any())
        return OutputError(name, wrong, wrong)
    both = [each.astype(np.complex128 if np.iscomplexobj(each) else np.float64)
            for each in (found, expected)]  # fmt: skip
    gap = np.where(both[0] == both[1], 0.0, np.abs(both[0] - both[1]))
    gap = np.where(np.isnan(both[0]) & np.isnan(both[1]), 0.0, gap)
    if not gap.size:
        return OutputError(name, 0.0, 0.0)
    size = np.abs(both[1])
    floor = max(FLOOR * float(np.nanmax(size, initial=0.0)), np.finfo(np.float64).tiny)
    return OutputError(name, float(gap.max()), float((gap / np.maximum(size, floor)).max()))
