"""A worker answers, and says what happened when it cannot."""

import gc
import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from go_rl.runtime.warm_worker import (
    WarmWorker,
    WorkerDied,
    WorkerError,
    WorkerFailed,
    WorkerTimeout,
)

LONG = 60.0
"""Seconds that no call takes."""
UNNAMED = int(signal.SIGRTMIN) + 1
"""A signal without a name."""


@pytest.fixture(scope="module")
def shared() -> Iterator[WarmWorker]:
    """One worker for tests that do not hurt it, or that show how it recovers."""
    with WarmWorker("worker_functions:act") as worker:
        yield worker


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be noticed does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_calls_are_answered_by_one_other_process_that_stays_warm():
    with WarmWorker("worker_functions:nth_call") as worker:
        answers = [worker.call(None, LONG) for _ in range(3)]
    assert [count for _, count in answers] == [1, 2, 3]
    assert len({pid for pid, _ in answers}) == 1
    assert answers[0][0] != os.getpid()


@pytest.mark.parametrize("core", [-1, 100_000, 10**30])
def test_a_core_that_cannot_be_had_is_named(core):
    with (
        WarmWorker("operator:neg", core) as worker,
        pytest.raises(WorkerError, match=rf"^core {core} cannot be had; this process may use \d"),
    ):
        worker.call(1, LONG)


def test_what_the_function_raises_comes_as_text_and_the_process_stays(shared):
    pid, _ = shared.call(("answer", 0), LONG)
    with pytest.raises(WorkerFailed, match=r"^ZeroDivisionError: integer") as caught:
        shared.call(("raise", 1), LONG)
    assert caught.value.kind == "ZeroDivisionError"
    assert caught.value.message == "integer division or modulo by zero"
    assert str(caught.value) == f"{caught.value.kind}: {caught.value.message}"
    assert "worker_functions.py" in caught.value.__notes__[0]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(WorkerFailed, match=r"^(PicklingError|AttributeError): Can't pickle"):
        shared.call(("unpicklable", 0), LONG)
    assert shared.call(("answer", 5), LONG) == (pid, 5)


def test_a_payload_that_cannot_be_pickled_is_not_sent(shared):
    pid, _ = shared.call(("answer", 0), LONG)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        shared.call(lambda: None, LONG)
    assert shared.call(("answer", 6), LONG) == (pid, 6)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("operator:no_such_function", "AttributeError: module 'operator' has no attribute"),
    ],
)
def test_a_function_that_is_not_there(function, said):
    with WarmWorker(function) as worker, pytest.raises(WorkerFailed, match=f"^{said}"):
        worker.call(1, LONG)


@pytest.mark.parametrize("function", ["operator", ":neg", "operator:", "a:b:c", ""])
def test_a_malformed_name_is_refused(function):
    with pytest.raises(WorkerError, match=r"^function must be 'module:name', not '"):
        WarmWorker(function)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (("leave", 4), "the process ended with exit status 4"),
        (("exit", 0), "the process ended with exit status 0"),
        (("read", 0), "the process was killed by SIGSEGV"),
        (("signal", UNNAMED), f"the process was killed by signal {UNNAMED}"),
    ],
)
def test_a_death_is_told_and_the_next_call_answered_by_a_fresh_process(shared, order, said):
    pid, _ = shared.call(("answer", 0), LONG)
    with pytest.raises(WorkerDied, match=f"^{said}$"):
        shared.call(order, LONG)
    fresh, number = shared.call(("answer", 7), LONG)
    assert (fresh != pid, number, runs(pid)) == (True, 7, False)


@pytest.mark.parametrize("order", [("hang", 60), ("child", 60)])
def test_a_call_that_takes_too_long_is_killed(shared, order):
    pid, _ = shared.call(("answer", 0), LONG)
    with pytest.raises(WorkerTimeout, match=r"^no answer in 0\.2 s$"):
        shared.call(order, 0.2)
    assert not Path(f"/proc/{pid}").exists()
    assert shared.call(("answer", 9), LONG)[1] == 9


def test_the_answer_to_an_interrupted_call_is_not_given_to_the_next(shared):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    shared.call(("answer", 0), LONG)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            shared.call(("sleep", 20), LONG)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert shared.call(("answer", 2), LONG)[1] == 2


@pytest.mark.slow
def test_closing_leaves_nothing_behind():
    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    WarmWorker("operator:neg").close()
    before = descriptors()
    worker = WarmWorker("worker_functions:process")
    pid = worker.call(None, LONG)
    worker.close()
    worker.close()
    assert not Path(f"/proc/{pid}").exists()
    assert descriptors() == before
    with pytest.raises(WorkerError, match=r"^the worker of worker_functions:process is closed"):
        worker.call(None, LONG)
