"""How near SAMPLE and FIX stay to what is proposed: 36 chips, strict rules, six families.

Around a legal plan, each unit's distribution is a bell over the chips whose middle is moved at
random. The random rival stands beside it. Writes ``experiments/results/sample_fidelity*.csv`` and
``.md``.
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
from experiments.experiment import Experiment, say, timed
from experiments.page_text import Column
from experiments.rows import rows_table
from experiments.statistics import geometric_mean
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Budget, Plan
from go_rl.core.evaluation import effective_count
from go_rl.objectives.ring.methods.linear_dp import LinearDP
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.solvers import Means

GRAPHS = ("bert-base", "gnmt-2-layers", "inception-v3", "nasnet-mobile", "t5-small", "unet")
Number = Annotated[float, Column(form=".3g")]
WIDTHS, NOISE = (0.0, 1.0, 2.0, 4.0), (0.0, 1.0, 2.0)


@dataclass(frozen=True)
class SampleFidelity(Experiment):
    """What is measured."""

    quick: bool = False
    """A smoke test: two graphs, two draws."""

    def run(self) -> None:
        """Measure and write."""
        graphs, draws, seconds = (GRAPHS[-2:], 2, 0.5) if self.quick else (GRAPHS, 20, 5.0)
        rows: list[Row] = []
        for name in graphs:
            for row in rows_of(name, draws, seconds):
                rows.append(row)
                say(len(rows), str(row))
        rivals = [row for name in graphs for row in rivals_of(name, 10 * draws, seconds)]
        self.write_rows(rows)
        self.write_rows(rivals, "_random.csv")
        self.write_page(page(rows, rivals))


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


@dataclass(frozen=True)
class RivalRow:
    """One row of the second table: plans without a policy, and how evenly they share the work."""

    graph: str
    plan: str
    """``random``: uniform cuts of random orders, legal; ``independent``: a chip drawn for each unit
    on its own, hardly ever legal; ``linear-dp``: the plan of the first table."""
    effective_chips: Number
    """Exponential of the entropy of work over 36 chips; mean over draws."""
    lowest: Number
    highest: Number
    """Over draws."""
    slowdown: Number
    """Geometric mean of T_max over that of ``linear-dp``; nan where plans are not legal."""


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
    workspace, plan = _solved(name, seconds)
    device = plan.device.astype(np.int16)
    for width, noise in product(WIDTHS, NOISE):
        if width > 0.0 or noise == 0.0:
            yield _row(workspace, name, device, width, noise, draws)


def rivals_of(name: str, draws: int, seconds: float) -> Iterator[RivalRow]:
    """Measure the random plans of one graph."""
    workspace, plan = _solved(name, seconds)
    chips, device = workspace.chips, plan.device.astype(np.int16)
    drawn = workspace.solver.sample(batch=draws, seed=0)
    if not drawn.ok.all():
        raise SystemExit(f"{name}: no sample; {drawn.detail}")
    rng = np.random.default_rng(0)
    alone = rng.integers(chips, size=(draws, len(device))).astype(np.int16)
    plans = {"random": drawn.device, "independent": alone, "linear-dp": device[None]}
    for kind, devices in plans.items():
        work = [np.bincount(d, workspace.problem.work, chips) for d in devices]
        shared = [effective_count(w) for w in work]
        ratio = float("nan")
        if kind != "independent":
            seconds_of = workspace.pricer.price(devices)[0]
            ratio = geometric_mean(seconds_of / plan.value)
        yield RivalRow(
            name, kind, *(float(f(shared)) for f in (np.mean, np.min, np.max)), slowdown=ratio
        )


def _solved(name: str, seconds: float) -> tuple[RingWorkspace, Plan]:
    options = OptimizeOptions(rules="strict", hardware="ring36", memory=False)
    problem = problem_for(go_rl.load(f"zoo:{name}"), options)
    return ring_workspace(problem), LinearDP().optimize(problem, Budget(seconds=seconds), 0)


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
        graph=name,
        units=len(placed),
        width=width,
        noise=noise,
        independent=float(np.mean(alone)),
        sample=float(np.mean(found)),
        fix=float(np.mean(fixed)),
        gap=float(np.mean(gaps)),
        means=Means(means.most_common(1)[0][0]).name.lower(),
        median_ms=float(np.median(took)),
    )


def page(rows: list[Row], rivals: list[RivalRow]) -> str:
    """Return the tables."""
    worst = max(row.sample / row.independent for row in rows if row.independent > 0)
    said = f"worst ratio of SAMPLE's distance to that of independent draws: {worst:.2f}"
    return (
        "# SAMPLE and FIX: distance from what is proposed\n\n"
        "36 chips on a ring, strict rules, no memory limit. Each unit's distribution is a bell of "
        "*width* chips around its chip in a plan of `linear-dp`; *noise* moves the middles. "
        "Distances are mean chips from the plan, lower is better; *independent* draws are what a "
        "policy proposes, and hardly ever legal. *gap*: mean log-probability below that of the "
        "likeliest legal cuts. *median_ms*: of one SAMPLE on one thread, on a shared machine.\n\n"
        f"Over all rows, {said}.\n\n{rows_table(rows)}\n\n"
        "## The random rival\n\n"
        "*random* is uniform cuts of random orders, what `--method random` draws; *independent* "
        "draws a chip for each unit on its own, which is hardly ever legal. *effective_chips* is "
        "the exponential of the entropy of the chips' shares of the work, of 36, mean, lowest and "
        "highest over draws; *slowdown* is T_max over that of `linear-dp`, geometric mean.\n\n"
        f"{rows_table(rivals)}\n"
    )


if __name__ == "__main__":
    SampleFidelity.main()
