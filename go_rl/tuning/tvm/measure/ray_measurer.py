"""`RayMeasurer`: workers of a Ray cluster, one on each node, that measure side by side.

An optional extra: ``pip install 'go_rl[ray]'``. Times of two processors are never mixed: the nodes
with one processor are a group with a target of its own. A run is tuned for one of them, this
machine's if it is among them, else the largest; the others time the same candidates meanwhile.
Within a group, a node on which a reference kernel takes longer than `AGREE` times the group's
median is left out. A request whose worker is lost goes to another one, once.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from go_rl.core.hardware.processor import own_target
from go_rl.core.installed import optional_library
from go_rl.core.printable import first_line, last_line
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.rounds import RequestOutcome
from go_rl.costs.timing.worker import START_SECONDS
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.measure.measurers import WORKER
from go_rl.tuning.tvm.measure.ray_worker import RayWorker

AGREE = 1.25
"""Ratio to the median of a processor's reference kernel above which a worker is left out."""
ANSWER_SECONDS = 10.0
"""Seconds that connecting to a cluster may take."""
LOCAL = "ray"
"""Address of a cluster that is started here."""
ATTEMPTS = 2
"""Workers that are lost over one request, until it is given up."""


@dataclass(frozen=True)
class _Assignment:
    """A request that a worker has."""

    target: str
    number: int
    attempt: int
    worker: Any
    began: float


@dataclass
class _Jobs:
    """Requests on several processors: by number, and how often each was tried."""

    waiting: dict[str, deque[tuple[int, int]]]
    running: dict[Any, _Assignment] = field(default_factory=dict)
    found: dict[str, dict[int, RequestOutcome]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.found = {target: {} for target in self.waiting}

    def unfinished(self, requests: int) -> bool:
        """Whether an outcome is missing."""
        return any(len(found) < requests for found in self.found.values())

    def keep(self, job: _Assignment, outcome: RequestOutcome) -> None:
        """Take an outcome."""
        if job.target in self.found:
            self.found[job.target][job.number] = outcome

    def again(self, job: _Assignment) -> None:
        """Have another worker try, or give up."""
        if job.target in self.waiting and job.attempt < ATTEMPTS:
            self.waiting[job.target].appendleft((job.number, job.attempt + 1))
        else:
            self.keep(job, f"{job.attempt} Ray workers were lost over it")

    def drop(self, target: str) -> None:
        """Ask nothing more of a processor."""
        del self.waiting[target], self.found[target]


@dataclass(frozen=True)
class ProcessorGroup:
    """Workers on nodes with one processor."""

    target: str
    workers: tuple[Any, ...]
    """Ray handles of the workers."""


class RayMeasurer:
    """Workers of a Ray cluster that measure side by side.

    Args:
        address: ``ray``: a cluster on this machine; else of a running one.
        pace_seconds: see `RayWorker`.

    Raises:
        MissingDependencyError: Ray is not installed.
        TuningError: the address does not answer, or no worker can be had.
    """

    def __init__(self, address: str = LOCAL, pace_seconds: float = 5.0) -> None:
        self._ray, self._ours = connected(address)
        self.notes: list[str] = []
        self.groups = self._grouped(self._started(pace_seconds))
        own = [group for group in self.groups if group.target == own_target()]
        self.group = own[0] if own else max(self.groups, key=lambda group: len(group.workers))
        self._alive = {group.target: list(group.workers) for group in self.groups}

    @property
    def target(self) -> str:
        """Processor that the run is tuned for."""
        return self.group.target

    def full_pace(self) -> float:
        """Return the reference speed of the core; each worker puts its own in."""
        return 1.0

    def outcomes(self, requests: Sequence[Any], config: CollectConfig) -> list[RequestOutcome]:
        return self.everywhere(requests, config, (self.target,))[self.target]

    def everywhere(
        self, requests: Sequence[Any], config: CollectConfig, targets: Collection[str] | None = None
    ) -> dict[str, list[RequestOutcome]]:
        """Return the outcomes of each request on every processor, or on some; a worker has one
        request at a time. Other processors than the run's own are left out once their workers are
        lost.

        Raises:
            TuningError: all workers of the run's own processor are lost.
        """
        asked = [t for t, alive in self._alive.items() if alive and t in (targets or self._alive)]
        jobs = _Jobs({target: deque((n, 1) for n in range(len(requests))) for target in asked})
        while jobs.unfinished(len(requests)):
            for target in asked:
                self._hand_out(jobs, target, requests, config)
            self._collect(jobs, config)
            for target in [t for t in jobs.waiting if not self._alive[t]]:
                jobs.drop(target)
            if self.target in asked and self.target not in jobs.waiting:
                raise _all_lost()
        if self.target in (targets or self._alive) and self.target not in jobs.found:
            raise _all_lost()
        return {t: [found[n] for n in range(len(requests))] for t, found in jobs.found.items()}

    def in_turn(self, requests: Sequence[Any], config: CollectConfig) -> list[RequestOutcome]:
        """Return the outcomes of requests; libraries that requests name travel to the worker."""
        files = {name: Path(name).read_bytes() for request in requests for name in _files(request)}
        while self._alive[self.target]:
            worker = self._alive[self.target][0]
            try:
                asked = worker.measure.remote(list(requests), config, files)
                return self._ray.get(asked, timeout=len(requests) * _longest(config))
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
                self._lose(worker)
        raise _all_lost()

    def close(self) -> None:
        """End the workers, and the connection, with the cluster where it was started here; one that
        the caller of go_rl had made before stays."""
        for group in self.groups:
            for worker in group.workers:
                self._ray.kill(worker)
        if self._ours:
            self._ray.shutdown()

    def _hand_out(
        self, jobs: _Jobs, target: str, requests: Sequence[Any], config: CollectConfig
    ) -> None:
        busy = [job.worker for job in jobs.running.values()]
        for worker in [each for each in self._alive[target] if each not in busy]:
            if not jobs.waiting.get(target):
                return
            number, attempt = jobs.waiting[target].popleft()
            reference = worker.measure.remote([requests[number]], config, {})
            jobs.running[reference] = _Assignment(target, number, attempt, worker, time.monotonic())

    def _collect(self, jobs: _Jobs, config: CollectConfig) -> None:
        """Wait for the next answer, and give up on workers that are lost or silent."""
        errors = self._ray.exceptions
        if not jobs.running:
            return
        done, _ = self._ray.wait(list(jobs.running), num_returns=1, timeout=1.0)
        late = [
            reference
            for reference, job in jobs.running.items()
            if reference not in done and time.monotonic() - job.began > _longest(config)
        ]
        for reference in [*done, *late]:
            job = jobs.running.pop(reference)
            try:
                if reference in late:
                    raise errors.GetTimeoutError
                (outcome,) = self._ray.get(reference)
                jobs.keep(job, outcome)
            except (errors.RayActorError, errors.GetTimeoutError):
                self._lose(job.worker)
                jobs.again(job)
            except errors.RayTaskError as error:
                jobs.keep(job, f"a Ray worker failed: {error.cause}")

    def _lose(self, worker: Any) -> None:
        for target, alive in self._alive.items():
            if worker in alive:
                alive.remove(worker)
                self.notes.append(f"A Ray worker of {target} was lost; {len(alive)} are left")
                self._ray.kill(worker)

    def _started(self, pace_seconds: float) -> list[Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

        actor: Any = self._ray.remote(RayWorker)
        # Nodes of this machine find modules where this process does; elsewhere the folders are not.
        variables = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return [
            actor.options(
                num_cpus=1,
                runtime_env={"env_vars": variables},
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote(WORKER, pace_seconds)
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        ]

    def _grouped(self, workers: Sequence[Any]) -> tuple[ProcessorGroup, ...]:
        """Workers by processor, those left out that disagree with their group."""
        known: dict[str, list[tuple[Any, float]]] = {}
        for worker in workers:
            try:
                target, seconds = self._ray.get(worker.about.remote(), timeout=START_SECONDS)
                known.setdefault(target, []).append((worker, seconds))
            except (self._ray.exceptions.RayError, self._ray.exceptions.GetTimeoutError) as error:
                self.notes.append(f"A node gave no worker: {last_line(error)}")
        if not known:
            why = self.notes[0] if self.notes else "it has no node with a free CPU"
            raise TuningError(f"no Ray worker can be had, so nothing is measured: {why}")
        return tuple(
            ProcessorGroup(target, agreeing(pairs, target, self.notes))
            for target, pairs in known.items()
        )


def agreeing(
    workers: Sequence[tuple[Any, float]], target: str, notes: list[str]
) -> tuple[Any, ...]:
    """Return the workers of one processor whose reference kernel agrees with the others'.

    Args:
        workers: each with the seconds of the reference kernel.
        target: of the processor.
        notes: get a sentence for each that is left out.
    """
    usual = median(seconds for _, seconds in workers)
    for _, seconds in workers:
        if seconds > AGREE * usual:
            notes.append(
                f"A worker of {target} is left out: the reference kernel takes {seconds:.3g} s "
                f"there, and {usual:.3g} s on the others"
            )
    return tuple(worker for worker, seconds in workers if seconds <= AGREE * usual)


def connected(address: str) -> tuple[Any, bool]:
    """Return Ray, connected to a cluster, and whether that was done here: else this process was
    connected before, and whoever did it ends it.

    Args:
        address: ``ray``, a cluster on this machine or the one that this process is connected to; or
            of a running one.

    Raises:
        MissingDependencyError: Ray is not installed.
        TuningError: the address does not answer, or this process is connected to another cluster.
    """
    ray = optional_library("ray", "--workers needs Ray; install it with: pip install 'go_rl[ray]'")
    if ray.is_initialized():
        _check_same(ray, address)
        return ray, False
    check_answers(address)
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    try:
        if address == LOCAL:
            ray.init(include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except Exception as error:
        said = first_line(error)
        raise TuningError(f"no Ray cluster answers at {address!r}: {said}") from error
    return ray, True


def _check_same(ray: Any, address: str) -> None:
    """Refuse an address of another cluster than that which this process is connected to."""
    known = str(ray.get_runtime_context().gcs_address)
    if address == LOCAL or _resolved(address) == _resolved(known):
        return
    raise TuningError(
        f"--workers {address}: this process is connected to the Ray cluster at {known} already; "
        f"give {known} or ray, or call ray.shutdown() before"
    )


def _resolved(address: str) -> tuple[str, str]:
    """Host, as a number, and port of an address; this machine is one host under all its names."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host)
    own = {"127.0.0.1"}
    with suppress(OSError):
        own |= set(socket.gethostbyname_ex(socket.gethostname())[2])
    return ("127.0.0.1" if host in own else host), port


def check_answers(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for minutes.

    Raises:
        TuningError: it is malformed, or does not answer.
    """
    if address == LOCAL:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise TuningError(f"--workers {address}: must be ray, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise TuningError(f"no Ray cluster answers at {address!r} ({error})") from error


def _files(request: Any) -> tuple[str, ...]:
    """Files that a request names."""
    rival = getattr(request, "rival", None)
    return tuple(
        name for each in (request, rival) for name in
        (getattr(each, "path", ""), getattr(each, "weights", "")) if name
    )  # fmt: skip


def _longest(config: CollectConfig) -> float:
    """Seconds after which a worker that says nothing of a request is taken for lost."""
    return START_SECONDS + (2.0 + config.timing.visits) * config.timeout


def _all_lost() -> TuningError:
    return TuningError(
        "all Ray workers were lost; what was measured is kept, and the same command goes on"
    )
