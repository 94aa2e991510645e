"""`DispatchPlans`: what a dispatch policy draws are weights, with which units are dispatched one
after the other; see `dispatch_decisions`."""

from __future__ import annotations

from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core.decisions import Decisions
from go_rl.policy.agent import Actions, Agent, Start
from go_rl.policy.dispatch.dispatch_decisions import dispatch_decisions, dispatcher
from go_rl.policy.dispatch.dispatch_policy import DISPATCHED
from go_rl.policy.dispatch.rollout import Dispatcher, HeadWeights
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.network import Encoded
from go_rl.policy.plan_decoder import ProposalArrays


class DispatchPlans(MakespanPlans):
    """A makespan problem whose units are dispatched one after the other."""

    kind = "dispatch"

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return both heads, whatever the problem decides."""
        return DISPATCHED

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Rollouts of the problem."""
        return dispatcher(self.workspace, self.units)

    def draw(
        self,
        agent: Agent,
        encoded: Encoded,
        group: str,
        noise: Float32[np.ndarray, "B"],
        key: jax.Array,
        start: Start | None = None,
    ) -> Actions:
        """Draw the weights of both heads."""
        return agent.draw(self.padded, encoded, DISPATCHED, key, noise)

    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Dispatch with each sample's weights."""
        select, place = proposals["schedule"].weights, proposals["placement"].weights
        found = self.dispatcher.roll_out(HeadWeights(np.asarray(select), np.asarray(place)))
        return dispatch_decisions(self.workspace, self.units, found)
