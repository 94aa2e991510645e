"""`Agent`: a policy with its weights, drawing decisions for a problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Float32, Int32

from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.buckets import Padded, pad
from go_rl.policy.config import PolicyConfig
from go_rl.policy.decoders.order_decoder import OrderActions
from go_rl.policy.network import Encoded, Params, Policy
from go_rl.policy.observation import (
    HARDWARE_FEATURES,
    NUM_FEATURES,
    REFERENCE_ORDERS,
    observe,
    tiny_graph,
)

SMALLEST = 64
"""Nodes of the graph with which parameters are initialised."""


class Placements(NamedTuple):
    """``B`` placements as drawn, before the solver."""

    chosen: Int32[jax.Array, "B T U"]
    """[B, T, U] chips of each iteration."""
    log_probs: Float32[jax.Array, "B U K"]
    """[B, U, K] distributions of the last iteration."""
    place: Float32[jax.Array, "U"]
    """[U] share of the work before each node, in the policy's order."""


@dataclass(frozen=True, eq=False)
class Agent:
    """Weights and the configuration that they fit."""

    config: PolicyConfig
    params: Params

    @property
    def policy(self) -> Policy:
        """The network without weights."""
        return Policy(self.config)

    @property
    def num_parameters(self) -> int:
        """Numbers in the weights."""
        return sum(int(leaf.size) for leaf in jax.tree.leaves(self.params))

    def encode(self, padded: Padded) -> Encoded:
        """Embed a graph; once serves any number of draws."""
        return encode(self.policy, self.params, padded.graph, padded.real)

    def draw_orders(
        self, padded: Padded, encoded: Encoded, key: jax.Array, noise: Float32[np.ndarray, "B"]
    ) -> OrderActions:
        """Draw [B] orders; the scores of the last iteration are the proposal."""
        return draw_orders(self.policy, self.params, encoded, padded.graph, key, noise)

    def draw_placements(
        self, padded: Padded, encoded: Encoded, key: jax.Array, noise: Float32[np.ndarray, "B"]
    ) -> Placements:
        """Draw [B] placements; the last iteration's chips are the proposal."""
        graph, real = padded.graph, padded.real
        chips = jnp.int32(padded.chips)
        return draw_placements(self.policy, self.params, encoded, graph, real, chips, key, noise)


def padded_graph(workspace: RingWorkspace) -> Padded:
    """Return the workspace's problem as the network takes it."""
    return pad(observe(workspace))


def widened(agent: Agent, factor: float) -> Agent:
    """Return the agent with ``factor`` times the standard deviation of its graph-level decisions.

    A pretrained policy is sure of itself; a graph that it has never seen deserves more doubt.
    """
    params = jax.tree.map(jnp.asarray, agent.params)
    spread = params["params"]["order"]["mix_spread"]
    spread["bias"] = spread["bias"] + jnp.log(jnp.float32(factor))
    return Agent(agent.config, params)


def new_agent(config: PolicyConfig, seed: int) -> Agent:
    """Return an untrained agent."""
    key = jax.random.key(seed)
    padded = pad(tiny_graph(NUM_FEATURES, len(REFERENCE_ORDERS), len(HARDWARE_FEATURES)))
    graph, real = jax.tree.map(jnp.asarray, (padded.graph, padded.real))
    return Agent(config, _first_params(Policy(config), key, graph, real))


@partial(jax.jit, static_argnums=0)
def _first_params(policy: Policy, key: jax.Array, graph: jraph.GraphsTuple, real: Any) -> Params:
    return policy.init(key, graph, real, key)


@partial(jax.jit, static_argnums=0)
def encode(policy: Policy, params: Params, graph: jraph.GraphsTuple, real: Any) -> Encoded:
    """`Policy.encode`, compiled."""
    return cast(Encoded, policy.apply(params, graph, real, method=Policy.encode))


@partial(jax.jit, static_argnums=0)
def draw_orders(
    policy: Policy, params: Params, encoded: Encoded, graph: jraph.GraphsTuple, key: Any, noise: Any
) -> OrderActions:
    """`Policy.draw_orders`, compiled."""
    drawn = policy.apply(params, encoded, graph, key, noise, method=Policy.draw_orders)
    return cast(OrderActions, drawn)


@partial(jax.jit, static_argnums=0)
def draw_placements(
    policy: Policy,
    params: Params,
    encoded: Encoded,
    graph: jraph.GraphsTuple,
    real: Any,
    chips: Any,
    key: Any,
    noise: Any,
) -> Placements:
    """`Policy.place`, then `Policy.draw_placements`, compiled."""
    place = policy.apply(params, encoded, graph, real, method=Policy.place)
    drawn = policy.apply(
        params, encoded, graph, chips, place, key, noise, method=Policy.draw_placements
    )
    chosen, log_probs = cast("tuple[jax.Array, jax.Array]", drawn)
    return Placements(chosen, log_probs, cast("jax.Array", place))
