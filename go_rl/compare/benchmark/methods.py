"""Optimizers that learn, by the name that the command line takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from go_rl.core import Objective, Optimizer
from go_rl.policy.agent import new_agent
from go_rl.policy.config import DispatchPolicyConfig, PolicyConfig, RingPolicyConfig
from go_rl.policy.learn.config import FINE_TUNING
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch

UNTRAINED: dict[Objective, PolicyConfig] = {
    config.objective: config for config in (RingPolicyConfig(), DispatchPolicyConfig())
}
"""Configuration of the policy that starts without weights."""
UNTRAINED_SEED = 0
"""Seed of the weights that training from scratch starts with."""


def learned_methods(objective: Objective) -> dict[str, Callable[[], Optimizer]]:
    """Return the optimizers that learn, for an objective.

    ``-placement``, on a ring: the policy gives chips, made legal by SAMPLE; otherwise it gives an
    order, cut by dynamic programming. ``untrained`` draws from untrained weights
    and learns nothing.
    """
    learned: dict[str, Callable[[], Optimizer]] = {
        "finetuned": FineTuned,
        "scratch": lambda: _untrained(objective, "order", "scratch"),
        "untrained": lambda: PolicySearch(
            new_agent(UNTRAINED[objective], UNTRAINED_SEED), name="untrained"
        ),
    }
    if objective.traits.has_rules:
        learned |= {
            "finetuned-placement": lambda: FineTuned(
                decoder="placement", name="finetuned-placement"
            ),
            "scratch-placement": lambda: _untrained(objective, "placement", "scratch-placement"),
        }
    return learned


def _untrained(objective: Objective, decoder: str, name: str) -> Optimizer:
    agent = new_agent(UNTRAINED[objective], UNTRAINED_SEED)
    config = FINE_TUNING.get(agent.config.kind)
    if config is not None:
        config = replace(config, widen=1.0, first=1)
    return FineTuned(agent, decoder, config, name=name)
