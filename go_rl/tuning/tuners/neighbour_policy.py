"""A policy that chooses among neighbours of a schedule, learned by PPO against a cost model.

The *adaptive exploration* of Chameleon (Ahn et al., ICLR 2020, section 3.1). There the agent turns
each knob up or down; a `ScheduleSpace` has no knobs in common, so here a move is one of a few drawn
neighbours, or none, and the policy reads the features of both ends. PPO: Schulman et al.,
"Proximal Policy Optimization Algorithms" (2017), equation 7.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Int32

CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.2, 0.5, 0.01
"""Of the loss."""
CLOSED = -1e9
"""Logit of a neighbour that does not exist."""
Params = dict[str, Any]


class Moves(NamedTuple):
    """``N`` moves, each out of ``C`` choices; the first choice is to stay."""

    current: Float32[np.ndarray, "N F"]
    """[N, F] standardised features of where the agent is."""
    choices: Float32[np.ndarray, "N C F"]
    """[N, C, F] of where it may go."""
    open: Bool[np.ndarray, "N C"]
    """[N, C] whether the choice exists."""


class Experience(NamedTuple):
    """What PPO learns from."""

    moves: Moves
    chosen: Int32[np.ndarray, "N"]
    log_probability: Float32[np.ndarray, "N"]
    """[N] of what was chosen, then."""
    advantage: Float32[np.ndarray, "N"]
    returns: Float32[np.ndarray, "N"]
    """[N] discounted rewards from the move on."""


class NeighbourPolicy:
    """Two small networks, the policy and its critic.

    Args:
        features: F.
        hidden: width of the hidden layers.
        learning_rate: of Adam.
        key: draws the parameters.
    """

    def __init__(self, features: int, hidden: int, learning_rate: float, key: jax.Array) -> None:
        one, two = jax.random.split(key)
        self.params: Params = {
            "policy": _layers(one, 2 * features, hidden),
            "critic": _layers(two, features, hidden),
        }
        self._rate = learning_rate
        self._state = optax.adam(learning_rate).init(self.params)

    def look(self, moves: Moves) -> tuple[Float32[np.ndarray, "N C"], Float32[np.ndarray, "N"]]:
        """Return [N, C] log-probabilities of the choices, and [N] the critic's values."""
        logits, value = _forward(self.params, moves)
        return np.asarray(logits), np.asarray(value)

    def learn(self, experience: Experience, epochs: int) -> None:
        """Make so many updates with all of an experience."""
        for _ in range(epochs):
            self.params, self._state = _update(self.params, self._state, experience, self._rate)


def _layers(key: jax.Array, inputs: int, hidden: int) -> Params:
    """Parameters of a hidden layer and an output, which begins near 0: all choices alike."""
    weights = jax.random.normal(key, (inputs, hidden), jnp.float32) / np.float32(np.sqrt(inputs))
    return {
        "in": weights, "in_bias": jnp.zeros(hidden), "out": jnp.full(hidden, 1e-3),
        "out_bias": jnp.zeros(()),
    }  # fmt: skip


def _network(layers: Params, inputs: Float32[Array, "*N I"]) -> Float32[Array, "*N"]:
    hidden = jnp.tanh(inputs @ layers["in"] + layers["in_bias"])
    return hidden @ layers["out"] + layers["out_bias"]


@jax.jit
def _forward(params: Params, moves: Moves) -> tuple[Float32[Array, "N C"], Float32[Array, "N"]]:
    change = moves.choices - moves.current[:, None]
    logits = _network(params["policy"], jnp.concatenate([moves.choices, change], axis=-1))
    logits = jnp.where(moves.open, logits, jnp.float32(CLOSED))
    return jax.nn.log_softmax(logits), _network(params["critic"], jnp.asarray(moves.current))


def _loss(params: Params, told: Experience) -> Float32[Array, ""]:
    logits, value = _forward(params, told.moves)
    chosen = jnp.take_along_axis(logits, told.chosen[:, None], axis=1)[:, 0]
    ratio = jnp.exp(chosen - told.log_probability)
    clipped = jnp.clip(ratio, 1.0 - CLIP, 1.0 + CLIP)
    gain = jnp.minimum(ratio * told.advantage, clipped * told.advantage).mean()
    entropy = -(jnp.exp(logits) * jnp.where(told.moves.open, logits, 0.0)).sum(axis=1).mean()
    error = jnp.square(value - told.returns).mean()
    return VALUE_WEIGHT * error - gain - ENTROPY_WEIGHT * entropy


@partial(jax.jit, static_argnames="rate")
def _update(params: Params, state: Any, told: Experience, rate: float) -> tuple[Params, Any]:
    gradient = jax.grad(_loss)(params, told)
    updates, state = optax.adam(rate).update(gradient, state, params)
    return optax.apply_updates(params, updates), state  # pyright: ignore[reportReturnType]
