"""Calls of programs that TVM compiled.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Any

import numpy as np

from go_rl.core import ExecutionError, MissingDependencyError
from go_rl.core.installed import check_installed
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import Timed
from go_rl.costs.timing.timing import has_a_core, visit

TVM = ("apache-tvm", "apache-tvm-ffi")
"""Packages whose releases must match: their binary interface changes."""
SAMPLE_SECONDS = 2e-4
"""A sample is the mean of so many runs that it takes about this long."""
TOO_SLOW = "a run took more than {:g} s"
"""Reason why a program has no time."""


def import_tvm() -> Any:
    """Return TVM.

    Raises:
        MissingDependencyError: TVM is not installed, or in a release that was not tried.
    """
    check_installed(TVM)
    try:
        import tvm  # pyright: ignore[reportMissingImports]
        import tvm.s_tir  # pyright: ignore[reportMissingImports]
        import tvm.te  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingDependencyError(
            "tensor programs are built by TVM; install it with: pip install 'go_rl[tvm]' "
            "-c constraints.txt"
        ) from error
    return tvm


def timed_calls(
    kernel: Any, operands: Sequence[np.ndarray], full_pace: float, most_seconds: float = inf
) -> Timed:
    """Return what times a compiled kernel, a call being a sample of about `SAMPLE_SECONDS`.

    Args:
        kernel: a runtime module of TVM whose function ``main`` is called.
        operands: arguments, and then the result.
        full_pace: see `go_rl.costs.timing.core_speed.CoreSpeed`.
        most_seconds: that a run may take.

    Raises:
        ExecutionError: the first run takes longer.
    """
    tvm = import_tvm()
    device = tvm.cpu()
    held = [tvm.runtime.tensor(array, device) for array in operands]

    def sample_of(number: int) -> Callable[[], float]:
        timed = kernel.time_evaluator("main", device, number=number, repeat=1)
        return lambda: float(timed(*held).results[0])

    first = sample_of(1)()  # behind a run of TVM's own, which does not count
    if first > most_seconds:
        raise ExecutionError(TOO_SLOW.format(most_seconds))
    sample = sample_of(max(1, ceil(SAMPLE_SECONDS / max(first, 1e-9))))
    pace, own = CoreSpeed(full_pace), has_a_core()
    return lambda timing: visit(sample, timing, pace, own)


def limit_told(reason: str) -> float:
    """Return the seconds of a `TOO_SLOW` in a record's reason; infinity for any other reason."""
    found = re.search(TOO_SLOW.replace("{:g}", r"(\S+)"), reason)
    return inf if found is None else float(found[1])
