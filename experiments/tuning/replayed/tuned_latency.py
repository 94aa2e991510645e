"""Final latency of tuned networks against untuned TVM (DynaTune, figure 11).

Run: ``taskset -c 1 python -m experiments.tuning.replayed.tuned_latency FOLDER`` behind
``schedulers_replayed``, whose table it reads; times of untuned operators are kept in the folder.
Untuned: the operators' loops as they are, compiled by LLVM, timed by this script on the core that
it runs on, as the records were.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from experiments.experiment import RESULTS, Experiment
from experiments.rows import KeptRows
from experiments.tuning.networks import NETWORKS, tunable_operators
from experiments.tuning.record_pools import CODEGEN
from experiments.tuning.schedulers_replayed import ORDERS, Row
from go_rl.core.files.whole_file import write_text
from go_rl.costs.programs.workloads import TensorTask, task_module
from go_rl.costs.programs.workloads.drawn_programs import codegen_target
from go_rl.costs.timing.tvm_calls import import_tvm
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
                known[task.workload] = untuned_seconds(task)
                print(f"{name} {task.title}: {1e3 * known[task.workload]:.4g} ms", flush=True)
                write_text(path, json.dumps(known, indent=1) + "\n")
    return known


def untuned_seconds(task: TensorTask) -> float:
    """Return the median seconds of one run of an operator without a schedule."""
    tvm, module = import_tvm(), task_module(task)
    kernel = tvm.compile(module, target=codegen_target(CODEGEN)).jit()
    rng, device = np.random.default_rng(0), tvm.cpu()
    operands = [
        tvm.runtime.tensor(rng.random(_shape(buffer), np.float32) + np.float32(0.5), device)
        for buffer in module["main"].params
    ]
    timed = kernel.time_evaluator("main", device, number=1, repeat=1)
    timed(*operands)
    calls, began = list[float](), time.perf_counter()
    while len(calls) < LEAST_CALLS or time.perf_counter() - began < LEAST_SECONDS:
        calls.append(float(timed(*operands).results[0]))
    return float(np.median(calls))


def _shape(buffer: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in buffer.shape)


def _lines(name: str, untuned: Mapping[str, float], rows: Sequence[Row]) -> list[list[str]]:
    """One line, or none where no run of the network is known."""
    before = 1e3 * sum(
        uses * untuned[task.workload] for task, uses in tunable_operators(name).items()
    )
    line, final = [name, f"{before:.1f}"], before
    for scheduler in SCHEDULERS:
        found = sorted(r.final_ms for r in rows if (r.network, r.scheduler) == (name, scheduler))
        if not found:
            return []
        final = float(np.median(found))
        line.append(f"{final:.2f} ({found[0]:.2f}–{found[-1]:.2f})")
    return [[*line, f"{100 * (1 - final / before):.1f}", f"{before / final:.1f}"]]


if __name__ == "__main__":
    TunedLatency.main()
