"""A policy that chooses among neighbours of a candidate, learned by PPO against a cost model.

The *adaptive exploration* of Chameleon (Ahn et al., ICLR 2020, section 3.1). There the agent turns
each knob up or down; a `CandidateSpace` has no knobs in common, so here a move is one of a few
drawn neighbours, or none, and the policy reads the features of both ends. PPO: Schulman et al.,
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
"""Constants of the loss."""
CLOSED = -1e9
"""Logit of a neighbour that does not exist."""
Params = dict[str, Any]


class NeighbourMoves(NamedTuple):
    """``N`` moves, each out of ``C`` choices; the first choice is to stay."""

    current: Float32[np.ndarray, "N F"]
    """[N, F] standardised features of where the agent is."""
    choices: Float32[np.ndarray, "N C F"]
    """[N, C, F] standardised features of where the agent may go."""
    open: Bool[np.ndarray, "N C"]
    """[N, C] whether the choice exists."""


class MoveExperience(NamedTuple):
    """Moves and their returns, from which PPO learns."""

    moves: NeighbourMoves
    chosen: Int32[np.ndarray, "N"]
    log_probability: Float32[np.ndarray, "N"]
    """[N] log-probability of the choice when it was made."""
    advantage: Float32[np.ndarray, "N"]
    returns: Float32[np.ndarray, "N"]
    """[N] discounted rewards from the move on."""


class NeighbourPolicy:
    """Two small networks, the policy and its critic.

    Args:
        features: F.
        hidden: width of the hidden layers.
        learning_rate: of Adam.
        rng: draws the parameters.
    """

    def __init__(
        self, features: int, hidden: int, learning_rate: float, rng: np.random.Generator
    ) -> None:
        self.params: Params = {
            "policy": _layers(rng, 2 * features, hidden),
            "critic": _layers(rng, features, hidden),
        }
        self._rate = learning_rate
        self._state = _begin(self.params)

    def look(
        self, moves: NeighbourMoves
    ) -> tuple[Float32[np.ndarray, "N C"], Float32[np.ndarray, "N"]]:
        """Return [N, C] log-probabilities of the choices, and [N] the critic's values."""
        return _forward(jax.device_get(self.params), moves, np)  # quicker than a call of XLA

    def learn(self, experience: MoveExperience, epochs: int) -> None:
        """Make this many updates with all of an experience."""
        self.params, self._state = _learn(self.params, self._state, experience, self._rate, epochs)


def _layers(rng: np.random.Generator, inputs: int, hidden: int) -> Params:
    """Parameters of a hidden layer and an output, which begins near 0: all choices alike."""
    weights = rng.normal(0.0, inputs**-0.5, (inputs, hidden))
    return {
        "in": weights.astype(np.float32), "in_bias": np.zeros(hidden, np.float32),
        "out": np.full(hidden, 1e-3, np.float32), "out_bias": np.zeros((), np.float32),
    }  # fmt: skip


def _network(layers: Params, inputs: Any, xp: Any) -> Any:
    hidden = xp.tanh(inputs @ layers["in"] + layers["in_bias"])
    return hidden @ layers["out"] + layers["out_bias"]


def _forward(params: Params, moves: NeighbourMoves, xp: Any) -> tuple[Any, Any]:
    """Log-probabilities [N, C] and values [N], by NumPy or by JAX's NumPy."""
    change = moves.choices - moves.current[:, None]
    logits = _network(params["policy"], xp.concatenate([moves.choices, change], axis=-1), xp)
    logits = xp.where(moves.open, logits, np.float32(CLOSED))
    logits = logits - logits.max(axis=1, keepdims=True)
    logits = logits - xp.log(xp.exp(logits).sum(axis=1, keepdims=True))
    return logits, _network(params["critic"], moves.current, xp)


def _loss(params: Params, told: MoveExperience) -> Float32[Array, ""]:
    logits, value = _forward(params, told.moves, jnp)
    chosen = jnp.take_along_axis(logits, told.chosen[:, None], axis=1)[:, 0]
    ratio = jnp.exp(chosen - told.log_probability)
    clipped = jnp.clip(ratio, 1.0 - CLIP, 1.0 + CLIP)
    gain = jnp.minimum(ratio * told.advantage, clipped * told.advantage).mean()
    entropy = -(jnp.exp(logits) * jnp.where(told.moves.open, logits, 0.0)).sum(axis=1).mean()
    error = jnp.square(value - told.returns).mean()
    return VALUE_WEIGHT * error - gain - ENTROPY_WEIGHT * entropy


@jax.jit
def _begin(params: Params) -> Any:
    return optax.adam(0.0).init(params)


@partial(jax.jit, static_argnames=("rate", "epochs"))
def _learn(
    params: Params, state: Any, told: MoveExperience, rate: float, epochs: int
) -> tuple[Params, Any]:
    adam = optax.adam(rate)

    def update(carry: tuple[Params, Any], _: None) -> tuple[tuple[Params, Any], None]:
        gradient = jax.grad(_loss)(carry[0], told)
        updates, state = adam.update(gradient, carry[1], carry[0])
        return (optax.apply_updates(carry[0], updates), state), None  # pyright: ignore[reportReturnType]

    return jax.lax.scan(update, (params, state), length=epochs)[0]
