"""`read_profile`: kernels that onnxruntime ran, from the file of its profiler."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core import ExecutionError
from go_rl.core.files.strict_json import read_json

KERNEL = "_kernel_time"
"""Ends the name of the event of a kernel."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran."""

    name: str
    """Name of its node in the optimised model, or ``TYPE_NUMBER`` of one without a name."""
    op_type: str
    provider: str
    """Execution provider, such as ``CUDAExecutionProvider``."""
    runs: int
    """How often it ran."""
    process: int
    """Number of the process."""


def read_profile(path: str | Path) -> tuple[Kernel, ...]:
    """Return the kernels of a profile, in the order in which they first ran.

    Raises:
        ExecutionError: the file cannot be read, is no profile of onnxruntime, or holds no kernel.
    """
    try:
        events = read_json(path)
    except OSError as error:
        raise ExecutionError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise ExecutionError(
            f"{path}: is no whole profile of onnxruntime ({error}); session.end_profiling() "
            "completes one"
        ) from error
    if not isinstance(events, list):
        raise ExecutionError(f"{path}: is no profile of onnxruntime, which is a list of events")
    runs = Counter(kernel for event in events if (kernel := _kernel(event)) is not None)
    if not runs:
        raise ExecutionError(
            f"{path}: holds no kernel; set enable_profiling of SessionOptions, run the session, "
            "and end it with session.end_profiling()"
        )
    return tuple(Kernel(*key[:3], count, key[3]) for key, count in runs.items())


def _kernel(event: Any) -> tuple[str, str, str, int] | None:
    """Name, type, provider and process of an event; None: it is of no kernel."""
    if not isinstance(event, dict) or event.get("cat") != "Node":
        return None
    name, args = str(event.get("name", "")), event.get("args")
    if not name.endswith(KERNEL) or not isinstance(args, dict) or "provider" not in args:
        return None
    process = event.get("pid")
    return (
        name.removesuffix(KERNEL), str(args.get("op_name", "")), str(args["provider"]),
        process if isinstance(process, int) else 0,
    )  # fmt: skip
