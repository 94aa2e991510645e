"""Rewards of makespan plans: -sqrt(makespan / baseline), as GO has them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from go_rl.objectives.makespan.workspace import PricedSteps, StepWorkspace, ok

INVALID_REWARD = -10.0
"""Reward of a plan that cannot run."""


def step_rewards(
    workspace: StepWorkspace, priced: PricedSteps, invalid: float = INVALID_REWARD
) -> Float64[np.ndarray, "B"]:
    """Return [B] rewards against the default plan; -1 is as good as that."""
    good = ok(priced)
    baseline = workspace.default_seconds
    ratio = np.where(good, priced.seconds, baseline) / baseline
    return np.where(good, -np.sqrt(ratio), invalid)
