"""`DispatchPolicy`: from a graph to a choice among the weights of the heads of a dispatcher."""

from __future__ import annotations

from go_rl.policy.config import DispatchPolicyConfig
from go_rl.policy.dispatch.features import WIDTH
from go_rl.policy.observations.makespan import MAKESPAN_COLUMNS
from go_rl.policy.prototypes.policy import PrototypePolicy


class DispatchPolicy(PrototypePolicy):
    """One policy for all graphs and connected devices; units are taken one after the other."""

    config: DispatchPolicyConfig
    columns = MAKESPAN_COLUMNS
    weights = WIDTH
