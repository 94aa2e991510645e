"""`RayWorker`: the actor on a node of a Ray cluster that measures."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from go_rl.core.files.whole_file import write_bytes
from go_rl.core.hardware.processor import own_target
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.core_speed import full_pace
from go_rl.costs.timing.measuring_run import Release
from go_rl.costs.timing.rounds import measure_together
from go_rl.costs.timing.worker import START_SECONDS, worker_environment
from go_rl.runtime.warm_worker import WarmWorker
from go_rl.tuning.tvm.measure.measurers import threads

REFERENCE_CALLS = 200


class RayWorker:
    """Actor on a node, with a warm worker process, so that a bad candidate costs no node.

    Args:
        function: what the process calls, ``module:name``.
        pace_seconds: spent on finding the reference speed of the core.
    """

    def __init__(self, function: str, pace_seconds: float) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
        environment = {**worker_environment(CollectConfig()), **threads(1)}
        self._worker = WarmWorker(function, cores[-1], environment)
        self._pace = full_pace(pace_seconds)

    def about(self) -> tuple[str, float]:
        """Return the target of this node's processor, and the seconds of the reference kernel."""
        return own_target(), reference_seconds()

    def measure(
        self, requests: list[Any], config: CollectConfig, files: Mapping[str, bytes]
    ) -> list:
        """Return the outcomes of requests, visited in turn; ``files`` are written where they are
        missing or others, for requests that name them."""
        for name, content in files.items():
            write_where_other(Path(name), content)
        self._worker.call(Release(), START_SECONDS)
        return measure_together(self._worker, [with_pace(t, self._pace) for t in requests], config)


def write_where_other(path: Path, content: bytes) -> None:
    """Write a file, aside and renamed, unless it is there with this content: the machine may be the
    one that sent it, or have one of an earlier run."""
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)


def reference_seconds() -> float:
    """Return the least seconds of the reference kernel: a product of 192 x 192 matrices."""
    import numpy as np

    left, found = np.ones((192, 192), np.float32), []
    for _ in range(REFERENCE_CALLS):
        began = time.perf_counter()
        np.dot(left, left)
        found.append(time.perf_counter() - began)
    return min(found)


def with_pace(request: Any, pace: float) -> Any:
    """Return a request with the reference speed of the core that measures it."""
    if not hasattr(request, "measuring"):
        return request
    return replace(request, measuring=replace(request.measuring, full_pace=pace))
