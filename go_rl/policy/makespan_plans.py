"""`MakespanPlans`: what both policies for connected devices need of a problem."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core.decisions import Decisions
from go_rl.envs.rewards import ROOT
from go_rl.objectives.common.incumbent import Incumbent
from go_rl.objectives.makespan.units import MakespanUnits, makespan_units
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Actions
from go_rl.policy.observations.makespan import observe_makespan
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.plan_decoder import PlanDecoder, ProposalArrays, Rollouts


class MakespanPlans(PlanDecoder):
    """Abstract: a makespan problem as a policy sees it."""

    reward = ROOT
    groups = ("plan",)
    workspace: MakespanWorkspace

    def __init__(self, workspace: MakespanWorkspace) -> None:
        self.workspace = workspace

    @cached_property
    def units(self) -> MakespanUnits:
        """Units that are placed and ordered together."""
        return makespan_units(self.workspace)

    @cached_property
    def observed(self) -> PolicyGraph:
        return observe_makespan(self.workspace, self.units)

    @property
    def decides(self) -> bool:
        return self.workspace.infeasible is None and self.units.num_units > 0

    def start(self, incumbent: Incumbent, seed: int) -> bool:
        """Offer the default plan; see `PlanDecoder`."""
        if incumbent.hopeless:
            return False
        incumbent.offer_scored(self.workspace.evaluate(self.workspace.reference))
        return self.decides

    def proposals(self, actions: Actions, noise: Float32[np.ndarray, "B"]) -> ProposalArrays:
        """Return the actions as arrays of this process."""
        return jax.device_get(actions)

    def credit(self, actions: Actions, rollouts: Rollouts) -> Actions:
        """Return all that was drawn."""
        return actions

    @abstractmethod
    def decisions(self, proposals: ProposalArrays) -> Decisions:
        """Return the plans of [B] proposals; what the problem does not decide keeps its default."""

    def price(self, proposals: ProposalArrays, seed: int) -> Rollouts:
        """Decode and replay; nothing is drawn here."""
        priced = self.workspace.evaluate(self.decisions(proposals))
        return Rollouts(priced, self.rewards(priced))
