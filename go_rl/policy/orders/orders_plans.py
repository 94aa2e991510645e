"""`OrdersPlans`: what an orders policy draws are weights that mix reference orders; the exact cuts
of an order are its plan (`OrderSearch`)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.methods.order_search import CutLimits, cut_orders
from go_rl.objectives.ring.methods.stage_prices import price_stages
from go_rl.objectives.ring.order_weights import order_columns
from go_rl.policy.agent import Actions
from go_rl.policy.plan_decoder import ProposalArrays, Rollouts
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.policy.prototypes.policy import PLAN
from go_rl.policy.ring.ring_plans import RingPlans


class OrdersPlans(PrototypePlans, RingPlans):
    """A ring problem whose units are ordered by few weights and cut exactly."""

    kind = "orders"

    @property
    def units(self) -> RingUnits:
        """Units that are ordered."""
        return self.workspace.units

    @cached_property
    def columns(self) -> Float64[np.ndarray, "U W"]:
        """[U, W] what the weights count."""
        return order_columns(self.workspace.units)

    def seconds(
        self, weights: Float32[np.ndarray, "B W"], most: float = np.inf
    ) -> Float64[np.ndarray, "B"]:
        """Return [B] seconds of the best cuts of each order, before anything is repaired."""
        limits = CutLimits.within(self.workspace, most)
        found = cut_orders(self.workspace, self.columns, weights, limits)
        return np.array([seconds for seconds, _ in found])

    def proposals(self, actions: Actions, noise: Float32[np.ndarray, "B"]) -> ProposalArrays:
        """Return [B, W] weights."""
        return {"weights": np.asarray(actions[PLAN].deviations)}

    def price(self, proposals: ProposalArrays, seed: int) -> Rollouts:
        """Order, cut, make legal and price."""
        limits = CutLimits.within(self.workspace)
        found = cut_orders(self.workspace, self.columns, proposals["weights"], limits)
        return self._rollouts(price_stages(self.workspace, [stage for _, stage in found], seed))
