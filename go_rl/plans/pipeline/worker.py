"""`serve`: the stages of a device in a process of its own, on one core, with tensors in shared
memory.

The parent sends two requests: ``probe`` runs one sample through a stage with arrays through the
pipe, which tells all shapes; ``pipeline`` runs many through all stages of the device, one sample
after the other, with arrays in shared memory, and answers with times.
"""

from __future__ import annotations

import os
import re
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.core.printable import listed
from go_rl.plans.stages.manifest import FILE
from go_rl.runtime.lifeline import die_with

OPTIMISED = ".optimised.onnx"
"""Ends the name of the model that onnxruntime made of a stage."""


@dataclass(frozen=True)
class Channel:
    """One tensor on its way from a stage to another, in slots that are filled in turn."""

    name: str
    """Tensor."""
    free: Any
    """Semaphore: slots that the sender may fill."""
    full: Any
    """Semaphore: slots that the receiver may read."""


@dataclass(frozen=True)
class SharedSlots:
    """Where the slots of a channel lie."""

    memory: str
    """Name of the shared memory."""
    shape: tuple[int, ...]
    dtype: str
    slots: int


@dataclass(frozen=True)
class StageRecord:
    """Files that onnxruntime wrote of one sample of a stage, and the process that ran it."""

    profile: Path
    optimised: Path
    process: int
    cores: tuple[int, ...]
    """Cores that the process may use."""


@dataclass(frozen=True)
class StageTask:
    """One stage."""

    file: str
    inputs: frozenset[str]
    """Names of the tensors that it reads, by the manifest."""
    outputs: frozenset[str]
    receives: tuple[tuple[int, Channel], ...]
    """Channels by number, of tensors from other stages."""
    sends: tuple[tuple[int, Channel], ...]


@dataclass(frozen=True)
class DeviceTask:
    """Stages of a device, told to its process when it starts."""

    core: int
    stages: Mapping[int, StageTask]
    """The stages of the device by number, in the order in which a sample runs through them."""
    timeout: float
    as_written: bool
    records: str | None
    """Folder for onnxruntime's records of the first sample; None: there are none."""


@dataclass
class StageTimes:
    """Times of a stage, seconds, over the timed samples."""

    busy: float = 0.0
    """Running the program."""
    sending: float = 0.0
    """Copying tensors to other stages."""
    waiting: float = 0.0
    """For tensors, or for room to send."""
    ends: list[float] = field(default_factory=list)
    """When each timed sample left, on the machine's clock."""


def serve(task: DeviceTask, pipe: Connection, lifeline: Connection) -> None:
    """Run the stages of a device until the parent hangs up, or ends by whatever signal."""
    die_with(lifeline.fileno(), os.getpid())
    at = next(iter(task.stages))
    try:
        os.sched_setaffinity(0, {task.core})
        sessions = {}
        for at, stage in task.stages.items():
            sessions[at] = _loaded(at, stage, task)
        pipe.send(("ready", None))
        fixed: dict[int, dict[str, np.ndarray]] = {}
        while True:
            try:
                word, content = pipe.recv()
            except EOFError:
                return
            if word == "probe":
                at, arrays = content
                inner = {channel.name for _, channel in task.stages[at].receives}
                fixed[at] = {name: each for name, each in arrays.items() if name not in inner}
                made = _run(sessions[at], arrays)
                pipe.send(("probed", (made, _record(sessions[at], at, task))))
            else:
                pipe.send(("done", _pipeline(sessions, task, fixed, *content)))
    except Exception as error:
        said = str(error)
        if not isinstance(error, ExecutionError):
            said = traceback.format_exc(limit=-1).strip().splitlines()[-1]
        with suppress(OSError):  # the parent may be gone
            pipe.send(("failed", (at, said)))


def _loaded(number: int, stage: StageTask, task: DeviceTask) -> Any:
    """The session of a stage.

    Raises:
        ExecutionError: onnxruntime refuses the file, or it is not the manifest's.
    """
    records = None if task.records is None else Path(task.records) / f"stage-{number}"
    try:
        session = session_of(stage.file, 1, task.as_written, records)
    except Exception as error:
        if records is not None and _loads(stage.file, task.as_written):
            raise ExecutionError(
                f"onnxruntime cannot write its optimised model to {records.parent}, a folder for "
                "temporary files; is there room for the weights? TMPDIR names another"
            ) from error
        raise ExecutionError(
            f"onnxruntime does not load the file ({short_reason(error)}); export the plan again"
        ) from error
    for side, wanted, values in (
        ("inputs", stage.inputs, session.get_inputs()),
        ("outputs", stage.outputs, session.get_outputs()),
    ):
        found = set(_names(values))
        if found != wanted:
            raise ExecutionError(
                f"the {side} of the file are not those of {FILE}: "
                f"{listed(sorted(found ^ wanted))}; export the plan again"
            )
    return session


def _loads(file: str, as_written: bool) -> bool:
    """Whether onnxruntime loads a file when it need not write anything."""
    with suppress(Exception):
        session_of(file, 1, as_written)
        return True
    return False


def _record(session: Any, number: int, task: DeviceTask) -> StageRecord | None:
    """Where onnxruntime's records of the sample that was run are."""
    if task.records is None:
        return None
    return StageRecord(
        Path(session.end_profiling()), Path(f"{task.records}/stage-{number}{OPTIMISED}"),
        os.getpid(), tuple(sorted(os.sched_getaffinity(0))),
    )  # fmt: skip


def short_reason(error: Exception) -> str:
    """Return what onnxruntime says, without its codes and places."""
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    absent = re.search(r'External data path does not exist: "?([^"]+)', said)
    if absent is not None:
        return f"its arrays lie in {absent[1]}, which is not there"
    return re.sub(r"^.*\[ONNXRuntimeError\] : \d+ : \w+ : ", "", said)


def session_of(file: str, threads: int, as_written: bool, records: Path | None = None) -> Any:
    """Return a session of onnxruntime.

    Args:
        file: ONNX file.
        threads: of one operator.
        as_written: join no operators.
        records: beginning of the names of files that get the optimised model and, until
            ``end_profiling``, the kernels that run; None: neither is written.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if as_written:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    if records is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(records)
        options.optimized_model_filepath = f"{records}{OPTIMISED}"
        prefix = "session.optimized_model_external_initializers_"
        options.add_session_config_entry(f"{prefix}file_name", f"{records.name}{OPTIMISED}.data")
        options.add_session_config_entry(f"{prefix}min_size_in_bytes", "1024")
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _names(values: Any) -> list[str]:
    return [value.name for value in values]


def _run(session: Any, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = _names(session.get_outputs())
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def _pipeline(
    sessions: Mapping[int, Any],
    task: DeviceTask,
    fixed: Mapping[int, Mapping[str, np.ndarray]],
    blocks: Mapping[int, SharedSlots],
    warm_up: int,
    samples: int,
) -> dict[int, StageTimes]:
    memories = {number: SharedMemory(block.memory) for number, block in blocks.items()}
    try:
        slots = {n: _slots(memories[n], blocks[n]) for n in memories}
        times = {at: StageTimes() for at in task.stages}
        for sample in range(warm_up + samples):
            if sample == warm_up:
                times = {at: StageTimes() for at in task.stages}
            for at, stage in task.stages.items():
                _one(sessions[at], stage, task.timeout, fixed[at], slots, sample, times[at])
        return times
    finally:
        slots = {}
        for memory in memories.values():
            memory.close()


def _slots(memory: SharedMemory, block: SharedSlots) -> list[np.ndarray]:
    whole = np.ndarray((block.slots, *block.shape), block.dtype, memory.buf)
    return [whole[slot, ...] for slot in range(block.slots)]  # views, of scalars as well


def _one(
    session: Any,
    task: StageTask,
    timeout: float,
    given: Mapping[str, np.ndarray],
    slots: Mapping[int, list[np.ndarray]],
    sample: int,
    times: StageTimes,
) -> None:
    """One sample: wait, run, hand on."""
    begun = time.perf_counter()
    feeds = dict(given)
    for number, channel in task.receives:
        _acquire(channel.full, channel.name, timeout)
        feeds[channel.name] = slots[number][sample % len(slots[number])]
    arrived = time.perf_counter()
    found = _run(session, feeds)
    ran = time.perf_counter()
    del feeds
    for _, channel in task.receives:
        channel.free.release()
    waited = 0.0
    for number, channel in task.sends:
        before = time.perf_counter()
        _acquire(channel.free, channel.name, timeout)
        waited += time.perf_counter() - before
        slots[number][sample % len(slots[number])][...] = found[channel.name]
        channel.full.release()
    ended = time.perf_counter()
    times.busy += ran - arrived
    times.sending += ended - ran - waited
    times.waiting += arrived - begun + waited
    times.ends.append(time.monotonic())


def _acquire(semaphore: Any, name: str, timeout: float) -> None:
    if not semaphore.acquire(timeout=timeout):
        raise TimeoutError(f"nothing moved for {timeout:g} s at tensor {name!r}")
