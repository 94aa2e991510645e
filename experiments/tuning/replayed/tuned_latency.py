"""Final latency of tuned networks against untuned TVM (DynaTune, figure 11).

Run: ``taskset -c 1 python -m experiments.tuning.replayed.tuned_latency FOLDER`` behind
``schedulers_replayed``, whose table it reads; times of untuned operators are kept in the folder.
Untuned: the operators' loops as they are, compiled by LLVM, timed by this script on the core that
it runs on, as the records were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import RESULTS, Experiment
from experiments.rows import KeptRows
from experiments.statistics import with_range
from experiments.tuning.kernel_seconds import kernel_seconds
from experiments.tuning.networks import NETWORKS, tunable_operators
from experiments.tuning.schedulers_replayed import ORDERS, Row
from go_rl.core.files.whole_file import write_text
from go_rl.costs.programs.workloads import task_module
from go_rl.report.file_tables import markdown_table

UNTUNED = "untuned.json"
SCHEDULERS = ("sequential", "dynatune")
LEAST_CALLS, LEAST_SECONDS = 3, 0.2
"""Of an operator; the median counts."""


@dataclass(frozen=True)
class TunedLatency(Experiment):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Keeps the times of untuned operators."""
    runs: Path = RESULTS / "schedulers_replayed.csv"
    networks: tuple[str, ...] = tuple(NETWORKS)

    def run(self) -> None:
        """Time what is missing, and write the page."""
        rows = [row for row in KeptRows(Row, self.runs).rows if row.first_round == ORDERS[0]]
        untuned = untuned_times(self)
        cells = [line for name in self.networks for line in _lines(name, untuned, rows)]
        heads = ["network", "untuned, ms", *(f"{name}, ms" for name in SCHEDULERS), "less, %",
                 "times as fast"]  # fmt: skip
        text = (
            "# Tuned networks against untuned TVM\n\nMilliseconds of a network's tunable operators "
            "on one core, each times its uses. *Untuned*: loops as they are under LLVM, what TVM "
            "0.27 compiles without a schedule; its hand-written schedules for CPUs, against which "
            "DynaTune's authors state up to 26.7 % less (figure 11), are no longer part of TVM, so "
            "the percentages do not compare. *Sequential*, *dynatune*: ends of the replayed runs, "
            "median over seeds, in brackets their range. *Less*, *times as fast*: "
            f"`{SCHEDULERS[-1]}` against untuned.\n\n{markdown_table(heads, cells)}"
        )
        self.write_page(text)


def untuned_times(options: TunedLatency) -> dict[str, float]:
    """Return seconds of untuned operators by workload; what the folder has is not timed again."""
    path = options.folder / UNTUNED
    known: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    for name in options.networks:
        for task in tunable_operators(name):
            if task.workload not in known:
                module = task_module(task)
                known[task.workload] = kernel_seconds(module, LEAST_CALLS, LEAST_SECONDS)
                print(f"{name} {task.title}: {1e3 * known[task.workload]:.4g} ms", flush=True)
                write_text(path, json.dumps(known, indent=1) + "\n")
    return known


def _lines(name: str, untuned: Mapping[str, float], rows: Sequence[Row]) -> list[list[str]]:
    """One line, or none where no run of the network is known."""
    before = 1e3 * sum(
        uses * untuned[task.workload] for task, uses in tunable_operators(name).items()
    )
    line, final = [name, f"{before:.1f}"], before
    for scheduler in SCHEDULERS:
        found = [r.final_ms for r in rows if (r.network, r.scheduler) == (name, scheduler)]
        if not found:
            return []
        final = float(np.median(found))
        line.append(with_range(found, middle=np.median, to="–"))
    return [[*line, f"{100 * (1 - final / before):.1f}", f"{before / final:.1f}"]]


if __name__ == "__main__":
    TunedLatency.main()
