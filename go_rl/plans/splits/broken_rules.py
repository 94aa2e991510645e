"""`broken_rules`: what the independent checker says of devices, once a ring's copies are placed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int16

from go_rl.core.decisions import Decisions
from go_rl.objectives.common.workspace import Workspace
from go_rl.solvers.replication import replicas_of
from go_rl.verify.rules import Violation, legal


def broken_rules(workspace: Workspace, device: Int16[np.ndarray, "N"]) -> tuple[Violation, ...]:
    """Return the rules that devices [N] break, with their copies placed; see `legal`."""
    placed = workspace.with_copies(Decisions(device[None]))
    present = placed.present
    copies = {} if present is None else replicas_of(placed.device[0], present[0])
    return legal(workspace.problem, placed.device[0], copies)
