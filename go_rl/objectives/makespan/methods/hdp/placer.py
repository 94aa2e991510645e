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

from go_rl.objectives.makespan.methods.hdp.features import features_of
from go_rl.objectives.makespan.methods.hdp.grouper import Params, noisy

FORGET_BIAS = 1.0
"""Bias of the forget gates, so that an untrained LSTM remembers."""


class EncodedGroups(NamedTuple):
    """Encoded groups: initial state and attention memory of the decoder."""

    cell: Float[Array, "M H"]
    hidden: Float[Array, "M H"]
    memory: Float[Array, "M G H"]
    """[M, G, H] hidden states of both directions, through the attention's matrix."""


class Placer(nn.Module):
    """Reads the groups in order, then names their devices in order."""

    devices: int
    """Number of devices D."""
    width: int
    """Width H of the hidden state; half of it for each direction of the encoder."""
    temperature: float
    """Divisor of the logits, applied before `tanh_constant`."""
    tanh_constant: float
    """Bound C of the logits: C tanh(logits / `temperature`)."""

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
        encoded, quiet = self.encode(groups), jnp.float32(0.0)
        chosen = self.draw(encoded, key, quiet)
        return chosen, self.judge(encoded, key, quiet, chosen)

    def encode(self, groups: Float[Array, "M G X"]) -> EncodedGroups:
        """Read the groups."""
        rows, count, _ = groups.shape
        gates = self.encoder_input(groups).reshape(rows, count, 2, -1)
        both = jnp.stack([gates[:, :, 0], gates[:, ::-1, 1]])  # direction, row, group, gate
        empty = jnp.zeros((2, rows, self.width // 2))
        cell, hidden = jax.vmap(lstm_states)(
            jnp.swapaxes(both, 1, 2), self.encoder_recurrent, empty, empty
        )  # direction, group, row, half
        states = jnp.concatenate([hidden[0], hidden[1, ::-1]], axis=-1)
        last = [jnp.concatenate([x[0, -1], x[1, -1]], axis=-1) for x in (cell, hidden)]
        return EncodedGroups(last[0], last[1], self.keys(jnp.swapaxes(states, 0, 1)))

    def draw(
        self, encoded: EncodedGroups, key: Array, noise: Float[Array, ""]
    ) -> Int[Array, "B G"]:
        """Draw [B, G] devices, one group after the other."""
        recurrent, inputs = self.decoder_recurrent, self.decoder_input(self.embedding)
        rows, count, _ = encoded.memory.shape

        def step(
            state: tuple[Array, Array, Array], key: Array
        ) -> tuple[tuple[Array, Array, Array], Array]:
            cell, hidden, before = state
            cell, hidden = lstm(inputs[before] + hidden @ recurrent, cell)
            logits = self._logits(hidden, encoded.memory, key, noise)
            chosen = jax.random.categorical(jax.random.fold_in(key, 1), logits).astype(jnp.int32)
            return (cell, hidden, chosen), chosen

        first = (encoded.cell, encoded.hidden, jnp.full(rows, self.devices, jnp.int32))
        return jax.lax.scan(step, first, jax.random.split(key, count))[1].T

    def judge(
        self, encoded: EncodedGroups, key: Array, noise: Float[Array, ""], chosen: Int[Array, "B G"]
    ) -> Float[Array, "B"]:
        """Return [B] log-probabilities of devices, under the noise that `draw` has for ``key``."""
        rows, count = chosen.shape
        start = jnp.full((rows, 1), self.devices, chosen.dtype)
        before = jnp.concatenate([start, chosen[:, :-1]], axis=1)
        inputs = self.decoder_input(self.embedding)
        gates = inputs[before.T]  # group, row, gate
        _, hidden = lstm_states(gates, self.decoder_recurrent, encoded.cell, encoded.hidden)

        def logits(now: tuple[Array, Array]) -> Array:
            return self._logits(now[0], encoded.memory, now[1], noise)

        found = jax.lax.map(logits, (hidden, jax.random.split(key, count)))
        picked = jnp.take_along_axis(jax.nn.log_softmax(found), chosen.T[..., None], axis=-1)
        return picked[..., 0].sum(axis=0)

    def _logits(
        self,
        hidden: Float[Array, "B H"],
        memory: Float[Array, "B G H"],
        key: Array,
        noise: Float[Array, ""],
    ) -> Float[Array, "B D"]:
        context = _attend(hidden @ self.query, memory, self.score[:, 0])
        logits = jnp.concatenate([hidden, context], axis=-1) @ self.emit
        logits = self.tanh_constant * jnp.tanh(logits / self.temperature)
        return noisy(logits, jax.random.fold_in(key, 0), noise)


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


@jax.custom_vjp
def lstm_states(
    gates: Float[Array, "T B K"],
    recurrent: Float[Array, "h K"],
    cell: Float[Array, "B h"],
    hidden: Float[Array, "B h"],
) -> tuple[Float[Array, "T B h"], Float[Array, "T B h"]]:
    """Return the cells and hidden states of an LSTM after each of T inputs.

    Its derivative is JAX's own, but sums over time in one product of matrices what reverse mode
    would add to a matrix of the size of ``recurrent`` at every step.

    Args:
        gates: [T, B, 4 h] what the inputs add to the gates.
        recurrent: [h, 4 h] what the hidden state adds.
        cell: [B, h] before the first input.
        hidden: [B, h] before the first input.
    """

    def step(
        state: tuple[Array, Array], gates: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        cell, hidden = state
        state = lstm(gates + hidden @ recurrent, cell)
        return state, state

    return jax.lax.scan(step, (cell, hidden), gates)[1]


def _lstm_states_forward(
    gates: Array, recurrent: Array, cell: Array, hidden: Array
) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
    cells, hiddens = lstm_states(gates, recurrent, cell, hidden)
    before = (jnp.concatenate([x[None], xs[:-1]]) for x, xs in ((cell, cells), (hidden, hiddens)))
    return (cells, hiddens), (gates, recurrent, *before)


def _lstm_states_backward(
    known: tuple[Array, ...], gradient: tuple[Array, Array]
) -> tuple[Array, Array, Array, Array]:
    gates, recurrent, cells, hiddens = known

    def step(
        later: tuple[Array, Array], now: tuple[Array, Array, Array, Array]
    ) -> tuple[tuple[Array, Array], Array]:
        total, cell, *own = now
        _, pull = jax.vjp(lstm, total, cell)
        by_total, by_cell = pull((later[0] + own[0], later[1] + own[1]))
        return (by_cell, by_total @ recurrent.T), by_total

    last = (jnp.zeros_like(cells[0]), jnp.zeros_like(hiddens[0]))
    sequence = (gates + hiddens @ recurrent, cells, *gradient)
    (by_cell, by_hidden), by_total = jax.lax.scan(step, last, sequence, reverse=True)
    return by_total, jnp.einsum("tbh,tbg->hg", hiddens, by_total), by_cell, by_hidden


lstm_states.defvjp(_lstm_states_forward, _lstm_states_backward)


@partial(jax.jit, static_argnums=(0, 1))
def new_placer(placer: Placer, groups: int, key: Array) -> Params:
    """Return fresh parameters for this many groups."""
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
    encoded = _encoded(placer, params, groups, placements)
    return cast(Array, placer.apply(params, encoded, key, noise, method=Placer.draw))


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

    def loss(params: Params) -> Float[Array, ""]:
        encoded = _encoded(placer, params, groups, len(chosen) // len(groups))
        log_probs = placer.apply(params, encoded, key, noise, chosen, method=Placer.judge)
        return -(advantage * cast(Array, log_probs)).mean()

    return jax.grad(loss)(params)


def _encoded(
    placer: Placer, params: Params, groups: Float[Array, "M G X"], placements: int
) -> EncodedGroups:
    """Encode the groups, once for each placement."""
    encoded = cast(EncodedGroups, placer.apply(params, groups, method=Placer.encode))
    return jax.tree.map(lambda x: jnp.repeat(x, placements, axis=0), encoded)
