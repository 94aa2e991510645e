"""Two searches that write into one folder at the same time."""

import tempfile
import time
from pathlib import Path

import numpy as np
from runner.suite import Suite

from .signals import leftovers, start

COUNT = 12
LONGEST = 120.0
REFUSED = "another run writes there"


def trial(index: int) -> str | None:
    """A second search begins up to two seconds after the first."""
    rng = np.random.default_rng(index)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = start(folder, "--method", "random", "--samples", "4")
        time.sleep(float(rng.uniform(0.0, 2.0)))
        second = start(folder, "--method", "greedy", "--samples", "4")
        ends = []
        for process in (first, second):
            try:
                _, said = process.communicate(timeout=LONGEST)
            finally:
                process.kill()
            ends.append((process.wait(), REFUSED in said, said[-200:]))
        if not any(code == 0 for code, *_ in ends):
            return f"neither made a plan: {ends}"
        if wrong := [end for end in ends if end[:2] not in ((0, False), (2, True))]:
            return f"one ended otherwise than done or refused: {wrong}"
        left = sorted(leftovers(folder))
    return f"left {left}" if left else None


SUITE = Suite(
    name="two-runs",
    proves="of two searches for one folder each ends with a whole plan there, or is refused by "
    "the name of the other; nothing else is left",
    unit="pairs",
    count=COUNT,
    trial=trial,
)
