"""Measurers of the TVM back end: a worker process here, or workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.measuring_run import Release
from go_rl.costs.timing.rounds import RequestOutcome, measure_together
from go_rl.costs.timing.worker import START_SECONDS, folder_pace, worker_core, worker_environment
from go_rl.runtime.warm_worker import WarmWorker
from go_rl.tuning.tvm.codegen import own_cores

WORKER = "go_rl.tuning.tvm.measure.worker:answer"


def threads(cores: int) -> Mapping[str, str]:
    """Return the variables of a process that computes on some cores. TVM's threads stay on those
    of the process: bound to cores of its own choice, they may leave them."""
    return {
        "TVM_NUM_THREADS": str(cores), "OMP_NUM_THREADS": str(cores), "TVM_BIND_THREADS": "0",
    }  # fmt: skip


@runtime_checkable
class Measurer(Protocol):
    """Builds and times what is asked."""

    def full_pace(self) -> float:
        """Return the reference speed of the core that measures."""
        ...

    def outcomes(self, requests: Sequence[Any], config: CollectConfig) -> list[RequestOutcome]:
        """Return the outcome of each request; a bad one is a reason."""
        ...

    def in_turn(self, requests: Sequence[Any], config: CollectConfig) -> list[RequestOutcome]:
        """Return the outcomes of requests that one worker visits in turn."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class LocalMeasurer:
    """A warm worker process on one core or several of this machine.

    Args:
        config: target and core.
        folder: keeps the reference speed of the core.
        cores: that it computes on; more than one are the last ones of this process.
    """

    def __init__(self, config: CollectConfig, folder: Path, cores: int = 1) -> None:
        self._config, self._folder = config, folder
        environment = {**worker_environment(config), **threads(cores)}
        core = worker_core(config) if cores == 1 else own_cores()[-cores:]
        self._worker = WarmWorker(WORKER, core, environment)

    def full_pace(self) -> float:
        return folder_pace(self._folder, self._config)

    def outcomes(self, requests: Sequence[Any], config: CollectConfig) -> list[RequestOutcome]:
        if not requests:
            return []
        self._worker.call(Release(), START_SECONDS)  # a fresh process imports TVM
        return measure_together(self._worker, requests, config)

    in_turn = outcomes

    def close(self) -> None:
        """End the process."""
        self._worker.close()
