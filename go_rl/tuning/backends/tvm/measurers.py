"""Who measures for the TVM back end: a worker process here, or workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from go_rl.measure.config import CollectConfig
from go_rl.measure.kernels.rounds import Outcome, measure_together
from go_rl.measure.measuring_run import Release
from go_rl.measure.worker import START_SECONDS, folder_pace, worker_core, worker_environment
from go_rl.runtime.warm_worker import WarmWorker

WORKER = "go_rl.tuning.backends.tvm.worker:answer"
ONE_THREAD: Mapping[str, str] = {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@runtime_checkable
class Measurer(Protocol):
    """Builds and times what is asked."""

    def full_pace(self) -> float:
        """Return the reference speed of the core that measures."""
        ...

    def outcomes(self, tasks: Sequence[Any], config: CollectConfig) -> list[Outcome]:
        """Return the outcome of each task; a bad one is a reason."""
        ...

    def in_turn(self, tasks: Sequence[Any], config: CollectConfig) -> list[Outcome]:
        """Return the outcomes of tasks that one worker visits in turn."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class LocalMeasurer:
    """A warm worker process on one core of this machine.

    Args:
        config: target and core.
        folder: keeps the reference speed of the core.
    """

    def __init__(self, config: CollectConfig, folder: Path) -> None:
        self._config, self._folder = config, folder
        environment = {**worker_environment(config), **ONE_THREAD}
        self._worker = WarmWorker(WORKER, worker_core(config), environment)

    def full_pace(self) -> float:
        """See `Measurer`."""
        return folder_pace(self._folder, self._config)

    def outcomes(self, tasks: Sequence[Any], config: CollectConfig) -> list[Outcome]:
        """See `Measurer`."""
        if not tasks:
            return []
        self._worker.call(Release(), START_SECONDS)  # a fresh process imports TVM
        return measure_together(self._worker, tasks, config)

    in_turn = outcomes

    def close(self) -> None:
        """End the process."""
        self._worker.close()
