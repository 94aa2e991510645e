"""`DispatchPlans`: what a dispatch policy draws are weights, with which units are dispatched one
after the other; see `DispatchDecisions`."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core.decisions import Decisions
from go_rl.policy.dispatch.dispatch_decisions import DispatchDecisions
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.plan_decoder import ProposalArrays
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.policy.prototypes.policy import PLAN


class DispatchPlans(MakespanPlans, PrototypePlans):
    """A makespan problem whose units are dispatched one after the other."""

    kind = "dispatch"

    @cached_property
    def dispatch(self) -> DispatchDecisions:
        """Plans as a function of weights."""
        return DispatchDecisions(self.workspace, self.units)

    def seconds(
        self, weights: Float32[np.ndarray, "B W"], most: float = np.inf
    ) -> Float64[np.ndarray, "B"]:
        return self.dispatch.evaluate(weights).seconds

    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Dispatch with each sample's weights."""
        return self.dispatch.decide(np.asarray(proposals[PLAN].deviations))
