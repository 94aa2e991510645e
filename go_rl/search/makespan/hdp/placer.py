"""HDP's placer: a sequence-to-sequence network from groups to devices (Mirhoseini et al. 2018,
section 3.2), a bidirectional LSTM and a decoding LSTM with additive attention (Bahdanau et al.
2015).

Dimension letters: ``M`` groupings, ``B`` placements (as many of each grouping), ``G`` groups, ``X``
numbers of a group, ``D`` devices, ``H`` width.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from go_rl.search.makespan.hdp.features import features_of
from go_rl.search.makespan.hdp.grouper import Params, noisy

FORGET_BIAS = 1.0
"""Added to the forget gates, so that an untrained LSTM remembers."""


class EncodedGroups(NamedTuple):
    """What the decoder starts from and looks at."""

    cell: Float[Array, "M H"]
    hidden: Float[Array, "M H"]
    memory: Float[Array, "M G H"]
    """[M, G, H] hidden states of both directions, through the attention's matrix."""


class Placer(nn.Module):
    """Reads the groups in order, then names their devices in order."""

    devices: int
    """D."""
    width: int
    """H; half of it for each direction of the encoder."""
    temperature: float
    """Logits are divided by it,"""
    tanh_constant: float
    """and then bounded to +- this by a hyperbolic tangent."""

    def setup(self) -> None:
        half, glorot = self.width // 2, nn.initializers.glorot_uniform()
        each = nn.initializers.glorot_uniform(batch_axis=(0,))
        self.encoder_input = nn.Dense(8 * half, kernel_init=glorot)
        self.encoder_recurrent = self.param("encoder_recurrent", each, (2, half, 4 * half))
        # The last row is what comes before the first device.
        self.embedding = self.param("embedding", glorot, (self.devices + 1, self.width))
        self.decoder_input = nn.Dense(4 * self.width, kernel_init=glorot)
        self.decoder_recurrent = self.param(
            "decoder_recurrent", glorot, (self.width, 4 * self.width)
        )
        self.keys = nn.Dense(self.width, use_bias=False, kernel_init=glorot)
        self.query = self.param("query", glorot, (self.width, self.width))
        self.score = self.param("score", glorot, (self.width, 1))
        self.emit = self.param("emit", glorot, (2 * self.width, self.devices))

    def __call__(
        self, groups: Float[Array, "M G X"], key: Array
    ) -> tuple[Int[Array, "M G"], Float[Array, "M"]]:
        """Return [M, G] devices drawn without noise, and [M] their log-probabilities."""
        return self.decode(self.encode(groups), key, jnp.float32(0.0), None)

    def encode(self, groups: Float[Array, "M G X"]) -> EncodedGroups:
        """Read the groups."""
        rows, count, _ = groups.shape
        gates = self.encoder_input(groups).reshape(rows, count, 2, -1)
        both = jnp.stack([gates[:, :, 0], gates[:, ::-1, 1]])  # direction, row, group, gate
        recurrent, empty = self.encoder_recurrent, jnp.zeros((2, rows, self.width // 2))

        def step(state: tuple[Array, Array], gates: Array) -> tuple[tuple[Array, Array], Array]:
            cell, hidden = state
            cell, hidden = lstm(gates + jnp.einsum("xbh,xhg->xbg", hidden, recurrent), cell)
            return (cell, hidden), hidden

        last, hidden = jax.lax.scan(step, (empty, empty), jnp.moveaxis(both, 2, 0))
        states = jnp.concatenate([hidden[:, 0], hidden[::-1, 1]], axis=-1)
        cell, hidden = (jnp.concatenate([x[0], x[1]], axis=-1) for x in last)
        return EncodedGroups(cell, hidden, self.keys(jnp.swapaxes(states, 0, 1)))

    def decode(
        self,
        encoded: EncodedGroups,
        key: Array,
        noise: Float[Array, ""],
        given: Int[Array, "B G"] | None,
    ) -> tuple[Int[Array, "B G"], Float[Array, "B"]]:
        """Return [B, G] devices and [B] log-probabilities: devices are drawn unless ``given``.

        Both ways see the same noise under the same key.
        """
        recurrent, inputs = self.decoder_recurrent, self.decoder_input(self.embedding)
        rows, count, _ = encoded.memory.shape

        def step(
            state: tuple[Array, Array, Array], now: tuple[Array, Array | None]
        ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
            (cell, hidden, before), (key, chosen) = state, now
            cell, hidden = lstm(inputs[before] + hidden @ recurrent, cell)
            logits = noisy(self._logits(hidden, encoded.memory), jax.random.fold_in(key, 0), noise)
            if chosen is None:
                chosen = jax.random.categorical(jax.random.fold_in(key, 1), logits)
            chosen = chosen.astype(jnp.int32)
            log_probs = jax.nn.log_softmax(logits)
            picked = jnp.take_along_axis(log_probs, chosen[:, None], axis=-1)[:, 0]
            return (cell, hidden, chosen), (chosen, picked)

        first = (encoded.cell, encoded.hidden, jnp.full(rows, self.devices, jnp.int32))
        sequence = (jax.random.split(key, count), None if given is None else given.T)
        _, (chosen, picked) = jax.lax.scan(step, first, sequence)
        return chosen.T, picked.sum(axis=0)

    def _logits(
        self, hidden: Float[Array, "B H"], memory: Float[Array, "B G H"]
    ) -> Float[Array, "B D"]:
        context = _attend(hidden @ self.query, memory, self.score[:, 0])
        logits = jnp.concatenate([hidden, context], axis=-1) @ self.emit
        return self.tanh_constant * jnp.tanh(logits / self.temperature)


@jax.checkpoint  # the [B, G, H] inside is computed anew rather than kept for every step
def _attend(
    query: Float[Array, "B H"], memory: Float[Array, "B G H"], score: Float[Array, "H"]
) -> Float[Array, "B H"]:
    weights = jax.nn.softmax(jnp.tanh(query[:, None] + memory) @ score)
    return jnp.einsum("bg,bgh->bh", weights, memory)


def lstm(
    gates: Float[Array, "*X K"], cell: Float[Array, "*X h"]
) -> tuple[Float[Array, "*X h"], Float[Array, "*X h"]]:
    """Return cell and hidden state after one step; ``gates`` [.., 4 h] come before activation."""
    enter, forget, leave, new = jnp.split(gates, 4, axis=-1)
    cell = nn.sigmoid(forget + FORGET_BIAS) * cell + nn.sigmoid(enter) * jnp.tanh(new)
    return cell, nn.sigmoid(leave) * jnp.tanh(cell)


@partial(jax.jit, static_argnums=(0, 1))
def new_placer(placer: Placer, groups: int, key: Array) -> Params:
    """Return fresh parameters for so many groups."""
    features = jnp.zeros((1, groups, features_of(groups)))
    return cast(Params, placer.init(key, features, key))


@partial(jax.jit, static_argnums=(0, 5))
def draw_devices(
    placer: Placer,
    params: Params,
    groups: Float[Array, "M G X"],
    key: Array,
    noise: Float[Array, ""],
    placements: int,
) -> Int[Array, "B G"]:
    """Draw ``placements`` rows of [B, G] devices for each grouping, one after the other."""
    return _decoded(placer, params, groups, key, noise, placements, None)[0]


@partial(jax.jit, static_argnums=0)
def placer_gradient(
    placer: Placer,
    params: Params,
    groups: Float[Array, "M G X"],
    key: Array,
    noise: Float[Array, ""],
    chosen: Int[Array, "B G"],
    advantage: Float[Array, "B"],
) -> Params:
    """Return the gradient of -mean(advantage * log p(placement | grouping)); ``key`` and ``noise``
    are those of the draw."""
    placements = len(chosen) // len(groups)

    def loss(params: Params) -> Float[Array, ""]:
        return -(
            advantage * _decoded(placer, params, groups, key, noise, placements, chosen)[1]
        ).mean()

    return jax.grad(loss)(params)


def _decoded(
    placer: Placer,
    params: Params,
    groups: Float[Array, "M G X"],
    key: Array,
    noise: Float[Array, ""],
    placements: int,
    given: Int[Array, "B G"] | None,
) -> tuple[Int[Array, "B G"], Float[Array, "B"]]:
    encoded = cast(EncodedGroups, placer.apply(params, groups, method=Placer.encode))
    repeated = jax.tree.map(lambda x: jnp.repeat(x, placements, axis=0), encoded)
    drawn = placer.apply(params, repeated, key, noise, given, method=Placer.decode)
    return cast("tuple[Array, Array]", drawn)
