"""What a process of `test_processes` runs: exchange values with the others, without training.

Usage: exchange_program.py COORDINATOR COUNT INDEX
"""

import os
import sys

from go_rl.cli.guard import guarded
from go_rl.core import TrainingError
from go_rl.policy.learn.config import RingTrainConfig
from go_rl.policy.learn.processes.config import ProcessConfig
from go_rl.policy.learn.processes.join import joined


def main(coordinator: str, count: str, index: str) -> int:
    """Exchange values; then process 1 fails."""
    processes = ProcessConfig(coordinator, int(count), int(index), start_seconds=60)
    with joined(processes, RingTrainConfig()) as group:
        name = ("zero", "one")[group.index]
        values, first = group.gather(lambda: name), group.on_first(lambda: name)
        shared = group.share([3, 1, 1, 2, 1]).compute(lambda mine: [10 * i for i in mine])
        sys.stderr.write(f"values {values}, first {first}, shared {shared}\n")
        if index == "1":
            raise TrainingError("no more paper")
        group.on_first(lambda: None)
    return 0


if __name__ == "__main__":
    code = guarded(lambda: main(*sys.argv[1:]))
    sys.stderr.flush()
    os._exit(code)
