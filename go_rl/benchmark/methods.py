"""Optimizers that learn, by the name that the command line takes."""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core import Optimizer
from go_rl.policy.agent import new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.policy.policy_search import PolicySearch
from go_rl.train.config import FineTuneConfig
from go_rl.train.fine_tune import FineTuned

UNTRAINED_SEED = 0
"""Seed of the weights that training from scratch starts with."""


def _untrained(decoder: str, name: str) -> Optimizer:
    agent = new_agent(PolicyConfig(), UNTRAINED_SEED)
    return FineTuned(agent, decoder, FineTuneConfig(widen=1.0, first=1), name=name)


LEARNED: dict[str, Callable[[], Optimizer]] = {
    "finetuned": FineTuned,
    "finetuned-placement": lambda: FineTuned(decoder="placement", name="finetuned-placement"),
    "scratch": lambda: _untrained("order", "scratch"),
    "scratch-placement": lambda: _untrained("placement", "scratch-placement"),
    "untrained": lambda: PolicySearch(new_agent(PolicyConfig(), UNTRAINED_SEED), name="untrained"),
}
"""``-placement``: the policy gives chips, made legal by SAMPLE; otherwise it gives an order, cut by
dynamic programming. ``untrained`` draws from untrained weights and learns nothing."""
