"""Optimizers that learn, by the name that the command line takes."""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core import Objective, Optimizer
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import (
    SHIPPED_CHIPS,
    DispatchPolicyConfig,
    OrdersPolicyConfig,
    PolicyConfig,
    RingPolicyConfig,
)
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import load_weights

UNTRAINED: dict[Objective, PolicyConfig] = {
    config.objective: config for config in (OrdersPolicyConfig(), DispatchPolicyConfig())
}
"""Configuration of the policy that starts without weights."""
UNTRAINED_SEED = 0
"""Seed of the weights that training from scratch starts with."""


def learned_methods(objective: Objective) -> dict[str, Callable[[], Optimizer]]:
    """Return the optimizers that learn, for an objective.

    ``-placement``, on a ring: the policy that draws chips, made legal by SAMPLE. ``untrained``
    draws from untrained weights and learns nothing.
    """
    learned: dict[str, Callable[[], Optimizer]] = {
        "finetuned": FineTuned,
        "scratch": lambda: FineTuned(_untrained(UNTRAINED[objective]), name="scratch"),
        "untrained": lambda: PolicySearch(_untrained(UNTRAINED[objective]), name="untrained"),
    }
    if objective.traits.has_rules:
        learned |= {
            "finetuned-placement": lambda: FineTuned(
                load_weights(SHIPPED_CHIPS).agent, name="finetuned-placement"
            ),
            "scratch-placement": lambda: FineTuned(
                _untrained(RingPolicyConfig()), name="scratch-placement"
            ),
        }
    return learned


def _untrained(config: PolicyConfig) -> Agent:
    return new_agent(config, UNTRAINED_SEED)
