"""Configuration of processes that train together. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, check_ranges
from go_rl.core.errors import nearest

LAUNCHERS = ("none", "auto", "slurm", "ompi", "mpi4py")
"""Launchers whose environment JAX reads; auto: the first that is there (also Kubernetes, Cloud
TPU)."""
LARGEST_PORT = 65_535


@dataclass(frozen=True)
class ProcessConfig:
    """The processes of a run: the same command in each, only ``index`` differs."""

    coordinator: str | None = None
    """HOST:PORT at which the others reach process 0; it listens there. None: one process, or what
    the launcher says."""
    count: int | None = None
    """Processes of the run."""
    index: int | None = None
    """Number of this process, from 0; process 0 reads and writes the folder of the run."""
    launcher: str = "none"
    """Launcher whose environment gives the fields left out: auto (whichever is there), slurm, ompi
    (Open MPI), mpi4py or none."""
    start_seconds: int = 300
    """Time within which all processes must have started."""
    lost_seconds: int = 100
    """A process that shows no sign of life for so long is lost, and the others end."""

    def __post_init__(self) -> None:
        if self.launcher not in LAUNCHERS:
            raise TrainingError(
                f"processes: launcher must be one of {', '.join(LAUNCHERS)}, not "
                f"{self.launcher!r}{nearest(self.launcher, LAUNCHERS)}"
            )
        check_ranges(
            self, "processes", TrainingError, start_seconds=COUNT, lost_seconds=COUNT, count=COUNT,
            index=NOT_NEGATIVE,
        )  # fmt: skip
        if self.coordinator is not None:
            _check_address(self.coordinator)
        if None not in (self.count, self.index) and self.index >= self.count:  # pyright: ignore[reportOperatorIssue]
            raise TrainingError(
                f"processes: index {self.index} is out of range: the {self.count} processes of "
                f"the run have 0 to {self.count - 1}"  # pyright: ignore[reportOptionalOperand]
            )
        self._check_whole()

    @property
    def several(self) -> bool:
        """Whether this process joins others."""
        return self.coordinator is not None or self.launcher != "none"

    def _check_whole(self) -> None:
        names = ("coordinator", "count", "index")
        missing = [name for name in names if getattr(self, name) is None]
        if self.launcher == "none" and missing and len(missing) < len(names):
            raise TrainingError(
                f"processes: {' and '.join(missing)} must be given, too (in every process), or a "
                "launcher whose environment has it"
            )


def _check_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 1 <= int(port) <= LARGEST_PORT:
        raise TrainingError(
            f"processes: coordinator must be HOST:PORT with a port of 1 to {LARGEST_PORT}, not "
            f"{address!r}"
        )
