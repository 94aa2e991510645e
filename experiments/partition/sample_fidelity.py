"""How near SAMPLE and FIX stay to what is proposed: 36 chips, strict rules, six families.

Around a legal plan, each unit's distribution is a bell over the chips whose middle is moved at
random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
from jaxtyping import Float64, Int16

import go_rl
from experiments.experiment import Experiment, timed
from experiments.page_text import Column
from experiments.rows import rows_table
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Budget
from go_rl.objectives.ring.methods.linear_dp import LinearDP
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.solvers import Means

GRAPHS = ("bert-base", "gnmt-2-layers", "inception-v3", "nasnet-mobile", "t5-small", "unet")
Number = Annotated[float, Column(form=".3g")]
WIDTHS, NOISE = (0.0, 1.0, 2.0, 4.0), (0.0, 1.0, 2.0)


@dataclass(frozen=True)
class SampleFidelity(Experiment):
    """What is measured."""

    draws: int = 20
    """Samples of each row."""
    seconds: float = 5.0
    """Of `linear-dp`."""

    def run(self) -> None:
        """Measure and write."""
        rows = (row for name in GRAPHS for row in rows_of(name, self.draws, self.seconds))
        self.write_page(page(self.write_rows(rows)))


@dataclass(frozen=True)
class Row:
    """One row of the table; distances are means over units and draws, in chips."""

    graph: str
    units: int
    width: Number
    """Standard deviation of each unit's distribution, chips; 0: certain."""
    noise: Number
    """Standard deviation by which the middles are moved, chips."""
    independent: Number
    """Distance of independent draws from the plan; hardly ever legal."""
    sample: Number
    """Distance of SAMPLE from the plan."""
    fix: Number
    """Distance of FIX of an independent draw from the plan."""
    gap: Number
    """How far the mean log-probability of a unit's chip lies below that of the likeliest legal
    cuts; negative where a draw is likelier than any cuts of the order."""
    means: str
    """How most samples were made legal."""
    median_ms: Number
    """Median milliseconds of one SAMPLE on one thread."""


def log_probs_around(
    device: Int16[np.ndarray, "N"], chips: int, width: float, noise: float, rng: np.random.Generator
) -> Float64[np.ndarray, "N k"]:
    """Return [N, k] bells around the chips of a plan."""
    middle = device + noise * rng.standard_normal(len(device))
    apart = np.arange(chips) - middle[:, None]
    if width == 0.0:
        return np.where(np.abs(apart) < 0.5, 0.0, -np.inf)
    found = -0.5 * np.square(apart / width)
    return found - np.log(np.exp(found).sum(axis=1, keepdims=True))


def rows_of(name: str, draws: int, seconds: float) -> Iterator[Row]:
    """Measure one graph."""
    options = OptimizeOptions(rules="strict", hardware="ring36", memory=False)
    problem = problem_for(go_rl.load(f"zoo:{name}"), options)
    workspace = ring_workspace(problem)
    plan = LinearDP().optimize(problem, Budget(seconds=seconds), 0)
    device = plan.device.astype(np.int16)
    for width, noise in product(WIDTHS, NOISE):
        if width > 0.0 or noise == 0.0:
            yield _row(workspace, name, device, width, noise, draws)


def _row(
    workspace: RingWorkspace, name: str, device: np.ndarray, width: float, noise: float, draws: int
) -> Row:
    solver, rng = workspace.solver, np.random.default_rng(0)
    placed = solver.instance.leader
    alone, found, fixed, gaps, took = [], [], [], [], []
    means: Counter[int] = Counter()
    for seed in range(draws):
        log_probs = log_probs_around(device, workspace.chips, width, noise, rng)
        proposal = (log_probs + rng.gumbel(size=log_probs.shape)).argmax(
            axis=1
        )  # independent draws
        sample, spent = timed(lambda given=log_probs, seed=seed: solver.sample(given, seed=seed))
        took.append(1e3 * spent)
        fix = solver.fix(proposal, log_probs, seed)
        best = solver.likeliest(log_probs)
        if best is None or not (sample.ok.all() and fix.ok.all()):
            raise SystemExit(f"{name}: no sample; {sample.detail}")
        own = np.maximum(log_probs[placed], -1e6)
        mass = [own[np.arange(len(placed)), d[placed]].mean() for d in (best, sample.device[0])]
        gaps.append(mass[0] - mass[1])
        means[int(sample.means[0])] += 1
        for distances, chips in ((alone, proposal), (found, sample.device), (fixed, fix.device)):
            distances.append(np.abs(chips - device)[..., placed].mean())
    return Row(
        graph=name, units=len(placed), width=width, noise=noise, independent=float(np.mean(alone)),
        sample=float(np.mean(found)), fix=float(np.mean(fixed)), gap=float(np.mean(gaps)),
        means=Means(means.most_common(1)[0][0]).name.lower(), median_ms=float(np.median(took)),
    )  # fmt: skip


def page(rows: list[Row]) -> str:
    """Return the table."""
    worst = max(row.sample / row.independent for row in rows if row.independent > 0)
    said = f"worst ratio of SAMPLE's distance to that of independent draws: {worst:.2f}"
    return (
        "# SAMPLE and FIX: distance from what is proposed\n\n"
        "36 chips on a ring, strict rules, no memory limit. Each unit's distribution is a bell of "
        "*width* chips around its chip in a plan of `linear-dp`; *noise* moves the middles. "
        "Distances are mean chips from the plan, lower is better; *independent* draws are what a "
        "policy proposes, and hardly ever legal. *gap*: mean log-probability below that of the "
        "likeliest legal cuts. *median_ms*: of one SAMPLE on one thread, on a shared machine.\n\n"
        f"Over all rows, {said}.\n\n{rows_table(rows)}\n"
    )
