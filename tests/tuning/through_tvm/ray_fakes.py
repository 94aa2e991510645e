"""What a worker of `RayMeasurer` calls in tests: a program is a number."""

import os
import time
from typing import Any

import numpy as np

from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.timing import TimingSamples

CRASH, SLOW = -1, -2


def compile_number(number: int) -> tuple[Timed, dict[str, Any]]:
    """Take half a second, or do as bad candidates do."""
    if number == CRASH:
        os.abort()
    time.sleep(3600 if number == SLOW else 0.5)
    seconds = np.full(3, float(number))
    return lambda timing: TimingSamples(seconds, np.ones(3), np.zeros(3)), {"compile_seconds": 0.5}


answer = MeasuringRun(compile_number).answer
