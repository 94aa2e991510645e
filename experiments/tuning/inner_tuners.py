"""Inner tuners on recorded pools: the best candidate so far against trials, chance as control.

Run: ``python -m experiments tuning.inner_tuners POOLS ...`` with files of recorded pools, or the
names of networks whose pools ship. Every tuner replays its own path over the same measured
candidates (`go_rl.tuning.pools.replay`), each operator alone, with each seed. A run that was cut
off goes on where it stopped (``results/inner_tuners.csv``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import tyro

from experiments.experiment import Experiment
from experiments.page_text import cell
from experiments.rows import run_name
from experiments.tuning.tuner_curves import (
    NEAR,
    CurveRow,
    band,
    figure,
    median_found,
    run_curves,
    seed_means,
)
from go_rl.report.text_table import markdown_table
from go_rl.tuning.pools.candidate_pool import PoolSet, load_pools
from go_rl.tuning.tuners import TUNERS, inner_tuner

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Of the trials: columns of the page."""
COLUMNS = (
    "*Speed*: of the best candidate so far, relative to the best of the pool, mean over operators, "
    "with half the width of the 95 % interval over seeds. *Found*: median trials until "
    f"{NEAR:.0%} of the pool's best speed, over operators and seeds; in brackets, how many times "
    "sooner than chance. *Choosing*: CPU ms a trial of fits and predictions, beside other work; to "
    "make a neighbour and read its features takes TVM 10 to 30 ms more for each one scored, which "
    "a replay does not pay."
)


@dataclass(frozen=True)
class InnerTuners(Experiment):
    """Options of this experiment."""

    page_name: ClassVar[str] = "inner_tuners_cpu"

    pools: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Files of recorded pools, or names of networks whose pools ship."""
    trials: int = 200
    """Of each operator."""
    batch: int = 10
    """Candidates that are proposed together."""
    seeds: int = 5
    """Of each tuner and operator."""
    operators: int = 4
    """Of each network, those with the most FLOP."""

    def run(self) -> None:
        """Make the rows that are missing; write the page and its figure."""
        pools = [heaviest(load_pools(each), self.operators) for each in self.pools]
        run = run_name(
            f"{[pool.digest for pool in pools]} {self.trials} {self.batch} {self.operators}"
        )
        table = self.kept_rows(CurveRow)
        arms = {name: (lambda _pool, _k, name=name: inner_tuner(name)) for name in TUNERS}
        rows = run_curves(table, run, pools, arms, range(self.seeds), self.trials, self.batch)
        self.save_figure(figure(rows, tuple(TUNERS), self.batch))
        self.write_page(page(rows, pools, self))


def heaviest(pools: PoolSet, count: int) -> PoolSet:
    """Return the pools of the operators that make up the most of a network's FLOP."""
    ranked = sorted(pools.pools, key=lambda each: -each.operator.flops * each.operator.repeats)
    return replace(pools, pools=tuple(ranked[:count]))


def page(rows: Sequence[CurveRow], pools: Sequence[PoolSet], options: InnerTuners) -> str:
    """Return the page."""
    sizes = [len(each.seconds) for pool in pools for each in pool.pools]
    seeds = len({row.seed for row in rows})
    networks = ", ".join(pool.network for pool in pools)
    text = (
        f"# Inner tuners on recorded pools\n\n{len(sizes)} operators of {networks}, of each "
        f"network the {options.operators} with the most FLOP; {min(sizes)} to {max(sizes)} "
        f"measured candidates in a pool, {options.trials} trials at most in batches of "
        f"{options.batch}, {seeds} seeds. {COLUMNS}\n\n"
    )
    text += markdown_table(*table(rows, options.batch))
    return f"{text}\n![Speed against trials]({options.stem.name}.svg)\n"


def table(rows: Sequence[CurveRow], batch: int) -> tuple[list[str], list[list[str]]]:
    """Return head and lines of the page's table."""
    count = max(len(row.curve) for row in rows)
    at = [max(1, round(share * count)) - 1 for share in SHARES]
    head = ["tuner", *(f"speed after {batch * (i + 1)}" for i in at), "found", "choosing, ms"]
    chance = median_found(rows, "random")
    lines = []
    for name in dict.fromkeys(row.tuner for row in rows):
        mean, half = band(seed_means(rows, name))
        speeds = [f"{cell(float(mean[i]))} ± {cell(float(half[i]))}" for i in at]
        found = median_found(rows, name)
        took = np.mean([row.propose_ms for row in rows if row.tuner == name])
        lines.append([name, *speeds, f"{found:.0f} ({chance / found:.2f}×)", f"{took:.1f}"])
    return head, lines
