"""Work on rows that do not depend on each other, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def on_threads(work: Callable[[range], None], rows: int, threads: int | None = None) -> None:
    """Call ``work`` with every ``threads``-th row, once a thread; useful only if it releases the
    interpreter lock, as compiled functions do.

    Args:
        work: takes row numbers; its errors are raised here.
        rows: 0 to this, excluded.
        threads: maximum number; None: the number of cores that this process may use.
    """
    count = max(1, min(threads or _cores(), rows))
    if count == 1:
        work(range(rows))
        return
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda first: work(range(first, rows, count)), range(count)))


def _cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
