"""`OrdersPolicy`: from a graph to a choice among weights that mix reference orders."""

from __future__ import annotations

from go_rl.objectives.ring.order_weights import WIDTH
from go_rl.policy.config import OrdersPolicyConfig
from go_rl.policy.prototypes.policy import PrototypePolicy
from go_rl.policy.ring.observation import RING_COLUMNS


class OrdersPolicy(PrototypePolicy):
    """One policy for all graphs and rings."""

    config: OrdersPolicyConfig
    columns = RING_COLUMNS
    weights = WIDTH
