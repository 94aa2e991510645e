"""How long a user waits for the first plan: a fresh install, and the run after it.

Run: ``python -m experiments cli.first_run``. The command line in a process of its own: ``rounds``
times from an empty folder of compiled functions, each followed by the same command again. Wall
seconds from the start of the process to the line that announces the first legal plan, and to its
end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment
from experiments.statistics import with_range
from go_rl.report.text_table import markdown_table

ANNOUNCED = "first legal plan"


@dataclass(frozen=True)
class FirstRun(Experiment):
    """Options of this experiment."""

    model: str = "zoo:bert-base"
    hardware: str = "ring36"
    seconds: float = 2.0
    """Budget of the search."""
    rounds: int = 5

    def run(self) -> None:
        """Measure and write the table."""
        waits = [_round(self) for _ in range(self.rounds)]
        cold, warm = zip(*waits, strict=True)
        spread = partial(with_range, form=".1f", middle=np.median)
        lines = [
            ["kernels to be compiled", spread([w.first for w in cold]),
             spread([w.whole for w in cold])],
            ["the next one", "", spread([w.whole for w in warm])],
        ]  # fmt: skip
        table = markdown_table(["run", "first legal plan", "done"], lines)
        text = (
            f"# First run\n\n`go-rl optimize {self.model} --hardware {self.hardware} --seconds "
            f"{self.seconds:g}`, {self.rounds} rounds on {os.cpu_count()} cores. Median wall "
            f"seconds (least to most) from the start of the process.\n\n{table}"
        )
        print(text)
        self.write_page(text)


@dataclass(frozen=True)
class Wait:
    """One run of the command, wall seconds."""

    first: float
    """Until the first legal plan was announced; nan where it was not, as on a later run."""
    whole: float


def _round(options: FirstRun) -> tuple[Wait, Wait]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "kernels")}
        command = [
            sys.executable, "-m", "go_rl", "optimize", options.model, "--hardware",
            options.hardware, "--seconds", str(options.seconds), "--out",
            str(Path(folder) / "plan"),
        ]  # fmt: skip
        return _run(command, environment), _run(command, environment)


def _run(command: list[str], environment: dict[str, str]) -> Wait:
    started, first = time.perf_counter(), float("nan")
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if ANNOUNCED in line:
                first = time.perf_counter() - started
    return Wait(first, time.perf_counter() - started)
