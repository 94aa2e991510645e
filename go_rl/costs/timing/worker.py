"""The warm worker process that measures, and the reference speed of its core."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core import RecordError
from go_rl.core.hardware.processor import processor_name
from go_rl.core.printable import sentence_of
from go_rl.costs.kernels.measure.exported import kernel_request
from go_rl.costs.kernels.measure.worker import MEMORY
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.core_speed import WORK, FolderPace, pace_path, read_pace, write_pace
from go_rl.runtime.warm_worker import (
    WarmWorker,
    WorkerDied,
    WorkerError,
    WorkerFailed,
    WorkerTimeout,
)

WORKER = "go_rl.costs.kernels.measure.worker:answer"
PACE_WORKER = "go_rl.costs.timing.core_speed:full_pace"
START_SECONDS = 120.0
"""Most seconds to start a worker and run its first kernel."""


def folder_pace(folder: Path, config: CollectConfig) -> float:
    """Return the reference speed of the core, as all measurements in a folder on one target know
    it. Where the folder has that of another fixed work, it is measured anew.

    Raises:
        RecordError: the file that keeps it is damaged, or is of another processor.
        WorkerError: the core cannot be had.
    """
    path = pace_path(folder, config.target)
    here = processor_name() if config.platform == "cpu" else ""
    if path.exists():
        known = read_pace(path)
        known.check(path, config.target, here)
        if known.work == WORK:
            return known.full_pace
    with WarmWorker(PACE_WORKER, core=worker_core(config)) as worker:
        found = float(worker.call(config.timing.pace_seconds, START_SECONDS))
    write_pace(path, FolderPace(found, here))
    return found


def check_worker(worker: WarmWorker, config: CollectConfig, full_pace: float) -> None:
    """Measure a sum: what fails for every kernel must not become a record of each.

    Raises:
        RecordError: nothing can be measured on this platform.
        WorkerError: the core cannot be had.
    """
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    try:
        request = kernel_request(
            lambda _, inputs: (inputs[0] + 1.0,), (), (one,), config, full_pace
        )
        outcome = outcome_of(worker, request, START_SECONDS)
    except ValueError as error:  # of jax.export: no such platform
        outcome = sentence_of(error)
    if isinstance(outcome, str):
        raise RecordError(f"nothing can be measured on platform {config.platform!r}: {outcome}")


TOO_LONG = "took more than"
"""Begin of the reason why a request that ran out of time has no outcome."""


def outcome_of(worker: WarmWorker, request: Any, timeout: float) -> dict[str, Any] | str:
    """Return what the worker says, or why it says nothing."""
    try:
        return worker.call(request, timeout)
    except (WorkerDied, WorkerFailed, WorkerTimeout) as error:
        return reason_of(error, timeout)


def reason_of(error: WorkerError, timeout: float) -> str:
    """Return why a worker says nothing, as records tell it."""
    if isinstance(error, WorkerTimeout):
        return f"{TOO_LONG} {timeout:g} s"
    return sentence_of(error)


def worker_environment(config: CollectConfig) -> dict[str, str]:
    """Return the variables that a worker's process is started with."""
    return {"JAX_PLATFORMS": config.platform, **MEMORY}


def worker_core(config: CollectConfig) -> int | None:
    """Return the core that measures: the last one of this process unless told; None: any."""
    if config.core is not None or not hasattr(os, "sched_getaffinity"):
        return config.core
    return max(os.sched_getaffinity(0))
