"""Plans on unequal devices and links beside the splits by layers that people make by hand.

Run: ``python -m experiments placement.unequal_devices``. Training iterations of the zoo on systems
with groups of links, priced by ``auto``; ``auto`` gets its seconds, the rivals all plans that they
have (orders and fusions of `Composed`). No plan of ``auto`` may be worse than any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.statistics import geometric_mean
from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.problems import ZooProblem

GRAPHS = ("resnet50-b8", "vgg16", "gpt2-small", "transformer-base", "seq2seq-2-layers", "vit-base")
SYSTEMS = ("two-hosts-mixed", "two-hosts-v100", "4090+3090")
RIVALS = ("one-device", "layers-equal", "layers-by-speed", "fill-in-order", "composed")
DECIDE = ("placement", "schedule", "fusion")


@dataclass(frozen=True)
class Row:
    """One method on one problem."""

    graph: str
    hardware: str
    method: str
    seconds: float
    """Seconds of an iteration; inf: no plan fits."""


@dataclass(frozen=True)
class UnequalDevices(Experiment):
    """Options of this experiment."""

    seconds: float = 10.0
    """Budget of ``auto``."""
    cost: str = "auto"
    """Cost model."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        kept.fill(product(GRAPHS, SYSTEMS), self.rows)
        self.write_page(page(kept.rows))

    def rows(self, graph: str, hardware: str) -> Iterator[Row]:
        """Yield the rows of one problem."""
        named = ZooProblem(f"{graph}-training", hardware, "makespan", DECIDE)
        problem = priced_problem(named, self.cost)
        best = run(problem, "auto", Budget(seconds=self.seconds)).best
        yield Row(graph, hardware, "auto", best.value)
        for method in RIVALS:
            plans = run(problem, method, Budget(samples=100)).plans
            own = next(plan for plan in plans if plan.optimizer == method)
            yield Row(graph, hardware, method, own.value)


def page(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield from (
        "# Unequal devices and links", "",
        "Milliseconds of a training iteration. `auto` in its seconds; rivals with the best of "
        "their orders and fusions; –: does not fit.", "",
    )  # fmt: skip
    of = {(row.graph, row.hardware, row.method): row.seconds for row in rows}
    problems = list(dict.fromkeys((row.graph, row.hardware) for row in rows))
    heads = ("network", "hardware", "auto", *RIVALS, "best of the four splits over auto")
    cells, ratios = [], []
    for problem in problems:
        mine, *others = (of[*problem, method] for method in ("auto", *RIVALS))
        ratios.append(min(others[:-1]) / mine)
        shown = [f"{1e3 * x:.4g}" if np.isfinite(x) else "–" for x in (mine, *others)]
        cells.append((*problem, *shown, f"{ratios[-1]:.3f}"))
    yield from table_lines(heads, cells)
    finite = [ratio for ratio in ratios if np.isfinite(ratio)]
    yield ""
    yield (
        "Best of `one-device` and the three splits over `auto`: "
        f"{geometric_mean(finite):.3f} (geometric mean of {len(finite)}), least {min(finite):.3f}."
    )
