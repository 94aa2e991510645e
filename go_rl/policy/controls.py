"""Control arms of a policy: what stands in for what it learned, with the same decoder.

A policy that is not clearly ahead of its control arms decides nothing by what it learned:

- ``untrained``: the same configuration, fresh weights;
- ``random-encoder``: fresh weights of the encoder; heads and decoders as trained;
- ``blind``: network and decoders see no edges and nothing that derives from them, places in orders
  included (`without_edges`);
- ``zero-output``: the output layers of the decoders are exactly zero, so that every graph gets the
  same numbers.

Fresh weights are drawn from the run's seed, apart from those that training with it starts from.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.core import Plan
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import check_control
from go_rl.policy.network import ENCODER, Params

FRESH = 23
"""Separates the seeds of fresh weights from those of training, whose first weights may be the very
ones that an unfinished policy still has."""
SAYS = {
    "untrained": "its weights were drawn anew",
    "random-encoder": "the weights of its encoder were drawn anew",
    "blind": "its network saw no edges, and nothing that derives from them",
    "zero-output": "the output layers of its decoders were zero",
}
"""Note in a plan for each arm."""


def controlled(agent: Agent, control: str | None, seed: int) -> Agent:
    """Return a control arm of an agent; without ``control`` the agent itself.

    Args:
        agent: the policy as trained.
        control: one of `CONTROLS`, or None.
        seed: of fresh weights, >= 0.

    Raises:
        PolicyError: there is no such arm.
    """
    check_control(control)
    if control == "untrained":
        return agent.having(_fresh(agent, seed))
    if control == "random-encoder":
        own = agent.params["params"]
        fresh = {**own, ENCODER: _fresh(agent, seed)["params"][ENCODER]}
        return agent.having({**agent.params, "params": fresh})
    if control == "blind":
        return replace(agent, blind=True)
    return agent.having(_without_outputs(agent)) if control == "zero-output" else agent


def controlled_name(name: str, control: str | None) -> str:
    """Return the name of a method under a control arm, such as ``policy (untrained)``."""
    return name if control is None else f"{name} ({control})"


def noted(plan: Plan, control: str | None, agent: Agent) -> Plan:
    """Return a policy's plan that says under which control arm it was made, and that the weights
    are those of a blind ``agent`` where they are."""
    arms = [] if control is None else [control]
    if agent.blind and control != "blind":
        arms.append("blind")
    if not arms:
        return plan
    notes = (f"Control arm {arm} of {plan.optimizer}: {SAYS[arm]}." for arm in arms)
    name = controlled_name(plan.optimizer, ", ".join(arms))
    return replace(plan, optimizer=name, notes=(*plan.notes, *notes))


def _fresh(agent: Agent, seed: int) -> Params:
    drawn = int(np.random.SeedSequence((seed, FRESH)).generate_state(1)[0])
    return new_agent(agent.config, drawn).params


def _without_outputs(agent: Agent) -> Params:
    own = dict(agent.params["params"])
    for name, kind in agent.policy.decoder_kinds.items():
        if name in own:
            own[name] = _zeroed(own[name], kind.outputs)
    return {**agent.params, "params": own}


def _zeroed(tree: dict[str, Any], layers: Collection[str]) -> dict[str, Any]:
    """The tree with these layers, at any depth, exactly zero."""
    return {
        name: jax.tree.map(jnp.zeros_like, below)
        if name in layers
        else _zeroed(below, layers)
        if isinstance(below, dict)
        else below
        for name, below in tree.items()
    }
