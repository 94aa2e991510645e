"""What the shipped policies say of problems."""

from typing import Any

import jax
import numpy as np

from go_rl.policy.kinds import plan_decoder
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.weights import load_weights, shipped_weights

from ..fingerprint import Facts, moments
from .plans import SEED
from .problems import Setting, problem

NOISE = np.array([0.0, 1.0, 1.0, 2.0], np.float32)
"""Of the draws: the likeliest decision first."""
RING_POLICIES = ("chips-1.0",)
ORDERS_POLICIES = ("orders-1.0",)
DISPATCH_POLICIES = ("dispatch-2.5",)
"""Shipped weights of each kind."""


def shipped() -> set[str]:
    """Return the names of all weights of policies that ship."""
    return set(shipped_weights())


def ring_predictions(name: str, setting: Setting) -> Facts:
    """Return the distributions of chips that a ring policy draws."""
    agent, padded = load_weights(name).agent, RingPlans(problem(setting)).padded
    encoded, key = agent.encode(padded), jax.random.key(SEED)
    placed = agent.draw(padded, encoded, ("placement",), key, NOISE)["placement"]
    embedded = (encoded.heads["placement"], encoded.pooled)
    units, chips = padded.num_units, padded.num_devices
    likely = np.exp(np.asarray(placed.log_probs[0, :units, :chips], np.float64))
    return {
        "units": units,
        "observation": _moments(padded.graph.nodes, padded.graph.globals),
        "encoded": _moments(jax.tree.map(lambda x: x[:units] if x.ndim > 1 else x, embedded)),
        "distributions": _moments(likely),
    }


def prototype_predictions(name: str, setting: Setting) -> Facts:
    """Return the weights that a policy of prototypes draws; what follows from them is a matter of
    near ties, which other processors round otherwise."""
    agent = load_weights(name).agent
    decoder = plan_decoder(problem(setting), agent.config.kind)
    assert isinstance(decoder, PrototypePlans)
    encoded = agent.encode(decoder.padded)
    drawn = decoder.draw(agent, encoded, "plan", NOISE, jax.random.key(SEED)).values()
    return {"units": decoder.units.num_units, "heads": _moments([d.deviations for d in drawn])}


def _moments(*trees: Any) -> list[float]:
    return moments([np.asarray(x, np.float64) for x in jax.tree.leaves(trees)])
