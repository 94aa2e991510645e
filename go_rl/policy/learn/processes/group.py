"""`Group`: the processes that train together, and `Share`: which of them does what.

Whatever is split is split by problem: one process draws, solves, prices and differentiates all
samples of a problem, as one process alone would, and the results are put in the order of the
problems again. So the sums have the same order and the weights the same bits as in one process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np

from go_rl.core import GoRLError, TrainingError

T = TypeVar("T")
LEAST_ROOM = 1024
"""Bytes of the smallest message; others are padded to powers of two, for each of which JAX compiles
once."""


class Group:
    """The processes of a run. All call the same methods in the same order."""

    def __init__(self, index: int = 0, count: int = 1) -> None:
        """``index``: of this process; ``count``: of all."""
        self.index, self.count = index, count
        self.over = False
        """An error has reached all, or a process is lost: nothing is exchanged any more."""
        self.lost = False
        """Whether a process is lost."""

    def gather(self, compute: Callable[[], T]) -> list[T]:
        """Return what every process computed, by its index.

        Raises:
            GoRLError: raised by ``compute`` here.
            TrainingError: raised by ``compute`` in another process, or a process is lost.
        """
        if self.count == 1:
            return [compute()]
        failure, value = None, None
        try:
            value = compute()
        except GoRLError as error:
            failure = error
        said = None if failure is None else str(failure)
        answers = [pickle.loads(row) for row in self._exchange(pickle.dumps((said, value)))]
        failed = [(i, wrong) for i, (wrong, _) in enumerate(answers) if wrong is not None]
        self.over = bool(failed)
        if failure is not None:
            raise failure
        for i, wrong in failed:
            raise TrainingError(f"process {i} of {self.count}: {wrong}")
        found = [value for _, value in answers]
        found[self.index] = value
        return cast("list[T]", found)

    def on_first(self, compute: Callable[[], T]) -> T:
        """Return, in every process, what process 0 computed; the others compute nothing."""
        return cast("T", self.gather(lambda: None if self.index else compute())[0])

    def share(self, costs: Sequence[int]) -> Share:
        """Share out work of these costs: the most costly first, each to whom has the least yet."""
        load, owner = [0] * self.count, [0] * len(costs)
        for i in sorted(range(len(costs)), key=lambda i: -costs[i]):
            owner[i] = load.index(min(load))
            load[owner[i]] += costs[i]
        return Share(self, tuple(owner))

    def agree(self, facts: dict[str, str]) -> None:
        """Compare what must be the same in all processes.

        Raises:
            TrainingError: it is not; the processes and what differs are named.
        """
        first, *others = self.gather(lambda: facts)
        for i, theirs in enumerate(others, 1):
            names = sorted(first.keys() | theirs.keys())
            wrong = [name for name in names if first.get(name) != theirs.get(name)]
            if wrong:
                told = "; ".join(
                    f"{name}: {theirs.get(name)}, not {first.get(name)}" for name in wrong[:3]
                )
                more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
                raise TrainingError(
                    f"process {i} of {self.count} differs from process 0 in {told}{more}; start "
                    "the same version with the same options everywhere"
                )

    def leave(self, error: GoRLError) -> None:
        """Let the others, unless they know, raise what ends this process, too."""

        def fail() -> None:
            raise error

        if not self.over:
            try:
                self.gather(fail)
            except GoRLError:
                return

    def _exchange(self, message: bytes) -> list[bytes]:
        """Send bytes to all, and return those of all."""
        if self.over:
            raise TrainingError("the processes of this run have ended")
        sizes = self._all(np.array([len(message)], np.int32))[:, 0]
        room = max(LEAST_ROOM, 1 << int(sizes.max() - 1).bit_length())
        padded = np.zeros(room, np.uint8)
        padded[: len(message)] = np.frombuffer(message, np.uint8)
        rows = self._all(padded)
        return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]

    def _all(self, row: np.ndarray) -> np.ndarray:
        """[count, ...] the rows of all processes."""
        from jax.experimental.multihost_utils import process_allgather

        try:
            return np.asarray(process_allgather(row)).reshape(self.count, -1)
        except (ValueError, RuntimeError) as error:  # by kind of collective
            self.over = self.lost = True
            raise TrainingError(
                f"process {self.index} of {self.count}: another process has ended or cannot be "
                f"reached ({_first_line(error)}); once its own error is dealt with, the same "
                "command in all processes goes on from the last checkpoint"
            ) from error


ALONE = Group()
"""One process."""


@dataclass(frozen=True)
class Share(Generic[T]):
    """Share of each process in the work of a group."""

    group: Group
    owner: tuple[int, ...]
    """Process of each piece of work."""

    @property
    def mine(self) -> list[int]:
        """Positions of what this process does."""
        return [i for i, owner in enumerate(self.owner) if owner == self.group.index]

    def repeated(self, times: int) -> Share[T]:
        """Return the share of the same pieces, all of them several times over."""
        return Share(self.group, self.owner * times)

    def compute(self, work: Callable[[list[int]], list[T]]) -> list[T]:
        """Return the results of all pieces in their order; ``work`` gets the positions of those of
        this process, and returns their results. Errors as in `Group.gather`."""
        rows = [iter(row) for row in self.group.gather(lambda: work(self.mine))]
        return [next(rows[owner]) for owner in self.owner]


def everything(count: int) -> Share:
    """Return the share of one process that does all of it."""
    return Share(ALONE, (0,) * count)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
