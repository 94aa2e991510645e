"""Random legal plans whose T_max spreads, drawn by SAMPLE with policies of differing sharpness."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int16

from go_rl.core import Plan, Problem, plan_for
from go_rl.objectives.ring.orders import depth_first
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.verify.check_plan import Verdict, check_plan

UNIFORM, CUTS = "uniform", "cuts"
EVERY = 4
"""Every fourth plan is uniform cuts of a random order."""
BATCH = 50
EVENNESS = (1.0, 100.0)
"""Range of the Dirichlet parameter of the chips' shares of the work, log-uniform."""
SHARPNESS = (1.0, 30.0)
"""Range of the log-odds that a node loses for each chip of distance from its cut, log-uniform."""


def random_partitions(
    workspace: RingWorkspace, count: int, seed: int
) -> tuple[Int16[np.ndarray, "B N"], list[str]]:
    """Return [count, N] legal plans and where each comes from.

    ``uniform``: uniform cuts of random topological orders. ``cuts``: SAMPLE around the cuts of a
    random depth-first topological order into pieces of random shares of the work.
    """
    rng = np.random.default_rng(seed)
    plans, origin = [], []
    while len(plans) < count:
        kinds = [UNIFORM if (len(plans) + i) % EVERY == 0 else CUTS for i in range(BATCH)]
        seed_of = {kind: int(rng.integers(2**31)) for kind in (UNIFORM, CUTS)}
        rows = np.stack([_log_odds(workspace, rng) for _ in range(kinds.count(CUTS))])
        drawn = {
            UNIFORM: workspace.solver.sample(batch=kinds.count(UNIFORM), seed=seed_of[UNIFORM]),
            CUTS: workspace.solver.sample(rows, seed=seed_of[CUTS]),
        }
        taken = dict.fromkeys(drawn, 0)
        for kind in kinds:
            row, taken[kind] = taken[kind], taken[kind] + 1
            if drawn[kind].ok[row]:
                plans.append(drawn[kind].device[row])
                origin.append(kind)
    return np.stack(plans[:count]), origin[:count]


def checked_plan(problem: Problem, device: np.ndarray, optimizer: str) -> tuple[Plan, Verdict]:
    """Return the plan of devices that somebody else chose, and what the checker says of it."""
    pricer = RingPricer(problem)
    plan = plan_for(
        problem, device=pricer.place(device)[0], replicas=pricer.replicas(device),
        evaluation=pricer.evaluate(device), bound=0.0, optimizer=optimizer, seed=0, samples=1,
        wall_seconds=0.0,
    )  # fmt: skip
    return plan, check_plan(plan, problem)


def _log_odds(workspace: RingWorkspace, rng: np.random.Generator) -> Float64[np.ndarray, "N k"]:
    chips, units = workspace.chips, workspace.units
    order = depth_first(units, rng.random(units.num_units))
    shares = rng.dirichlet(np.full(chips, _log_uniform(rng, EVENNESS)))
    done = np.cumsum(units.work[order]) - 0.5 * units.work[order]
    piece = np.searchsorted(np.cumsum(shares)[:-1] * units.work.sum(), done)
    wish = np.empty(units.num_units, np.int64)
    wish[order] = piece
    home = workspace.nodes_of(wish[units.unit_of])
    return -_log_uniform(rng, SHARPNESS) * np.abs(np.arange(chips) - home[:, None]).astype(float)


def _log_uniform(rng: np.random.Generator, span: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(span))))
