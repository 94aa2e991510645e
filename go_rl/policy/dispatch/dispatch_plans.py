"""`DispatchPlans`: what a dispatch policy draws are weights, with which units are dispatched one
after the other; see `DispatchDecisions`."""

from __future__ import annotations

from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core.decisions import Decisions
from go_rl.policy.agent import Actions, Agent, Start
from go_rl.policy.config import DispatchPolicyConfig
from go_rl.policy.dispatch.dispatch_decisions import DispatchDecisions
from go_rl.policy.dispatch.dispatch_policy import PLAN
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.network import Encoded
from go_rl.policy.plan_decoder import ProposalArrays


class DispatchPlans(MakespanPlans):
    """A makespan problem whose units are dispatched one after the other."""

    kind = "dispatch"

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return the one head."""
        return (PLAN,)

    def round_size(self, agent: Agent) -> int:
        """Return the number of prototypes: each comes once in a round."""
        assert isinstance(agent.config, DispatchPolicyConfig)
        return agent.config.prototypes

    @cached_property
    def dispatch(self) -> DispatchDecisions:
        """Plans as a function of weights."""
        return DispatchDecisions(self.workspace, self.units)

    def draw(
        self,
        agent: Agent,
        encoded: Encoded,
        group: str,
        noise: Float32[np.ndarray, "B"],
        key: jax.Array,
        start: Start | None = None,
    ) -> Actions:
        """Draw weights of the heads."""
        return agent.draw(self.padded, encoded, (PLAN,), key, noise)

    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Dispatch with each sample's weights."""
        return self.dispatch.decide(np.asarray(proposals[PLAN].deviations))
