"""`serve`: the stages of a device in a process of its own, on one core, with tensors in shared
memory.

The parent sends two requests: ``probe`` runs one sample through a stage with arrays through the
pipe, which tells all shapes; ``pipeline`` runs many through all stages of the device
(`go_rl.plans.pipeline.turns`), with arrays in shared memory, and answers with times.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.core.printable import last_line, listed
from go_rl.plans.pipeline.sessions import Session, open_session, short_reason
from go_rl.plans.pipeline.turns import Channel, Lane, StageClock, run_samples
from go_rl.plans.stages.manifest import FILE
from go_rl.runtime.lifeline import die_with

UNREADABLE = ("parsing failed", "doesn't exist", "does not exist")
"""Words by which runtimes report a damaged or absent file, which another export mends."""


@dataclass(frozen=True)
class SharedSlots:
    """Slots of a channel in shared memory."""

    memory: str
    """Name of the shared memory."""
    shape: tuple[int, ...]
    dtype: str
    """Name of the element type, which bfloat16 and the like have too."""
    slots: int


@dataclass(frozen=True)
class StageTask:
    """One stage."""

    file: str
    inputs: tuple[str, ...]
    """Names of the tensors that it reads, by the manifest."""
    outputs: tuple[str, ...]
    receives: tuple[tuple[int, Channel], ...]
    """Channels by number, of tensors from other stages."""
    sends: tuple[tuple[int, Channel], ...]


@dataclass(frozen=True)
class DeviceTask:
    """Stages of a device, told to its process when it starts."""

    core: int
    runtime: str
    stages: Mapping[int, StageTask]
    """The stages of the device by number, in the order in which a sample runs through them."""
    bell: Any
    """Semaphore: something has changed that a stage of the device may wait for."""
    timeout: float
    as_written: bool
    records: str | None
    """Folder for onnxruntime's records of the first sample; None: there are none."""


def serve(task: DeviceTask, pipe: Connection, lifeline: Connection) -> None:
    """Run the stages of a device until the parent hangs up, or ends by whatever signal."""
    die_with(lifeline.fileno(), os.getpid())
    at = next(iter(task.stages))
    try:
        os.sched_setaffinity(0, {task.core})
        sessions: dict[int, Session] = {}
        for at, stage in task.stages.items():
            sessions[at] = _loaded(at, stage, task)
        pipe.send(("ready", None))
        fixed: dict[int, Mapping[str, Any]] = {}
        while True:
            try:
                word, content = pipe.recv()
            except EOFError:
                return
            if word == "probe":
                at, arrays = content
                inner = {channel.name for _, channel in task.stages[at].receives}
                given = {name: each for name, each in arrays.items() if name not in inner}
                fixed[at] = sessions[at].hold(given)
                made = sessions[at].run(arrays)
                pipe.send(("probed", (made, sessions[at].end_record())))
            else:
                pipe.send(("done", _pipeline(sessions, task, fixed, *content)))
    except Exception as error:
        said = str(error) if isinstance(error, ExecutionError) else last_line(error)
        with suppress(OSError):  # the parent may be gone
            pipe.send(("failed", (at, said)))


def _loaded(number: int, stage: StageTask, task: DeviceTask) -> Session:
    """The program of a stage.

    Raises:
        ExecutionError: the runtime refuses the file, or it is not the manifest's.
    """
    records = None if task.records is None else Path(task.records) / f"stage-{number}"
    try:
        session = open_session(task.runtime, stage.file, stage.outputs, 1, task.as_written, records)
    except Exception as error:
        if records is not None and _loads(stage, task):
            raise ExecutionError(
                f"{task.runtime} cannot write its optimised model to {records.parent}, a folder "
                "for temporary files; is there room for the weights? TMPDIR names another"
            ) from error
        reason = short_reason(error)
        again = "; export the plan again" if any(word in reason for word in UNREADABLE) else ""
        raise ExecutionError(f"{task.runtime} does not load the file ({reason}){again}") from error
    found = set(session.inputs)
    if found != set(stage.inputs):
        raise ExecutionError(
            f"the inputs of the file are not those of {FILE}: "
            f"{listed(sorted(found ^ set(stage.inputs)))}; export the plan again"
        )
    return session


def _loads(stage: StageTask, task: DeviceTask) -> bool:
    """Whether a program loads when its runtime need not write anything."""
    with suppress(Exception):
        open_session(task.runtime, stage.file, stage.outputs, 1, task.as_written)
        return True
    return False


def _pipeline(
    sessions: Mapping[int, Session],
    task: DeviceTask,
    fixed: Mapping[int, Mapping[str, Any]],
    blocks: Mapping[int, SharedSlots],
    warm_up: int,
    samples: int,
) -> dict[int, StageClock]:
    memories = {number: SharedMemory(block.memory) for number, block in blocks.items()}
    try:
        lanes = {
            at: Lane(
                sessions[at], fixed[at], stage.receives, stage.sends,
                {n: _slots(memories[n], blocks[n]) for n, _ in (*stage.receives, *stage.sends)},
            )
            for at, stage in task.stages.items()
        }  # fmt: skip
        run_samples(list(lanes.values()), task.bell, warm_up, samples, task.timeout)
        times = {at: lane.clock for at, lane in lanes.items()}
        del lanes  # views of the memories
        return times
    finally:
        for memory in memories.values():
            memory.close()


def _slots(memory: SharedMemory, block: SharedSlots) -> list[np.ndarray]:
    whole = np.ndarray((block.slots, *block.shape), np.dtype(block.dtype), memory.buf)
    return [whole[slot, ...] for slot in range(block.slots)]  # views, of scalars as well
