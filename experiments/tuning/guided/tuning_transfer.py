"""Tuning that transfers (Verma et al. 2023, Table 8): candidates are reused through attention.

Run: ``python -m experiments tuning.guided.tuning_transfer RECORDS`` with the folder that
``record_pools --networks resnet50 mobilenet-v3-large inception-v3`` wrote. The tuner learned the
data set that ships without any operator of these networks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Experiment, say_loss
from experiments.programs.pruning import prune
from experiments.tuning.guided.recorded_programs import RecordedPrograms, recorded_programs, without
from experiments.tuning.guided.transfer_runs import (
    ARMS,
    ATTENTION,
    OWN,
    SECONDS_A_CANDIDATE,
    TransferPlan,
    TunedPools,
    hidden,
    outcome,
    tuned_pools,
)
from experiments.tuning.tuner_curves import band
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.transfer.tuner_network import TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.report.text_table import markdown_table

WITHIN = 0.02
"""Of the latency of full tuning: what is asked for."""
SIZES = TunerSizes(units=32)
EVERY = "no reuse: all operators by the tuner"


@dataclass(frozen=True)
class TuningTransfer(Experiment):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the records; weights of the tuner are kept there, too."""
    networks: tuple[str, ...] = ("resnet50", "mobilenet-v3-large", "inception-v3")
    shares: tuple[float, ...] = (0.5, 0.7, 0.9, 1.0)
    """Of FLOP whose operators are tuned."""
    tried: tuple[int, ...] = (0, 8, 12, 16)
    """Candidates of each of these that are measured; 0: all."""
    measured: tuple[int, ...] = (0, 2, 4)
    """Candidates of each other operator that are measured."""
    shown: TransferPlan = field(default_factory=lambda: TransferPlan(0.9, 12, 4))
    """Of the first table."""
    seeds: int = 20
    """Of the arms that draw."""
    tuners: int = 4
    """Tuners that are trained, each with its own seed."""
    epochs: int = 30

    def run(self) -> None:
        """Train what is missing, run all cells, write the page."""
        recorded = [recorded_programs(self.folder, name) for name in self.networks]
        held = without_all(read_examples("programs-1"), recorded)
        tuners = [trained(held, self, seed) for seed in range(self.tuners)]
        rows = self.write_rows(
            row for each in recorded
            for row in rows_of([tuned_pools(each, tuner) for tuner in tuners], self)
        )  # fmt: skip
        self.write_page(page(rows, recorded, self, len(held.seconds)))


@dataclass(frozen=True)
class Row:
    """Mean of one arm on one network."""

    network: str
    arm: str
    share: float
    tried: int
    measured: int
    tuned: int
    """Operators that are tuned."""
    operators: int
    latency: float
    """Over that of full tuning, mean."""
    half_width: float
    """Of its 95 % interval; NaN where nothing is drawn."""
    time: float
    """Over that of full tuning, mean."""

    @property
    def plan(self) -> TransferPlan:
        """What is measured."""
        return TransferPlan(self.share, self.tried, self.measured)


def without_all(examples: ProgramExamples, recorded: Sequence[RecordedPrograms]) -> ProgramExamples:
    """Return the examples of tasks that no recorded network has, sizes hidden."""
    held = without(examples, tuple(task for each in recorded for task in each.tasks))
    pruned = held.take(prune(held).rows)
    return replace(pruned, inputs=hidden(pruned.inputs))


def trained(examples: ProgramExamples, options: TuningTransfer, seed: int) -> TransferTuner:
    """Return the tuner; one that was trained before is read."""
    names = "-".join(sorted(options.networks))
    path = options.folder / f"tuner-{names}-{options.epochs}-{seed}.npz"
    if not path.exists():
        print(f"tuner {seed}: {len(examples.seconds)} programs to learn from", flush=True)
        run = TunerRun(epochs=options.epochs, batch=64, seed=seed)
        TransferTuner.fit(examples, run, SIZES, say_loss).save(path)
    return TransferTuner.load(path)


def rows_of(pools: Sequence[TunedPools], options: TuningTransfer) -> Iterator[Row]:
    """Yield the rows of one network, given as each of several tuners sees it."""
    plans = itertools.product(options.shares, options.tried, options.measured)
    for arm, plan in itertools.product(ARMS, itertools.starmap(TransferPlan, plans)):
        drawn = [pools[seed % len(pools)] for seed in range(options.seeds)]
        learned = pools if arm in (ATTENTION, OWN) else drawn
        cells = [
            outcome(each, plan, arm, np.random.default_rng(seed))
            for seed, each in enumerate(learned)
        ]
        mean, half = band(np.array([[cell.latency, cell.time] for cell in cells]))
        yield Row(
            pools[0].network,
            arm,
            plan.share,
            plan.tried,
            plan.measured,
            cells[0].tuned,
            len(pools[0].seconds),
            float(mean[0]),
            float(half[0]),
            float(mean[1]),
        )


def page(
    rows: Sequence[Row], recorded: Sequence[RecordedPrograms], options: TuningTransfer, learned: int
) -> str:
    """Return the page."""
    sizes = [len(pool.seconds) for each in recorded for pool in each.pools.pools]
    failed, plan = sum(each.failed for each in recorded), options.shown
    return (
        "# Tuning that transfers\n\n"
        f"Recorded pools of {', '.join(each.pools.network for each in recorded)}: {min(sizes)} to "
        f"{max(sizes)} measured random candidates of each operator ({failed} that failed are left "
        "out). *Full tuning* measures all of them. *With transfer*: only the fewest operators that "
        "make up a share of the FLOP are tuned: some of their candidates are measured, the first "
        "by the tuner's prediction; of the others the first by a guide are measured, or the first "
        "is taken as it is. *Time*: seconds of building and timing as recorded, and "
        f"{SECONDS_A_CANDIDATE:g} s for each candidate that a guide reads. Published (Table 8, "
        "CPU): 67 %, 30 % and 10 % of the time of full tuning at 102 %, 102 % and 98 % of its "
        "latency.\n\n"
        "Guides: *attention* of the tuner's head to what was measured of the tuned operators; "
        "*tuner alone*: its own prediction; nearness to the best candidate of the tuned operator "
        "nearest in FLOP, nearest in shape, or drawn; *no reuse*: a random candidate; *no tuner*: "
        f"random ones of all operators. The tuner learned {learned:,} programs of other operators "
        f"(pruned, {options.epochs} epochs, {SIZES.units} units, {options.tuners} seeds, ± half of "
        f"the 95 % interval; the arms that draw: {options.seeds} seeds).\n\n"
        f"## {plan.share:.0%} of the FLOP tuned by {plan.tried} candidates an operator, "
        f"{plan.measured} of each other\n\n{_first(rows, options)}\n"
        f"## Least time within {WITHIN:.0%} of full tuning's latency\n\n"
        f"{_least(rows, options)}"
    )


def _first(rows: Sequence[Row], options: TuningTransfer) -> str:
    cells = []
    for row in rows:
        if row.plan == options.shown:
            half = "" if np.isnan(row.half_width) else f" ± {100 * row.half_width:.1f}"
            cells.append([
                row.network, f"{row.tuned} of {row.operators}", row.arm,
                f"{100 * row.latency:.1f}{half}", f"{100 * row.time:.0f}",
            ])  # fmt: skip
    heads = ["network", "tuned", "guide", "latency, % of full tuning", "time, %"]
    return markdown_table(heads, cells)


def _least(rows: Sequence[Row], options: TuningTransfer) -> str:
    """The plan of least time whose mean latency is near that of full tuning, of each arm."""
    cells = []
    for arm in (*ARMS, EVERY):
        line = [arm]
        for network in options.networks:
            near = [
                row for row in rows
                if row.network == network and row.latency <= 1 + WITHIN and _of(row, arm)
            ]  # fmt: skip
            best = min(near, key=lambda row: row.time, default=None)
            line.append("not reached" if best is None else f"{100 * best.time:.0f} % {_told(best)}")
        cells.append(line)
    note = (
        "The best of all plans for each network, known only afterwards. In brackets: share of the "
        "FLOP that is tuned, candidates measured of each operator that is, of each other.\n\n"
    )
    return note + markdown_table(["guide", *options.networks], cells)


def _of(row: Row, arm: str) -> bool:
    """Whether a row is of an arm; where all operators are tuned, nothing is reused."""
    if arm == EVERY:
        return row.arm == OWN and row.share == 1 and row.tried > 0
    return row.arm == arm and row.share < 1


def _told(row: Row) -> str:
    return f"({row.share:.0%}, {row.tried or 'all'}, {row.measured})"
