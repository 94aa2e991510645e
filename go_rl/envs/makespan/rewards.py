"""Rewards of makespan plans: -sqrt(makespan / baseline), as GO has them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from go_rl.core.decisions import Scored
from go_rl.objectives.makespan.workspace import StepWorkspace

INVALID_REWARD = -10.0
"""Reward of a plan that cannot run."""


def step_rewards(
    workspace: StepWorkspace, priced: Scored, invalid: float = INVALID_REWARD
) -> Float64[np.ndarray, "B"]:
    """Return [B] rewards against the default plan; -1 is as good as that."""
    good = priced.ok
    baseline = workspace.default_seconds
    ratio = np.where(good, priced.seconds, baseline) / baseline
    return np.where(good, -np.sqrt(ratio), invalid)
