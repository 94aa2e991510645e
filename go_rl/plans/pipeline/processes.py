"""`StageProcesses`: a process a device, their pipes and the memory that they share."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.sessions import StageRecord
from go_rl.plans.pipeline.turns import Channel, StageClock
from go_rl.plans.pipeline.worker import DeviceTask, SharedSlots, StageTask, serve
from go_rl.plans.stages.manifest import FROM_USER, Manifest, Stage

START_SECONDS = 120.0
"""Seconds that all stages may take to load."""
CONTEXT = multiprocessing.get_context("spawn")


@contextmanager
def stage_processes(
    folder: Path, manifest: Manifest, config: PipelineConfig, records: Path | None = None
) -> Iterator[StageProcesses]:
    """Yield the processes of the stages in a folder; none is left at the end.

    Args:
        folder: with the stages.
        manifest: of the folder.
        config: see there.
        records: folder for onnxruntime's records of the first sample; None: there are none.

    Raises:
        ExecutionError: a stage cannot be loaded.
    """
    running = StageProcesses(manifest, config)
    try:
        running.start(folder, records)
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


class StageProcesses:
    """The processes of a run."""

    def __init__(self, manifest: Manifest, config: PipelineConfig) -> None:
        self.manifest, self.config = manifest, config
        cores = sorted(os.sched_getaffinity(0))
        self.devices = sorted({stage.device for stage in manifest.stages})
        self.core = {device: cores[i % len(cores)] for i, device in enumerate(self.devices)}
        """Core of this machine by device."""
        self.bells = {device: CONTEXT.Semaphore(0) for device in self.devices}
        """Semaphore by device, see `Channel`."""
        self.channels = [
            (tensor.sender, receiver, self._channel(tensor.name, tensor.sender, receiver))
            for receiver, stage in enumerate(manifest.stages)
            for tensor in stage.inputs
            if tensor.sender != FROM_USER
        ]
        self.processes: list[Any] = []
        """A process a device, in the order of `devices`."""
        self.pipes: list[Connection] = []
        self.lifelines: list[Connection] = []
        self.memories: list[SharedMemory] = []
        self.records: list[StageRecord] = []
        """Records of onnxruntime, one a stage, after `probe`."""

    def _channel(self, name: str, sender: int, receiver: int) -> Channel:
        ends = (self.bells[self.manifest.stages[stage].device] for stage in (sender, receiver))
        slots = self.config.slots
        return Channel(name, CONTEXT.Semaphore(slots), CONTEXT.Semaphore(0), *ends)

    def start(self, folder: Path, records: Path | None) -> None:
        """Start a process a device; wait until all have loaded."""
        for device in self.devices:
            ours, theirs = CONTEXT.Pipe()
            lifeline, held = CONTEXT.Pipe(duplex=False)
            stages = {n: self._task(n, stage, folder) for n, stage in self._stages_of(device)}
            task = DeviceTask(
                self.core[device], self.manifest.runtime, stages, self.bells[device],
                self.config.timeout, self.config.as_written,
                None if records is None else str(records),
            )  # fmt: skip
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

    def _task(self, number: int, stage: Stage, folder: Path) -> StageTask:
        inputs, outputs = (tuple(t.name for t in side) for side in (stage.inputs, stage.outputs))
        receives, sends = self._of(number, 1), self._of(number, 0)
        return StageTask(str(folder / stage.file), inputs, outputs, receives, sends)

    def _stages_of(self, device: int) -> list[tuple[int, Stage]]:
        """The stages of a device, with their numbers."""
        return [(n, each) for n, each in enumerate(self.manifest.stages) if each.device == device]

    def _of(self, stage: int, side: int) -> tuple[tuple[int, Channel], ...]:
        """Channels that a stage sends (side 0) or receives (side 1)."""
        return tuple(
            (number, entry[2]) for number, entry in enumerate(self.channels) if entry[side] == stage
        )

    def probe(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run one sample through all stages, one after the other; return all tensors by name."""
        made = dict(inputs)
        self.records.clear()
        for number, stage in enumerate(self.manifest.stages):
            wanted = {tensor.name: made[tensor.name] for tensor in stage.inputs}
            place = self.devices.index(stage.device)
            self._ask(place, "probe", (number, wanted))
            found, record = self._answer(place, self.config.timeout)
            made.update(found)
            if record is not None:
                self.records.append(record)
        return made

    def pipeline(self, made: Mapping[str, np.ndarray]) -> list[StageClock]:
        """Run all samples; return the times of each stage."""
        blocks = [self._block(channel.name, made[channel.name]) for *_, channel in self.channels]
        counts = self.config.warm_up, self.config.samples
        for place, device in enumerate(self.devices):
            inside = [number for number, _ in self._stages_of(device)]
            own = {n: blocks[n] for at in inside for side in (0, 1) for n, _ in self._of(at, side)}
            self._ask(place, "pipeline", (own, *counts))
        found: dict[int, StageClock] = {}
        left = set(range(len(self.pipes)))
        while left:
            for place in self._ready(sorted(left)):
                found |= self._answer(place, self.config.timeout)
                left.discard(place)
        return [found[number] for number in range(len(self.manifest.stages))]

    def _block(self, name: str, array: np.ndarray) -> SharedSlots:
        if array.dtype.hasobject:
            raise ExecutionError(
                f"tensor {name!r} is text, which goes to no other stage here; keep its producer "
                "and its readers on one device (--fixed)"
            )
        slots = self.config.slots
        memory = SharedMemory(create=True, size=max(1, array.nbytes * slots))
        self.memories.append(memory)
        return SharedSlots(memory.name, array.shape, array.dtype.name, slots)

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
        stages = [each for each in self._stages_of(device) if number in (None, each[0])]
        (first, stage), *others = stages
        more = f" and {len(others)} more" if others else ""
        return f"stage {first} ({stage.file}{more}, device {device})"

    def _answer(self, place: int, timeout: float) -> Any:
        """The answer of a process."""
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
