"""Schedulers compared on recorded pools: equal virtual time, the same inner tuner, five seeds.

Run: ``python -m experiments tuning.schedulers_replayed --folder DIR``. Paths of the inner tuner and
finished runs are kept in the folder: a run that was stopped goes on. ``--ship`` writes the curves
that our own belief ships with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.rows import KeptRows, grouped, run_name
from experiments.statistics import with_range
from experiments.tuning.replayed.replayed_runs import (
    ALL,
    NEAR,
    NETWORKS,
    TRANSFER,
    ReplayOptions,
    Setting,
    at_moments,
    reached,
)
from go_rl.core.files.whole_file import whole_file
from go_rl.report.text_table import markdown_table
from go_rl.tuning.config import FirstRound
from go_rl.tuning.loop.belief.curve_library import SHIPPED
from go_rl.tuning.loop.schedulers.registry import WITH_BELIEF
from go_rl.tuning.pools.candidate_pool import PoolSet

HEAD = """# Schedulers on recorded curves

Every scheduler walks the same paths: those of the inner tuner `{tuner}` over recorded pools of
{candidates} measured candidates of {networks}, {seeds} seeds. The budget is the virtual time in
which every operator is finished ({patience} trials without improvement, or its pool is empty); a
slot is min(100 s, budget / (10 × operators)), a batch {batch} trials. *Regret*: mean over the
budget of latency above the oracle's, in % of the final one; in brackets the range of the seeds,
which covers the median with 94 % (5 seeds). *Within 1 %*: how many times sooner than the sequential
tuner a scheduler has a latency 1 % above that which the sequential one ends with. *Sooner*: the
same for that latency itself; at the end of the budget every pool is empty or every operator
finished, so that this last step measures exhaustion more than choice. *never*: not within the
budget.

Schedulers that leave out finished operators (the first seven, and those over our own belief) give
each operator one slot before any has two. *Slowest first*: those with the most seconds in the
network first, the default of `go-rl tune`. *Declared order*: the network's order. Schedulers are
compared within one order: until the first round is over, latency holds every operator that waits,
untuned, and the order decides more than the scheme. Virtual time does not count what a scheduler
computes; see its cost below."""
ORDERS: tuple[FirstRound, ...] = ("slowest", "declared")


@dataclass(frozen=True)
class SchedulersReplayed(ReplayOptions, Experiment):
    """Options of the script."""

    networks: tuple[str, ...] = NETWORKS
    tuner: str = "annealing"
    """Inner tuner."""
    seeds: int = 5
    ship: bool = False
    """Write the curves of all paths as those that ship with our own belief."""

    def run(self) -> None:
        """Run what is missing, and write the page."""
        sets = self.sets(self.networks)
        library = self.library(sets, self.tuner, range(self.seeds))
        if self.ship:
            library.save(SHIPPED)
        table = KeptRows(Row, self.folder / "runs.csv")
        for pools in sets:
            key = run_key(pools, self.tuner, self.batch, self.patience)
            for seed in range(self.seeds):
                setting = self.setting(pools, seed, self.tuner, library)
                for order in ORDERS:
                    config = replace(setting.config, first_round=order)
                    _runs(replace(setting, config=config), key, table, self.folder)
        keys = {run_key(each, self.tuner, self.batch, self.patience) for each in sets}
        rows = [row for row in table.rows if row.run in keys and row.seed < self.seeds]
        _write(rows, sets, self)


@dataclass(frozen=True)
class Row:
    """One run."""

    run: str
    """Key of pools and options."""
    network: str
    seed: int
    first_round: str
    """Order of each operator's first slot."""
    scheduler: str
    slots: int
    trials: int
    untuned_ms: float
    final_ms: float
    sooner: float
    """0: never."""
    sooner_near: float
    regret_percent: float
    fit_ms: float
    """Of the processor, of each fit of the belief; NaN: it has none."""
    acceptance: float


def run_key(pools: PoolSet, tuner: str, batch: int, patience: int) -> str:
    """Return the name of runs on pools."""
    return run_name(f"{pools.digest} {tuner} {batch} {patience}")


def _runs(setting: Setting, key: str, table: KeptRows[Row], folder: Path) -> None:
    """Run the schedulers that have no row yet; oracle and sequential first."""
    names = [name for name in ALL if name not in TRANSFER or setting.own is not None]
    network, seed, order = setting.pools.network, setting.config.seed, setting.config.first_round
    missing = [name for name in names if not table.has(key, network, seed, order, name)]
    if not missing:
        return
    _, sequential = setting.run("sequential")
    _, oracle = setting.run("oracle")
    final, budget = float(sequential[-1, 1]), setting.budget
    best = at_moments(oracle, budget)
    for name in missing:
        belief = setting.own if name in TRANSFER else setting.published
        assert belief is not None
        state, points = setting.run(name)
        curve = at_moments(points, budget)
        with whole_file(curve_file(folder, key, network, seed, order, name)) as file:
            np.save(file, np.append(curve / final, budget))
        fits = name in (*TRANSFER, *WITH_BELIEF)
        table.add(Row(
            key, network, seed, order, name, state.slot, state.trials, 1e3 * points[0, 1],
            1e3 * state.latency, _sooner(points, sequential, final),
            _sooner(points, sequential, final * (1 + NEAR)),
            100 * float((curve - best).mean()) / final,
            1e3 * float(np.mean(belief.seconds)) if fits else np.nan,
            float(np.nanmean(belief.acceptance)) if fits and name not in TRANSFER else np.nan,
        ))  # fmt: skip


def _sooner(points: np.ndarray, sequential: np.ndarray, latency: float) -> float:
    return reached(sequential, latency) / reached(points, latency)


def curve_file(
    folder: Path, key: str, network: str, seed: int, order: FirstRound, name: str
) -> Path:
    """Return where a run's latency at `POINTS` moments over that which the sequential tuner ends
    with is kept, and behind it the budget."""
    return folder / "curves" / f"{key}-{network}-{seed}-{order}-{name}.npy"


def _write(rows: Sequence[Row], sets: Sequence[PoolSet], options: SchedulersReplayed) -> None:
    head = HEAD.format(
        tuner=options.tuner, candidates=f"{sum(pools.candidates for pools in sets):,}",
        networks=", ".join(pools.network for pools in sets), seeds=options.seeds,
        batch=options.batch, patience=options.patience,
    )  # fmt: skip
    slowest, declared = ([row for row in rows if row.first_round == x] for x in ORDERS)
    parts = [head, _table(slowest, "regret_percent", "Regret, %, slowest first"),
             _table(declared, "regret_percent", "Regret, %, declared order"),
             _table(slowest, "sooner_near", "Within 1 %, slowest first"),
             _table(slowest, "sooner", "Sooner, slowest first"), _cost(rows),
             _facts(rows, sets)]  # fmt: skip
    options.write_page("\n\n".join(parts))
    options.write_rows(rows)


def _table(rows: Sequence[Row], value: str, title: str) -> str:
    own = grouped(rows, lambda row: (row.scheduler, row.network))

    def told(number: float) -> str:
        return "never" if value.startswith("sooner") and number == 0 else f"{number:.2f}"

    def cell_of(name: str, network: str) -> str:
        found = [getattr(row, value) for row in own.get((name, network), [])]
        return with_range(found, told, np.median, to="–")

    names, networks = (dict.fromkeys(x[i] for x in own) for i in range(2))
    return f"## {title}\n\n" + grid_table("scheduler", list(names), list(networks), cell_of)


def _cost(rows: Sequence[Row]) -> str:
    cells = []
    for name in dict.fromkeys(row.scheduler for row in rows if not np.isnan(row.fit_ms)):
        own = [row for row in rows if row.scheduler == name]
        rate = np.median([row.acceptance for row in own])
        fit = float(np.median([row.fit_ms for row in own]))
        cells.append([
            name, f"{fit:.3g}", f"{fit / 1e3:.2g}", f"{fit / 1e2:.2g}",
            "–" if np.isnan(rate) else f"{rate:.2f}",
        ])  # fmt: skip
    heads = ["scheduler", "CPU ms a fit", "% of a slot of 100 s", "% of one of 10 s",
             "acceptance (published 0.54)"]  # fmt: skip
    text = "One fit a slot (published: 1.44 s a slot, 1.4 % of slots of 100 s).\n\n"
    return "## Cost of scheduling\n\n" + text + markdown_table(heads, cells)


def _facts(rows: Sequence[Row], sets: Sequence[PoolSet]) -> str:
    cells = []
    for pools in sets:
        own = [
            row for row in rows if row.network == pools.network and row.scheduler == "sequential"
        ]
        cells.append([
            pools.network, str(len(pools.pools)), f"{pools.candidates:,}", pools.digest,
            f"{np.median([row.untuned_ms for row in own]):.3g}",
            f"{np.median([row.final_ms for row in own]):.3g}",
            f"{np.median([row.trials for row in own]):.0f}",
        ])  # fmt: skip
    heads = ["network", "operators", "candidates", "digest", "after warm-up, ms", "final, ms",
             "trials"]  # fmt: skip
    return "## Networks\n\n" + markdown_table(heads, cells, words=("digest",))
