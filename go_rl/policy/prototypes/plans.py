"""`PrototypePlans`: problems of which a policy draws few weights, from which plans follow."""

from __future__ import annotations

from abc import abstractmethod

import jax
import numpy as np
from jaxtyping import Float32, Float64

from go_rl.objectives.common.cross_entropy import Finds
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.policy.agent import Agent
from go_rl.policy.config import PrototypePolicyConfig
from go_rl.policy.plan_decoder import PlanDecoder
from go_rl.policy.prototypes.decoder import PrototypeDecoder
from go_rl.policy.prototypes.policy import PLAN


class PrototypePlans(PlanDecoder):
    """Abstract: one problem as a prototype policy sees it."""

    groups = ("plan",)

    @property
    @abstractmethod
    def units(self) -> RingUnits | MakespanUnits:
        """Units that are ordered."""

    @abstractmethod
    def seconds(
        self, weights: Float32[np.ndarray, "B W"], most: float = np.inf
    ) -> Float64[np.ndarray, "B"]:
        """Return [B] seconds of the plans of [B, W] weights, inf where there is none, and may be
        where they are above ``most``."""

    def decisions_of(self, group: str) -> tuple[str, ...]:
        """Return the one head."""
        return (PLAN,)

    def round_size(self, agent: Agent) -> int:
        """Return the number of prototypes: each comes once in a round."""
        assert isinstance(agent.config, PrototypePolicyConfig)
        return agent.config.prototypes


def preferred(agent: Agent, plans: PrototypePlans) -> Float32[np.ndarray, "K W"]:
    """Return [K, W] the prototypes with their offsets, the preferred first; where the network has
    no say they come in their own order, and it is not asked."""
    decoder = agent.params["params"]["decoders_plan"]
    outputs = jax.tree.leaves([decoder[name] for name in PrototypeDecoder.outputs])
    if not any(np.any(np.asarray(leaf)) for leaf in outputs):
        return np.array(decoder["prototypes"], np.float32)
    noise = np.zeros(plans.round_size(agent), np.float32)
    drawn = plans.draw(agent, agent.encode(plans.padded), PLAN, noise, jax.random.key(0))
    return np.asarray(drawn[PLAN].deviations)


def with_first(agent: Agent, finds: Finds) -> Agent:
    """Return the agent with the best weights of a search in the place of its last prototypes, and
    preferred to all others whatever the graph."""
    assert isinstance(agent.config, PrototypePolicyConfig)
    best = finds.deviations[np.isfinite(finds.seconds)][: agent.config.prototypes]
    if not len(best):
        return agent
    params = jax.tree.map(np.array, agent.params)
    decoder = params["params"]["decoders_plan"]
    decoder["prototypes"] = np.concatenate([best, decoder["prototypes"]])[: agent.config.prototypes]
    decoder["offset"] = jax.tree.map(np.zeros_like, decoder["offset"])
    decoder["prefer"] = jax.tree.map(np.zeros_like, decoder["prefer"])
    return agent.having(params)
