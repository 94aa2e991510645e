"""`run_on_iree`: a module with transfers, compiled and run on local devices of IREE.

IREE's own commands do both, in processes of their own: its runtime has crashed in one with JAX's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import ExecutionError, MissingDependencyError
from go_rl.core.files.scratch_folder import scratch_folder

COMPILE = "iree-compile"
RUN = "iree-run-module"
LOCAL = (
    "--iree-input-type=stablehlo", "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)  # fmt: skip
"""Options of iree-compile for this machine."""
STREAMS = ("--compile-to=stream", "--mlir-print-debuginfo", "--mlir-print-local-scope")
"""Options of iree-compile that print which device runs which kernel."""


@dataclass(frozen=True, eq=False)
class IreeRun:
    """An iteration on IREE."""

    outputs: tuple[np.ndarray, ...]
    """Leaves of the function's result."""
    streams: str
    """The module once streams are made, for `go_rl.plans.audit.streams.audit_streams`."""


def run_on_iree(
    module: str, arrays: Sequence[np.ndarray], devices: Sequence[int], results: int, timeout: float
) -> IreeRun:
    """Compile a module for devices that share this machine's cores, and run it once.

    Args:
        module: StableHLO with transfers between ``@device_i``.
        arrays: arguments.
        devices: numbers of the devices that it names.
        results: number of results.
        timeout: seconds that compiling, and running, may take.

    Raises:
        MissingDependencyError: IREE is not installed.
        ExecutionError: IREE refuses the module, fails, or takes too long.
    """
    commands = {name: _found(name) for name in (COMPILE, RUN)}
    targets = [f"--iree-hal-target-device=device_{device}=local[{place}]"
               for place, device in enumerate(devices)]  # fmt: skip
    try:
        return _run(module, arrays, targets, results, timeout, commands)
    except OSError as error:
        raise ExecutionError(
            f"a file for IREE cannot be written, or read back ({error.strerror or error})"
        ) from error


def _run(
    module: str,
    arrays: Sequence[np.ndarray],
    targets: Sequence[str],
    results: int,
    timeout: float,
    commands: Mapping[str, str],
) -> IreeRun:
    with scratch_folder("iree") as folder:
        (folder / "in.mlir").write_text(module)
        options = ["in.mlir", *LOCAL, *targets]
        _call(folder, timeout, commands[COMPILE], *options, "-o", "out.vmfb")
        _call(folder, timeout, commands[COMPILE], *options, *STREAMS, "-o", "streams.mlir")
        for number, array in enumerate(arrays):
            np.save(folder / f"in-{number}.npy", array)
        _call(
            folder, timeout, commands[RUN], "--module=out.vmfb", "--function=main",
            *["--device=local-task"] * len(targets),
            *(f"--input=@in-{number}.npy" for number in range(len(arrays))),
            *(f"--output=@out-{number}.npy" for number in range(results)),
        )  # fmt: skip
        outputs = tuple(np.load(folder / f"out-{number}.npy") for number in range(results))
        return IreeRun(outputs, (folder / "streams.mlir").read_text())


def _found(name: str) -> str:
    """Path of a command of IREE, beside this Python's own commands or where the shell finds it."""
    places = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    found = shutil.which(name, path=places)
    if found is None:
        raise MissingDependencyError(
            f"there is no {name}; install IREE with pip install 'go_rl[iree]'"
        )
    return found


def _call(folder: Path, timeout: float, command: str, *options: str) -> None:
    """Run a command of IREE in a folder."""
    name = Path(command).name
    try:
        done = subprocess.run(
            [command, *options], cwd=folder, timeout=timeout, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ExecutionError(f"{name} did not end in {timeout:g} s") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        wrong = [line for line in lines if "error:" in line or "rror" in line] or lines[-1:]
        said = wrong[0] if wrong else f"exit code {done.returncode}"
        raise ExecutionError(f"{name} fails: {said}")
