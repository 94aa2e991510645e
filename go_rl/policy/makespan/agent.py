"""`StepAgent`: a step policy with its weights, drawing decisions for a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Float32

from go_rl.core import PolicyError
from go_rl.core.problem import TASKS
from go_rl.objectives.makespan.choices import LEVELS
from go_rl.policy.buckets import Padded, pad
from go_rl.policy.config import MAX_CHIPS, PolicyConfig
from go_rl.policy.makespan.network import StepEncoded, StepPolicy
from go_rl.policy.makespan.observation import STEP_FEATURES, STEP_HARDWARE, STEP_ORDERS
from go_rl.policy.network import Params
from go_rl.policy.observation import tiny_graph

StepActions = dict[str, Any]
"""Decisions of the tasks asked, by task: `OrderActions` or, of the form ``nodes``, `NodeActions`.
Every array has a row for each sample."""
Options = Mapping[str, Float32[np.ndarray, "U _"]]
"""What each unit may choose, by task; see `node_options`."""


@dataclass(frozen=True, eq=False)
class StepAgent:
    """Weights and the configuration that they fit."""

    config: PolicyConfig
    params: Params

    @property
    def policy(self) -> StepPolicy:
        """The network without weights."""
        return StepPolicy(self.config)

    def encode(self, padded: Padded) -> StepEncoded:
        """Embed a graph; once serves any number of draws."""
        return encode_step(self.policy, self.params, padded.graph, padded.real)

    def draw(
        self,
        padded: Padded,
        encoded: StepEncoded,
        tasks: tuple[str, ...],
        key: jax.Array,
        noise: Float32[np.ndarray, "B"],
        options: Options | None = None,
    ) -> StepActions:
        """Draw [B] decisions of every task; ``noise`` scales the deviations (0: the likeliest).

        A policy of the form ``nodes`` chooses among ``options`` (`StepDecoder.options`).

        Raises:
            PolicyError: it has no options, or places on more devices than `MAX_CHIPS`.
        """
        among = _checked(options, tasks) if self.config.step_form == "nodes" else {}
        return draw_step(self.policy, self.params, encoded, padded.graph, tasks, key, noise, among)


def _checked(options: Options | None, tasks: tuple[str, ...]) -> Options:
    if options is None or any(task not in options for task in tasks):
        raise PolicyError("a policy of the form 'nodes' draws among StepDecoder.options; give them")
    if "placement" in tasks and options["placement"].shape[1] > MAX_CHIPS:
        raise PolicyError(
            f"a policy of the form 'nodes' places on at most {MAX_CHIPS} devices; "
            "use one of the form 'orders'"
        )
    return {task: options[task] for task in tasks}


def new_step_agent(config: PolicyConfig, seed: int) -> StepAgent:
    """Return an untrained agent."""
    key = jax.random.key(seed)
    padded = pad(tiny_graph(STEP_FEATURES, len(STEP_ORDERS), len(STEP_HARDWARE)))
    graph, real = jax.tree.map(jnp.asarray, (padded.graph, padded.real))
    options = {task: jnp.zeros((len(real), LEVELS)) for task in TASKS}
    return StepAgent(config, _first_params(StepPolicy(config), key, graph, real, options))


@partial(jax.jit, static_argnums=0)
def _first_params(
    policy: StepPolicy, key: jax.Array, graph: jraph.GraphsTuple, real: jax.Array, options: Any
) -> Params:
    return policy.init(key, graph, real, key, jnp.ones(1), options)


@partial(jax.jit, static_argnums=0)
def encode_step(
    policy: StepPolicy, params: Params, graph: jraph.GraphsTuple, real: jax.Array | np.ndarray
) -> StepEncoded:
    """`StepPolicy.encode`, compiled."""
    return cast(StepEncoded, policy.apply(params, graph, real, method=StepPolicy.encode))


@partial(jax.jit, static_argnums=(0, 4))
def draw_step(
    policy: StepPolicy,
    params: Params,
    encoded: StepEncoded,
    graph: jraph.GraphsTuple,
    tasks: tuple[str, ...],
    key: jax.Array,
    noise: jax.Array | np.ndarray,
    options: Mapping[str, jax.Array | np.ndarray],
) -> StepActions:
    """Decisions of every task, compiled: of the form ``orders``, for each sample the best of
    `PolicyConfig.best_of` in the critic's eyes."""
    keys = dict(zip(tasks, jax.random.split(key, len(tasks)), strict=True))
    apply = partial(policy.apply, params)
    if policy.config.step_form == "nodes":
        return {
            task: apply(encoded, graph, task, one, noise, options, method=StepPolicy.draw)
            for task, one in keys.items()
        }
    pairs = {task: jax.random.split(one) for task, one in keys.items()}
    among = jnp.repeat(jnp.asarray(noise), policy.config.best_of)
    mixes = {
        task: apply(encoded, task, pair[0], among, method=StepPolicy.propose)
        for task, pair in pairs.items()
    }
    scores = cast("jax.Array", apply(encoded.known, mixes, method=StepPolicy.criticise))
    best = scores.mean(0).reshape(len(noise), -1).argmin(1)
    chosen = best + jnp.arange(len(noise)) * policy.config.best_of
    return {
        task: apply(
            encoded, graph, task, mixes[task][chosen], pair[1], noise, method=StepPolicy.follow
        )
        for task, pair in pairs.items()
    }
