"""`prefetch`, `polled`: an iterator's next items, made in a thread while the last one is used."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Event
from typing import TypeVar

T, N = TypeVar("T"), TypeVar("N")
TURN_SECONDS = 5e-4
_END = object()


def prefetch(items: Iterable[T], count: int) -> Generator[T, None, None]:
    """Yield the items in their order; an error while making one is raised in its place.

    Meanwhile the interpreter lets threads take turns every half millisecond, so that the user of
    the items waits no longer than that.

    Args:
        items: all made in one thread, which is not the caller's.
        count: this many, at least 1, are made before they are asked for.
    """
    iterator = iter(items)
    pool = ThreadPoolExecutor(1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        waiting = deque(pool.submit(next, iterator, _END) for _ in range(count))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, iterator, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
        sys.setswitchinterval(before)


def polled(items: Iterable[T], none: N) -> Generator[T | N, None, None]:
    """Yield the items in their order, all made in one thread which is not the caller's; an error
    while making one is raised in its place.

    Args:
        items: a generator goes on while the caller uses its last item; none is waited for.
        none: yielded when the next item is not made yet.
    """
    iterator = iter(items)
    made: SimpleQueue[T | BaseException] = SimpleQueue()
    stopped = Event()

    def make() -> None:
        try:
            for item in iterator:
                made.put(item)
                if stopped.is_set():
                    return
            made.put(_Ended())
        except BaseException as error:  # raised by whoever takes the items
            made.put(error)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(make)
        try:
            while True:
                try:
                    item = made.get_nowait()
                except Empty:
                    yield none
                    continue
                if isinstance(item, _Ended):
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()


class _Ended(Exception):  # noqa: N818 - no error
    """There is no further item."""
