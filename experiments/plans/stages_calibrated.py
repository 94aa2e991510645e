"""How well prices predict the seconds of stages, before and after stages have run here.

Run: ``make long-pause``, then ``python -m experiments plans.stages_calibrated``. Networks of the
zoo on as many cores as this process may use, a core a device, by XLA: a plan by analytical prices
is run, its measured stages correct the prices, and twice more. Then other cuts of the same network,
which nothing was learned from, are run: the slowest stage as predicted against measured. At the end
the best plan in the pipeline against the whole model in one process with all cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import spearmanr

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import markdown_table
from experiments.rows import grouped
from experiments.statistics import geometric_mean, with_range
from go_rl.core import NodeId, OpGraph, Plan
from go_rl.core.hardware.processor import processor_name
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.pipeline import PipelineRun

NETWORKS = ("resnet18", "bert-small", "vit-tiny", "mixer-s16", "wavenet-2x18", "gpt-6-layers",
            "unet", "whisper-tiny", "transformer-xl-4-layers")  # fmt: skip
HARDWARE = "this-ring"
LEARNED = 3
"""Plans that prices are corrected by."""
SHARES = (0.4, 0.44, 0.47, 0.5, 0.53, 0.56, 0.6)
"""Shares of the work before the cut, of the plans that are predicted."""
CUTS = (*(f"learned {n}" for n in range(LEARNED)), *(f"cut {share}" for share in SHARES))
BEST = tuple(f"best {number}" for number in range(9))
COPIES = "copies"
NEAR = 1.3
"""Slowest stage over the best plan's, up to which a plan counts."""
NAN = float("nan")
HEAD = """# Seconds of stages, predicted and measured

Networks of the zoo on two cores of one processor, a core a device, by XLA (`go-rl optimize
--hardware this-ring`). Three plans ran and corrected the prices (`go-rl run --record`, `--cost
stages:FILE`). Other cuts, from which nothing was learned, then say how good the prices are: those
whose slowest stage is within 1.3 times of the best plan's. *Error*: mean of |predicted / measured -
1| of the slowest stage, by analytical prices before and by corrected ones after; *rank*: Spearman's
correlation of the two. Seconds are medians of processor time, other work ran on the machine beside.
*Throughput*: the plan by corrected prices in the pipeline over the whole model in one process that
has both cores, in interleaved runs on a machine without other work: mean, least and greatest. *Over
copies*: its mean over the sum of two processes that run the whole model at once, one a core, which
costs twice the memory. *Difference*: the largest relative one of its results from the whole
model's.
"""


@dataclass(frozen=True)
class CutRow:
    """One run of a plan."""

    network: str
    plan: str
    """``learned N``: one of those that corrected the prices; ``cut X``: predicted alone."""
    runtime: str
    measured_ms: float
    """Slowest stage, busy and sending, median of the samples."""
    analytical_ms: float
    calibrated_ms: float
    """By prices that all learned plans have corrected."""
    throughput: float
    whole_throughput: float
    max_relative: float
    """Largest difference of the stages' results from the whole model's."""
    processor: str


@dataclass(frozen=True)
class StagesCalibrated(Experiment):
    """Options of the script."""

    networks: tuple[str, ...] = NETWORKS
    samples: int = 30
    seconds: float = 2.0
    """Of planning each."""
    rounds: int = 3
    """Runs of the best plan beside the whole model."""

    def run(self) -> None:
        """Plan, run, correct, predict."""
        kept = self.kept_rows(CutRow)
        for network in self.networks:
            with TemporaryDirectory() as folder:
                work = _Calibration(self, network, Path(folder))
                known = {row.plan for row in kept.rows if row.network == network}
                for plans, make in ((CUTS, work.cuts), (BEST, work.best), ((COPIES,), work.copies)):
                    for row in [] if known & set(plans) else list(make()):
                        kept.add(row)
        self.write_page(_page(kept.rows))


@dataclass(frozen=True)
class _Calibration:
    """One network."""

    options: StagesCalibrated
    network: str
    folder: Path

    @cached_property
    def graph(self) -> OpGraph:
        return go_rl.load(f"zoo:{self.network}")

    def cuts(self) -> Iterator[CutRow]:
        """Rows of the plans that correct the prices, and of the others."""
        self._file.unlink(missing_ok=True)
        self._file.parent.mkdir(exist_ok=True)
        learned = [self._planned("auto")]
        runs = [self._run(learned[0], "0")]
        for number in range(1, LEARNED):
            learned.append(self._planned(self._cost))
            runs.append(self._run(learned[-1], str(number)))
        for number, (plan, run) in enumerate(zip(learned, runs, strict=True)):
            yield self._row(plan, f"learned {number}", run)
        known = {plan.device.tobytes() for plan in learned}
        seconds = go_rl.optimize(self.graph, hardware=HARDWARE, cost=self._cost, method="greedy")
        work = np.cumsum(seconds.problem.seconds[0])
        for share in SHARES:
            device = (work > share * work[-1]).astype(int)
            plan = self._of(device)
            if device.any() and plan.device.tobytes() not in known:
                known.add(plan.device.tobytes())
                yield self._row(plan, f"cut {share}", self._run(plan, str(share)))

    def best(self) -> Iterator[CutRow]:
        """Rows of the plan by corrected prices beside the whole model."""
        plan = self._planned(self._cost)
        for number in range(self.options.rounds):
            yield self._row(plan, f"best {number}", self._run(plan, f"b{number}", True))

    def copies(self) -> Iterator[CutRow]:
        """Row of the whole model in a process for each core, all at once: its throughput is their
        sum."""
        plan = self._of(np.zeros(self.graph.num_nodes, int))
        stages = self.folder / "copies"
        go_rl.export_stages(plan, f"zoo:{self.network}", stages)
        command = [sys.executable, "-m", "go_rl", "run", str(stages), "--json", "--samples", "100"]
        running = [
            subprocess.Popen(["taskset", "-c", str(core), *command], stdout=subprocess.PIPE)
            for core in sorted(os.sched_getaffinity(0))
        ]
        said = [json.loads(each.communicate()[0]) for each in running]
        total = sum(each["throughput"] for each in said)
        yield CutRow(
            self.network, COPIES, "jax", 1e3 * said[0]["stages"][0]["typical_seconds"],
            1e3 * plan.value, NAN, total, NAN, NAN, processor_name(),
        )  # fmt: skip

    @property
    def _file(self) -> Path:
        return self.options.out / "stages_calibrated" / f"{self.network}.jsonl"

    @property
    def _cost(self) -> str:
        return f"stages:{self._file}"

    def _planned(self, cost: str) -> Plan:
        seconds = self.options.seconds
        return go_rl.optimize(self.graph, hardware=HARDWARE, cost=cost, seconds=seconds).best

    def _of(self, device: np.ndarray, cost: str = "auto") -> Plan:
        """The plan with these devices."""
        fixed: dict[NodeId, int] = {
            str(n): int(d) for n, d in zip(self.graph.names, device, strict=True)
        }
        return go_rl.optimize(
            self.graph, hardware=HARDWARE, cost=cost, fixed=fixed, method="greedy", samples=1
        ).best

    def _run(self, plan: Plan, name: str, check: bool = False) -> PipelineRun:
        stages = self.folder / name
        go_rl.export_stages(plan, f"zoo:{self.network}", stages)
        config = PipelineConfig(samples=self.options.samples, timeout=300)
        record = self._file if name.isdecimal() else None
        return go_rl.run_stages(stages, check=check, config=config, record=record)

    def _row(self, plan: Plan, name: str, run: PipelineRun) -> CutRow:
        return CutRow(
            self.network, name, "jax", 1e3 * _slowest(run),
            1e3 * self._of(plan.device).value, 1e3 * self._of(plan.device, self._cost).value,
            run.throughput, run.whole_throughput or NAN,
            NAN if run.max_relative_error is None else run.max_relative_error, processor_name(),
        )  # fmt: skip


def _slowest(run: PipelineRun) -> float:
    seconds: dict[int, float] = {}
    for stage in run.stages:
        seconds[stage.device] = seconds.get(stage.device, 0.0) + stage.typical_seconds
    return max(seconds.values())


def _page(rows: list[CutRow]) -> Iterator[str]:
    yield HEAD
    cells = []
    for network in dict.fromkeys(row.network for row in rows):
        own = [row for row in rows if row.network == network]
        cuts = [row for row in own if row.plan.startswith("cut")]
        runs = [row for row in own if row.plan.startswith("best")]
        least = min(row.measured_ms for row in own if row.plan in CUTS)
        copies = next((row.throughput for row in own if row.plan == COPIES), NAN)
        near = [row for row in cuts if row.measured_ms <= NEAR * least]
        if not near:
            continue
        cells.append((
            network, str(len(near)), _error(near, "analytical_ms"), _error(near, "calibrated_ms"),
            _rank(near, "analytical_ms"), _rank(near, "calibrated_ms"),
            with_range([row.throughput / row.whole_throughput for row in runs]),
            f"{np.mean([row.throughput for row in runs]) / copies:.2f}",
            f"{max((row.max_relative for row in runs), default=NAN):.1g}",
        ))  # fmt: skip
    heads = ("network", "plans", "error before, %", "error after, %", "rank before", "rank after",
             "throughput over one process", "over copies", "difference")  # fmt: skip
    yield markdown_table(heads, cells)
    best = grouped((row for row in rows if row.plan.startswith("best")), lambda row: row.network)
    ratios = [mean(r.throughput / r.whole_throughput for r in runs) for runs in best.values()]
    ahead = sum(ratio > 1 for ratio in ratios)
    copies = [row.throughput / mean(run.whole_throughput for run in best[row.network])
              for row in rows if row.plan == COPIES]  # fmt: skip
    yield (
        f"\nThroughput over one process: geometric mean {geometric_mean(ratios):.2f}; above 1 on "
        f"{ahead} of {len(ratios)} networks. Copies over one process: "
        f"{geometric_mean(copies):.2f}.\n"
    )


def _error(rows: list[CutRow], field: str) -> str:
    off = [abs(getattr(row, field) / row.measured_ms - 1) for row in rows]
    return f"{100 * float(np.mean(off)):.1f}"


def _rank(rows: list[CutRow], field: str) -> str:
    if len(rows) < 3:
        return ""
    found = spearmanr([row.measured_ms for row in rows], [getattr(row, field) for row in rows])
    return f"{float(found.statistic):.2f}"
