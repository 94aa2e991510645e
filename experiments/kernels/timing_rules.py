"""How to time a kernel on a core that other tenants disturb: rounds and rules compared.

Run: ``python -m experiments.kernels.timing_rules DIR [--core 1]`` with a folder of ``go-rl measure
kernels``. Kernels of several models lie compiled in a worker and are called in turn for some
minutes; then the same in a fresh process. A rule makes one time of the calls of some successive
rounds; how far its times of the two processes are apart, for the same kernel, is what it is judged
by. ``low`` is the rule of `go_rl.costs.timing.timing`: what calls took of the process' own time,
divided by the slow-down of the fixed work in the round, in a low quantile; ``paced`` ones take
other quantiles of the same, ``quick`` the quickest rounds only, ``raw`` ones wall time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from go_rl.costs.kernels.measure.collect import KERNELS, NODES
from go_rl.costs.kernels.measure.exported import part_task, zoo_program
from go_rl.costs.kernels.measure.worker import KernelTask
from go_rl.costs.timing.collector import first_by_hash
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.costs.timing.measuring_run import Hold, Visit
from go_rl.costs.timing.timing import TimingSamples, joined, timing_of
from go_rl.costs.timing.worker import (
    START_SECONDS,
    WORKER,
    folder_pace,
    worker_core,
    worker_environment,
)
from go_rl.graphs.cutting.file_format import load_kernels
from go_rl.graphs.zoo.models.inventory import zoo_model
from go_rl.runtime.records import RECORDS, RecordStore
from go_rl.runtime.warm_worker import WarmWorker

QUICK = 0.2
"""Share of the calls: the fastest ones by core speed."""


def _quick(calls: TimingSamples) -> float:
    quick = calls.slowed <= np.quantile(calls.slowed, QUICK)
    return float(np.quantile(calls.seconds[quick] / calls.slowed[quick], 0.25))


RULES: dict[str, Callable[[TimingSamples], float]] = {
    "low": lambda calls: timing_of(calls).seconds,
    "paced, median": lambda calls: float(np.median(calls.seconds / calls.slowed)),
    "paced, least": lambda calls: float((calls.seconds / calls.slowed).min()),
    "quick": _quick,
    "raw, median": lambda calls: float(np.median(calls.seconds + calls.away)),
    "raw, lower decile": lambda calls: float(np.quantile(calls.seconds + calls.away, 0.1)),
    "raw, least": lambda calls: float((calls.seconds + calls.away).min()),
}
ROUNDS = (1, 4, 8, 24)
LONG = 1.5e-4
"""Seconds that divide kernels into short and long ones."""
DRAWS = 20
"""Successive rounds drawn for each kernel and process."""


@dataclass(frozen=True)
class TimingRules(Experiment):
    """Options of this experiment."""

    folder: tyro.conf.Positional[Path]
    """Of go-rl measure kernels."""
    core: int | None = None
    """Core that measures; default: the last one of this process."""
    kernels: int = 40
    """Timed ones, at most; the first two by hash of each model, of 10 microseconds to 30 ms."""
    minutes: float = 4.0
    """For each process."""
    visit_seconds: float = 3e-3
    """Seconds of calls in one round."""

    def run(self) -> None:
        """Time, compare, and write table and page."""
        config = CollectConfig(core=self.core)
        full_pace = folder_pace(self.folder, config)
        tasks, seconds = zip(*timed_kernels(self, config, full_pace), strict=True)
        first, second = (visits_of(tasks, self, config) for _ in range(2))
        rows = compare(first, second, seconds)
        self.write_rows(rows)
        rounds = min(len(each) for each in (*first, *second))
        slowed = np.median(np.concatenate([s.slowed for each in first for s in each]))
        self.write_page(page(rows, len(tasks), rounds, self, slowed))


@dataclass(frozen=True)
class Row:
    """How far two processes are apart."""

    visits: int
    rule: str
    short_percent: float
    """Mean over kernels and draws below `LONG`."""
    long_percent: float


def timed_kernels(
    options: TimingRules, config: CollectConfig, full_pace: float
) -> list[tuple[KernelTask, float]]:
    """Return kernels of a folder, of as many models as possible, and their seconds."""
    found: list[tuple[KernelTask, float]] = []
    with RecordStore(options.folder / RECORDS) as store:
        for path in sorted((options.folder / KERNELS).glob("*.npz")):
            kernels, about = load_kernels(path)
            records = store.find(config.target, kernels.hashes, 0)
            seconds = {r.workload: r.seconds for r in records if not r.setting and r.seconds}
            able = [h for h, s in seconds.items() if 1e-5 <= s <= 3e-2]
            program = zoo_program(zoo_model(path.stem)) if able else None
            for hash_ in first_by_hash(able, 1.0)[:2]:
                assert program is not None
                nodes = about[NODES][kernels.hashes.index(hash_)]
                task = part_task(program, nodes, config, full_pace)
                if not isinstance(task, str):
                    found.append((task, seconds[hash_]))
            if len(found) >= options.kernels:
                break
    return found


def visits_of(
    tasks: Sequence[KernelTask], options: TimingRules, config: CollectConfig
) -> list[list[TimingSamples]]:
    """Return the rounds of each kernel in a fresh process."""
    timing = TimingConfig(seconds=options.visit_seconds, least_calls=1, visits=1)
    found: list[list[TimingSamples]] = [[] for _ in tasks]
    with WarmWorker(WORKER, worker_core(config), worker_environment(config)) as worker:
        for i, task in enumerate(tasks):
            worker.call(Hold(i, task), START_SECONDS)
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            for i, seen in enumerate(found):
                seen.append(worker.call(Visit(i, timing), START_SECONDS))
    return found


def compare(
    first: Sequence[Sequence[TimingSamples]],
    second: Sequence[Sequence[TimingSamples]],
    known: Sequence[float],
) -> list[Row]:
    """Return how far the rules' times of two processes are apart.

    Args:
        first: rounds of each kernel.
        second: the same in the other process.
        known: seconds of each kernel.
    """
    rng = np.random.default_rng(0)
    rows = []
    for count in ROUNDS:
        apart: dict[str, list[list[float]]] = {rule: [] for rule in RULES}
        for one, other in zip(first, second, strict=True):
            for rule in RULES:
                apart[rule].append([])
            for _ in range(DRAWS):
                pair = [successive(visits, count, rng) for visits in (one, other)]
                for rule, time_of in RULES.items():
                    a, b = map(time_of, pair)
                    apart[rule][-1].append(abs(a / b - 1))
        long = np.array(known) > LONG
        for rule, each in apart.items():
            mean = 100 * np.array([np.mean(kernel) for kernel in each])
            rows.append(Row(count, rule, float(mean[~long].mean()), float(mean[long].mean())))
    return rows


def successive(
    visits: Sequence[TimingSamples], count: int, rng: np.random.Generator
) -> TimingSamples:
    """Return the calls of successive rounds, drawn at random."""
    start = int(rng.integers(max(len(visits) - count, 0) + 1))
    return joined(visits[start : start + count])


def page(
    rows: Sequence[Row], kernels: int, rounds: int, options: TimingRules, slowed: float
) -> str:
    """Return the page."""
    told = {(r.rule, r.visits): f"{r.short_percent:.1f} / {r.long_percent:.1f}" for r in rows}
    columns = {f"{count} round{'s' * (count > 1)}": count for count in ROUNDS}
    return (
        f"# Timing a kernel on a disturbed core\n\n{kernels} kernels, called in turn for "
        f"{options.minutes:g} minutes ({rounds} times or more, {1e3 * options.visit_seconds:g} ms "
        "of calls each) in each of two processes. In the median the fixed work took "
        f"{slowed:.2f} times its reference time. Per cent by which the times of one kernel in the "
        "two processes are apart, on average, when each is made of so many successive rounds: "
        f"kernels of up to {1e6 * LONG:g} us / longer ones.\n\n"
        f"{grid_table('rule', list(RULES), columns, lambda rule, count: told[rule, count])}"
    )


if __name__ == "__main__":
    TimingRules.main()
