"""Scores to plans: list-schedule the units by score, cut the order best, make it legal, price it.

This is how a policy that gives an order and a dynamic program that gives the cuts share the work.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int

from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import OK
from go_rl.objectives.ring.orders import list_order
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.runtime.threads import on_threads
from go_rl.solvers import Samples

TOLERANCE = 1e-4
"""Relative step at which the bisection over T stops."""


def price_scores(
    workspace: RingWorkspace,
    scores: Float64[np.ndarray, "B U"],
    seed: int = 0,
    squeeze: float = 1.0,
) -> Scored:
    """Return the plans of [B, U] scores (low first), the same for any number of threads.

    ``squeeze`` scales the bytes of weights that a chip may hold: live tensors need room too.
    """
    stages: list[np.ndarray | None] = [None] * len(scores)
    _ = workspace.bound, workspace.weight_limit  # built once, before threads ask for them

    def share(rows: range) -> None:
        for i in rows:
            stages[i] = _cut(workspace, scores[i], squeeze)

    on_threads(share, len(scores))
    return price_stages(workspace, stages, seed)


def price_stages(
    workspace: RingWorkspace, cut: Sequence[Int[np.ndarray, "U"] | None], seed: int = 0
) -> Scored:
    """Return the plans of B times [U] stages, made legal; a row without a cut proposes everything
    on the first chip."""
    stages = np.zeros((len(cut), workspace.units.num_units), np.int32)
    for i, stage in enumerate(cut):
        if stage is not None:
            stages[i] = stage
    proposals = workspace.nodes_of(stages[:, workspace.units.unit_of])
    fixed = workspace.solver.fix(proposals, workspace.near(proposals), seed)
    return price_samples(workspace, fixed, proposals)


def _cut(
    workspace: RingWorkspace, score: Float64[np.ndarray, "U"], squeeze: float
) -> np.ndarray | None:
    units, problem = workspace.units, workspace.problem
    cuts = workspace.cuts(list_order(units, score))
    limit, chips = workspace.weight_limit * squeeze, workspace.chips
    return cuts.best(
        workspace.bound, units.serial_seconds, chips, limit, problem.all_chips, TOLERANCE
    )[1]


def price_samples(
    workspace: RingWorkspace, samples: Samples, proposed: Int[np.ndarray, "B N"] | None = None
) -> Scored:
    """Return what the solver's samples cost; a failed one keeps the solver's status.

    ``proposed``: [B, N] chips that FIX was given.
    """
    seconds, codes = workspace.pricer.price(samples.device)
    status = np.where(samples.ok, codes, samples.status).astype(np.int8)
    seconds = np.where(status == OK, seconds, np.inf)
    fidelity = tuple(
        workspace.solver.fidelity(samples, i, None if proposed is None else proposed[i])
        for i in range(len(status))
    )
    return Scored(Decisions(samples.device), seconds, status, fidelity)
