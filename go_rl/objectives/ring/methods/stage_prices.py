"""Stages of units, and samples of the solver, to priced plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from go_rl.core.decisions import Decisions, Scored
from go_rl.core.evaluation import OK
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.solvers import Samples


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
