"""Chameleon against DynaTune on recorded pools (DynaTune, section 5.4 and figure 10).

Run: ``python -m experiments tuning.replayed.chameleon_replayed --folder DIR`` with the folder of
``schedulers_replayed``, whose paths and runs of the inner tuner `annealing` it reads. Chameleon's
inner tuner walks its own paths over the same pools, one operator after the other as its authors do,
and in DynaTune's slots. What is finished is kept in the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.rows import KeptRows, grouped, run_name
from experiments.statistics import with_range
from experiments.tuning.replayed.replayed_runs import NEAR, NETWORKS, ReplayOptions, reached
from experiments.tuning.schedulers_replayed import ORDERS, curve_file, run_key
from go_rl.core import ReadError
from go_rl.tuning.pools.candidate_pool import PoolSet

OURS, THEIRS = "annealing", "chameleon"
DYNAMIC, STATIC = "dynatune", "sequential"


@dataclass(frozen=True)
class ChameleonReplayed(ReplayOptions, Experiment):
    """Options of the script."""

    networks: tuple[str, ...] = NETWORKS
    seeds: int = 5

    def run(self) -> None:
        """Run what is missing, and write the page."""
        sets = self.sets(self.networks)
        table = KeptRows(ChameleonRow, self.folder / "chameleon_replayed.csv")
        keys = {run_name(f"{each.digest} {self.batch} {self.patience}"): each for each in sets}
        table.fill(
            (
                (key, pools.network, seed)
                for key, pools in keys.items()
                for seed in range(self.seeds)
            ),
            lambda key, _network, seed: _row(key, keys[key], seed, self),
        )
        rows = [row for row in table.rows if row.run in keys and row.seed < self.seeds]
        self.write_page(_page(rows, sets, self))
        self.write_rows(rows)


@dataclass(frozen=True)
class ChameleonRow:
    """One seed of one network."""

    run: str
    network: str
    seed: int
    final_ms: float
    """Of Chameleon, one operator after the other."""
    our_final_ms: float
    """Of DynaTune over annealing."""
    theirs: float
    """Virtual seconds until Chameleon, sequentially, has its final latency."""
    both: float
    """The same of Chameleon in DynaTune's slots; infinite: never."""
    annealing: float
    """The same of annealing, sequentially."""
    ours: float
    """The same of DynaTune over annealing."""
    theirs_near: float
    both_near: float
    annealing_near: float
    ours_near: float
    """Until a latency that is `NEAR` greater."""
    trials: int
    """Of Chameleon."""
    our_trials: int
    """Of annealing."""


def _row(key: str, pools: PoolSet, seed: int, options: ChameleonReplayed) -> ChameleonRow:
    chameleon, own = (options.setting(pools, seed, tuner) for tuner in (THEIRS, OURS))
    state, theirs = chameleon.run(STATIC)
    final = float(theirs[-1, 1])
    near = final * (1 + NEAR)
    _, both = chameleon.run(DYNAMIC)
    our_state, annealing = own.run(STATIC)
    ours = _known(pools, seed, float(annealing[-1, 1]), options)
    return ChameleonRow(
        key, pools.network, seed, 1e3 * final, 1e3 * float(ours[-1, 1]),
        theirs=reached(theirs, final), both=reached(both, final),
        annealing=reached(annealing, final), ours=reached(ours, final),
        theirs_near=reached(theirs, near), both_near=reached(both, near),
        annealing_near=reached(annealing, near), ours_near=reached(ours, near),
        trials=state.trials, our_trials=our_state.trials,
    )  # fmt: skip


def _known(pools: PoolSet, seed: int, final: float, options: ChameleonReplayed) -> np.ndarray:
    """[POINTS, 2] virtual seconds and latency of DynaTune over annealing, as `schedulers_replayed`
    keeps them; ``final``: latency that annealing, one operator after the other, ends with."""
    key = run_key(pools, OURS, options.batch, options.patience)
    path = curve_file(options.folder, key, pools.network, seed, ORDERS[0], DYNAMIC)
    if not path.exists():
        raise ReadError(f"{path}: run experiments.tuning.schedulers_replayed first")
    *curve, budget = np.load(path).tolist()
    return np.stack([np.linspace(0, budget, len(curve)), final * np.array(curve)], axis=1)


def _page(rows: Sequence[ChameleonRow], sets: Sequence[PoolSet], options: ChameleonReplayed) -> str:
    ours = {"ours": "DynaTune", "annealing": "annealing, sequential",
            "both": "Chameleon in DynaTune's slots"}  # fmt: skip
    columns: dict[str, Callable[[list[ChameleonRow]], str]] = {}
    for name, who in ours.items():
        columns[f"{who}{',' * (name == 'annealing')} sooner"] = lambda own, name=name: _ratio(
            [row.theirs / getattr(row, name) for row in own]
        )
    for name, who in ours.items():
        columns[f"{'within 1 %: ' * (name == 'ours')}{who}"] = lambda own, name=name: _ratio(
            [row.theirs_near / getattr(row, f"{name}_near") for row in own]
        )
    for name, (who, digits) in {
        "final_ms": ("Chameleon, final ms", 2), "our_final_ms": ("DynaTune, final ms", 2),
        "trials": ("trials", 0), "our_trials": ("trials of annealing", 0),
    }.items():  # fmt: skip
        columns[who] = lambda own, name=name, digits=digits: (
            f"{np.median([getattr(row, name) for row in own]):.{digits}f}"
        )
    networks = grouped(rows, lambda row: row.network)
    table = grid_table(
        "network", {pools.network: networks[pools.network] for pools in sets}, columns,
    )  # fmt: skip
    sizes = [len(pool.seconds) for pools in sets for pool in pools.pools]
    return (
        "# Chameleon and DynaTune on recorded pools\n\n"
        f"Pools of {min(sizes)} to {max(sizes)} measured candidates an operator; batches of at "
        f"most {options.batch}, an operator ends behind {options.patience} trials without "
        "improvement or when its pool is empty. *Sooner*: how many times sooner than Chameleon, "
        "one operator after the other, the latency is reached that Chameleon ends with "
        "(published: DynaTune 1.4 to 4.7 times); *within 1 %*: a latency that is 1 % greater; "
        "*never*: annealing ends above it. Medians; in brackets the range of the "
        f"{options.seeds} seeds, which covers the median with "
        f"{100 * (1 - 0.5 ** (options.seeds - 1)):.0f} %. Virtual time: building and timing as "
        "recorded, not what choosing takes, which is more for Chameleon (`inner_tuners_cpu`).\n\n"
        f"{table}"
    )


def _ratio(found: Sequence[float]) -> str:
    told = lambda ratio: "never" if ratio == 0 else f"{ratio:.2f}"  # noqa: E731
    return with_range(found, told, np.median, to="–")
