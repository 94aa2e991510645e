"""`Agent`: a policy with its weights, drawing decisions for a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Float32, Int32

from go_rl.core import Objective, PolicyError
from go_rl.core.objective import DECISIONS
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.config import MAX_CHIPS, NodesPolicyConfig, PolicyConfig
from go_rl.policy.dispatch.dispatch_policy import DispatchPolicy
from go_rl.policy.network import Encoded, Params, Policy
from go_rl.policy.nodes.node_options import UnitOptions
from go_rl.policy.nodes.nodes_policy import NodesPolicy
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import tiny_graph
from go_rl.policy.orders.orders_policy import OrdersPolicy
from go_rl.policy.ring.ring_policy import RingPolicy

Actions = dict[str, Any]
"""Actions drawn for each decision: `DrawnPlacements`, `NodeActions` or `DrawnWeights`."""
Options = Mapping[str, UnitOptions]
"""Options of each unit, by decision."""
Start = Mapping[str, Int32[np.ndarray, "U"]]
"""Plan that the first iteration of a node policy starts from, by decision."""
NETWORKS: dict[str, type[Policy]] = {
    "ring": RingPolicy, "orders": OrdersPolicy, "nodes": NodesPolicy, "dispatch": DispatchPolicy,
}  # fmt: skip
"""Networks by the name of their policy."""


@dataclass(frozen=True, eq=False)
class Agent:
    """Weights and the configuration that they fit."""

    config: PolicyConfig
    params: Params
    blind: bool = False
    """Whether the network sees no edges; a control arm."""

    @property
    def objective(self) -> Objective:
        """Objective that the policy solves."""
        return self.config.objective

    @property
    def policy(self) -> Policy:
        """The network without weights."""
        return NETWORKS[self.config.kind](self.config, self.blind)

    def having(self, params: Params) -> Agent:
        """Return an agent with the same network and other weights."""
        return Agent(self.config, params, self.blind)

    def encode(self, padded: Padded) -> Encoded:
        """Embed a graph; once serves any number of draws."""
        num_devices = jnp.int32(padded.num_devices)
        return encode(self.policy, self.params, padded.graph, padded.real, num_devices)

    def draw(
        self,
        padded: Padded,
        encoded: Encoded,
        decisions: tuple[str, ...],
        key: jax.Array,
        noise: Float32[np.ndarray, "B"],
        options: Options | None = None,
        start: Start | None = None,
    ) -> Actions:
        """Draw [B] samples of every decision; ``noise`` scales the deviations (0: the likeliest).

        A node policy chooses among ``options`` (`NodesPlans.choices`); its first iteration sees
        ``start``, if the policy carries plans over.

        Raises:
            PolicyError: it has no options, or places on more devices than `MAX_CHIPS`.
        """
        among = self._options(options, decisions)
        carries = isinstance(self.config, NodesPolicyConfig) and self.config.carry
        seen = dict(start or {}) if carries else {}
        given = {name: (options, seen.get(name)) for name, options in among.items()}
        return draw(self.policy, self.params, encoded, padded.graph, decisions, key, noise, given)

    def _options(self, options: Options | None, decisions: tuple[str, ...]) -> Options:
        if not isinstance(self.config, NodesPolicyConfig):
            return {}
        if options is None or any(decision not in options for decision in decisions):
            raise PolicyError("a node policy draws among NodesPlans.choices; give them")
        if "placement" in decisions and options["placement"].table.shape[1] > MAX_CHIPS:
            raise PolicyError(
                f"a node policy places on at most {MAX_CHIPS} devices; use a dispatch policy"
            )
        return {decision: options[decision] for decision in decisions}


def new_agent(config: PolicyConfig, seed: int) -> Agent:
    """Return an untrained agent."""
    key, policy = jax.random.key(seed), NETWORKS[config.kind](config)
    padded, options = pad(tiny_graph(policy.columns)), {}
    graph, real = jax.tree.map(jnp.asarray, (padded.graph, padded.real))
    if isinstance(config, NodesPolicyConfig):
        every = UnitOptions(jnp.zeros((len(real), LEVELS)), jnp.arange(len(real)))
        options = dict.fromkeys(DECISIONS, every)
    return Agent(config, _first_params(policy, key, graph, real, options))


@partial(jax.jit, static_argnums=0)
def _first_params(
    policy: Policy, key: jax.Array, graph: jraph.GraphsTuple, real: jax.Array, options: Any
) -> Params:
    return policy.init(key, graph, real, key, jnp.ones(1), options)


@partial(jax.jit, static_argnums=0)
def encode(
    policy: Policy, params: Params, graph: jraph.GraphsTuple, real: Any, num_devices: Any
) -> Encoded:
    """`Policy.encode`, compiled."""
    return cast(Encoded, policy.apply(params, graph, real, num_devices, method="encode"))


@partial(jax.jit, static_argnums=(0, 4))
def draw(
    policy: Policy,
    params: Params,
    encoded: Encoded,
    graph: jraph.GraphsTuple,
    decisions: tuple[str, ...],
    key: jax.Array,
    noise: jax.Array | np.ndarray,
    given: Mapping[str, tuple[Any, Any]],
) -> Actions:
    """Draw every decision, compiled; ``given``: options and start of those that have them."""
    drawn = {}
    for decision, one in policy.keys(decisions, key).items():
        drawn[decision] = policy.apply(
            params, encoded, graph, decision, one, noise, *given.get(decision, ()), method="draw"
        )
    return drawn
