"""`joined`: join the processes of a run, and leave them in good order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import jax

from go_rl.core import GoRLError, TrainingError
from go_rl.policy.learn.processes.config import ProcessConfig
from go_rl.policy.learn.processes.group import ALONE, Group

LEAVING_SECONDS = 10
"""Time that a process waits for the others when all are done."""
WAIT_FLAG, WAIT_SECONDS = "--xla_cpu_collective_timeout_seconds", 7 * 86_400
"""Collectives between CPUs have a limit of their own, but others may search for hours before they
come to one; heartbeats tell who is lost."""
ALIKE = ("go_rl", "jax", "jaxlib", "numpy")
"""Packages whose version must be the same in all processes."""


@contextmanager
def joined(config: ProcessConfig, training: Any) -> Iterator[Group]:
    """Join the processes of a run; yields the group, which is left when the block ends.

    Must come before anything else of JAX computes. What is raised inside is raised in all of them.

    Args:
        config: the processes.
        training: a dataclass that must be the same in all of them.

    Raises:
        TrainingError: JAX has computed already, the port is taken, a launcher's environment is
            missing, or the processes differ in versions, devices or ``training``. Where others
            cannot be reached in time, JAX's runtime ends the process itself.
    """
    if not config.several:
        yield ALONE
        return
    group = _join(config)
    try:
        group.agree({**_versions(), **_flat("", training)})
        yield group
    except GoRLError as error:
        group.leave(error)
        _shutdown(group)
        raise
    else:
        _shutdown(group)


def _join(config: ProcessConfig) -> Group:
    # JAX would catch SIGTERM, and the process would go on.
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    flags = os.environ.get("XLA_FLAGS", "")
    if WAIT_FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {WAIT_FLAG}={WAIT_SECONDS}".strip()
    method = {"none": "deactivate", "auto": None}.get(config.launcher, config.launcher)
    try:
        jax.distributed.initialize(
            config.coordinator,
            config.count,
            config.index,
            cluster_detection_method=method,
            initialization_timeout=config.start_seconds,
            heartbeat_timeout_seconds=config.lost_seconds,
            shutdown_timeout_seconds=LEAVING_SECONDS,
        )
    except (RuntimeError, ValueError, KeyError) as error:
        raise TrainingError(_reason(config, error)) from error
    group = Group(jax.process_index(), jax.process_count())
    if jax.device_count() != group.count * jax.local_device_count():
        raise TrainingError(
            f"process {group.index} of {group.count} has {jax.local_device_count()} of the "
            f"{jax.device_count()} devices; all processes need equally many"
        )
    return group


def _reason(config: ProcessConfig, error: Exception) -> str:
    told = str(error).partition("\n")[0]
    if "RPC server" in told:
        return (
            f"processes: process 0 cannot listen on the port of {config.coordinator} ({told}); "
            "name a free one in all processes"
        )
    if "before any JAX" in told or "only be called once" in told:
        return f"processes: they must be joined before JAX computes anything ({told})"
    return (
        f"processes: no environment of the launcher {config.launcher!r} ({told}); give "
        "coordinator, count and index"
    )


def _shutdown(group: Group) -> None:
    """Leave together; after a loss there is nobody to wait for."""
    if not group.lost:
        jax.distributed.shutdown()


def _versions() -> dict[str, str]:
    return {f"version of {name}": version(name) for name in ALIKE}


def _flat(name: str, value: Any) -> dict[str, str]:
    """The fields of a dataclass and of those in it, by dotted name."""
    if not is_dataclass(value):
        return {name: repr(value)}
    found: dict[str, str] = {}
    for field in fields(value):
        found |= _flat(f"{name}.{field.name}".lstrip("."), getattr(value, field.name))
    return found
