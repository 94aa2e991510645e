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
from go_rl.core.problem import DECISIONS
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.buckets import Padded, pad
from go_rl.policy.config import MAX_CHIPS, PolicyConfig
from go_rl.policy.network import Encoded, Params, Policy
from go_rl.policy.observations.makespan import MAKESPAN_FEATURES, MAKESPAN_HARDWARE, MAKESPAN_ORDERS
from go_rl.policy.observations.policy_graph import tiny_graph
from go_rl.policy.observations.reference_orders import REFERENCE_ORDERS
from go_rl.policy.observations.ring import RING_FEATURES, RING_HARDWARE

Actions = dict[str, Any]
"""What was drawn for each decision: `OrderActions`, `DrawnPlacements`, `NodeActions` or
`DispatchActions`."""
Options = Mapping[str, Float32[np.ndarray, "U _"]]
"""What each unit may choose, by decision; see `node_options`."""
Start = Mapping[str, Int32[np.ndarray, "U"]]
"""What the first iteration sees of a plan, by decision; form ``nodes`` only."""
SHAPES = {
    Objective.RING: (RING_FEATURES, len(REFERENCE_ORDERS), len(RING_HARDWARE)),
    Objective.MAKESPAN: (MAKESPAN_FEATURES, len(MAKESPAN_ORDERS), len(MAKESPAN_HARDWARE)),
}
"""Columns of what the policies of each objective see: features, places, hardware."""


@dataclass(frozen=True, eq=False)
class Agent:
    """Weights and the configuration that they fit."""

    config: PolicyConfig
    params: Params
    objective: Objective = Objective.RING
    blind: bool = False
    """Whether the network sees no edges; a control arm."""

    @property
    def policy(self) -> Policy:
        """The network without weights."""
        return Policy(self.config, self.objective, self.blind)

    @property
    def num_parameters(self) -> int:
        """Numbers in the weights."""
        return sum(int(leaf.size) for leaf in jax.tree.leaves(self.params))

    def having(self, params: Params) -> Agent:
        """Return an agent with the same network and other weights."""
        return Agent(self.config, params, self.objective, self.blind)

    def encode(self, padded: Padded) -> Encoded:
        """Embed a graph; once serves any number of draws."""
        chips = jnp.int32(padded.chips)
        return encode(self.policy, self.params, padded.graph, padded.real, chips)

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

        A policy of the form ``nodes`` chooses among ``options`` (`MakespanDecoder.options`); its
        first iteration sees ``start``, if the policy carries plans over.

        Raises:
            PolicyError: it has no options, or places on more devices than `MAX_CHIPS`.
        """
        among = self._options(options, decisions)
        seen = dict(start or {}) if self.policy.carries else {}
        return draw(
            self.policy, self.params, encoded, padded.graph, decisions, key, noise, among, seen
        )

    def _options(self, options: Options | None, decisions: tuple[str, ...]) -> Options:
        if not self.policy.chooses_by_unit:
            return {}
        if options is None or any(decision not in options for decision in decisions):
            raise PolicyError(
                "a policy of the form 'nodes' draws among MakespanDecoder.options; give them"
            )
        if "placement" in decisions and options["placement"].shape[1] > MAX_CHIPS:
            raise PolicyError(
                f"a policy of the form 'nodes' places on at most {MAX_CHIPS} devices; "
                "use one of the form 'orders'"
            )
        return {decision: options[decision] for decision in decisions}


def widened(agent: Agent, factor: float) -> Agent:
    """Return the agent with ``factor`` times the standard deviation of its graph-level decisions.

    The deviations of a pretrained policy are too small for a graph that it has never seen.
    """
    if factor == 1.0:
        return agent
    params = jax.tree.map(jnp.asarray, agent.params)
    for decoder in params["params"].values():
        if "mix_spread" in decoder:
            spread = decoder["mix_spread"]
            spread["bias"] = spread["bias"] + jnp.log(jnp.float32(factor))
    return agent.having(params)


def new_agent(config: PolicyConfig, seed: int, objective: Objective = Objective.RING) -> Agent:
    """Return an untrained agent."""
    key = jax.random.key(seed)
    padded = pad(tiny_graph(*SHAPES[objective]))
    graph, real = jax.tree.map(jnp.asarray, (padded.graph, padded.real))
    policy, options = Policy(config, objective), {}
    if policy.chooses_by_unit:
        options = {decision: jnp.zeros((len(real), LEVELS)) for decision in DECISIONS}
    params = _first_params(policy, key, graph, real, options)
    return Agent(config, params, objective)


@partial(jax.jit, static_argnums=0)
def _first_params(
    policy: Policy, key: jax.Array, graph: jraph.GraphsTuple, real: jax.Array, options: Any
) -> Params:
    return policy.init(key, graph, real, key, jnp.ones(1), options)


@partial(jax.jit, static_argnums=0)
def encode(
    policy: Policy, params: Params, graph: jraph.GraphsTuple, real: Any, chips: Any
) -> Encoded:
    """`Policy.encode`, compiled."""
    return cast(Encoded, policy.apply(params, graph, real, chips, method=Policy.encode))


@partial(jax.jit, static_argnums=(0, 4))
def draw(
    policy: Policy,
    params: Params,
    encoded: Encoded,
    graph: jraph.GraphsTuple,
    decisions: tuple[str, ...],
    key: jax.Array,
    noise: jax.Array | np.ndarray,
    options: Mapping[str, jax.Array | np.ndarray],
    start: Mapping[str, jax.Array | np.ndarray],
) -> Actions:
    """Draw every decision, compiled; with a critic, for each sample the best of
    `PolicyConfig.best_of` graph-level decisions."""
    apply = partial(policy.apply, params)
    if policy.objective is Objective.RING:
        keys = dict.fromkeys(decisions, key)
    else:
        keys = dict(zip(decisions, jax.random.split(key, len(decisions)), strict=True))
    if not policy.has_critic:
        given = {decision: (options.get(decision), start.get(decision)) for decision in decisions}
        return {
            decision: apply(
                encoded, graph, decision, one, noise, *given[decision], method=Policy.draw
            )
            for decision, one in keys.items()
        }
    pairs = {decision: jax.random.split(one) for decision, one in keys.items()}
    among = jnp.repeat(jnp.asarray(noise), policy.config.best_of)
    mixes = {
        decision: apply(encoded, decision, pair[0], among, method=Policy.propose)
        for decision, pair in pairs.items()
    }
    scores = cast("jax.Array", apply(encoded.known, mixes, method=Policy.criticise))
    best = scores.mean(0).reshape(len(noise), -1).argmin(1)
    chosen = best + jnp.arange(len(noise)) * policy.config.best_of
    return {
        decision: apply(
            encoded, graph, decision, mixes[decision][chosen], pair[1], noise, method=Policy.follow
        )
        for decision, pair in pairs.items()
    }
