"""What a process of `test_processes` runs: a toy training, alone or with others.

Usage: processes_program.py FOLDER COORDINATOR COUNT INDEX [MISCHIEF]
"""

import os
import signal
import sys
from dataclasses import replace

import pytest
from policy.learn.toys import CONFIG, toy_zoo

from go_rl.api.training.pretrain import ProcessConfig, pretrain
from go_rl.cli.guard import guarded

TOGETHER = replace(CONFIG, problems=3)
"""Three problems an update do not divide by two processes."""


def main(folder: str, coordinator: str, count: str, index: str, mischief: str = "") -> int:
    """Train; a process that is told to does something wrong."""
    several = int(count) > 1
    processes = ProcessConfig(
        coordinator if several else None,
        int(count) if several else None,
        int(index) if several else None,
        start_seconds=60,
        lost_seconds=20,
    )

    def report(done: int, total: int, sentence: str) -> None:
        if mischief == "killed" and (done, index) == (3, "1"):
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        toy_zoo(patch)
        pretrain(TOGETHER, folder, report=report, processes=processes)
    return 0


if __name__ == "__main__":
    code = guarded(lambda: main(*sys.argv[1:]))
    sys.stderr.flush()
    if code:  # as the command line does: nobody is waited for
        os._exit(code)
