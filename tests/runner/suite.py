"""`Suite`: many trials of one kind, each decided by its index alone and run under its limits."""

import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A claim, how often it is put to the test, and one trial of it."""

    name: str
    """What ``--suite`` and tables call it."""
    proves: str
    """The claim in one sentence, for the table."""
    unit: str
    """What is counted, in the plural, such as ``plans``."""
    count: int
    """Trials at full count; indices are 0 to ``count`` - 1."""
    trial: Callable[[int], str | None]
    """Run the trial of an index; None when the claim holds, else a sentence about what was lost.
    The same index gives the same trial on every machine. What it raises counts as lost, too."""
    each: int = 1
    """Units that one trial counts for."""
    limit_seconds: float = 900.0
    """A trial that takes longer is lost; the first ones compile, on machines that others use."""


@dataclass(frozen=True)
class Failure:
    """A trial that lost."""

    suite: str
    index: int
    what: str
    """What was lost, in words."""

    @property
    def repeat(self) -> str:
        """Command that runs this trial of a counted suite again."""
        return f"python -m tests.counted repeat {self.suite} {self.index}"


MOST_WORDS = 1000
"""Characters of a failure that are kept."""


class TooLongError(BaseException):
    """A trial took longer than its suite allows; nothing that is tried catches it."""


@dataclass(frozen=True)
class Batch:
    """Trials that were run one after the other."""

    indices: tuple[int, ...]
    failures: tuple[Failure, ...]
    cpu_seconds: float
    """Of this process and of those that it started."""


def run_trial(suite: Suite, index: int) -> Failure | None:
    """Run one trial; whatever it raises is a failure."""
    try:
        with time_limit(suite.limit_seconds):
            what = suite.trial(index)
    except TooLongError:
        what = f"took longer than {suite.limit_seconds:g} s"
    except Exception as error:
        what = f"{type(error).__name__}: {error} ({_where(error)})"
    return None if what is None else Failure(suite.name, index, what[:MOST_WORDS])


def run_batch(suite: Suite, indices: Sequence[int], seconds: float) -> Batch:
    """Run trials in order for about ``seconds``, at least one."""
    started, before = time.perf_counter(), _cpu_seconds()
    done: list[int] = []
    failures: list[Failure] = []
    for index in indices:
        if failure := run_trial(suite, index):
            failures.append(failure)
        done.append(index)
        if time.perf_counter() - started > seconds:
            break
    return Batch(tuple(done), tuple(failures), _cpu_seconds() - before)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLongError` in the block after ``seconds``; in the main thread only."""

    def stop(signum: int, frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}"
