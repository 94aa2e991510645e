"""Recurrent language and translation networks, written out over time.

Every step and layer is its own handful of operators, as in a static graph: a policy may cut the
grid of steps and layers along either axis. The logits are made step by step too, and returned so:
those of a whole sequence at once would not fit a chip.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax.numpy as jnp

LstmState = tuple[Any, Any]
"""Cell and output of an LSTM, each [batch, width]."""


class LSTMCell(nn.Module):
    """One matrix product for all four gates (Hochreiter and Schmidhuber 1997; Zaremba 2014)."""

    inputs: int
    width: int

    def setup(self) -> None:
        shape = (self.inputs + self.width, 4 * self.width)
        self.kernel = self.param("kernel", nn.initializers.lecun_normal(), shape)
        self.bias = self.param("bias", nn.initializers.zeros, (4 * self.width,))

    def __call__(self, state: LstmState, x: Any) -> LstmState:
        return lstm_step(self.kernel, self.bias, state, x)

    def run(self, sequence: list[Any]) -> list[Any]:
        """Return the outputs over a whole sequence, from a zero state."""
        state, outputs = self.start(sequence[0].shape[0]), []
        for x in sequence:
            state = lstm_step(self.kernel, self.bias, state, x)
            outputs.append(state[1])
        return outputs

    def start(self, batch: int) -> LstmState:
        """Return the zero state."""
        return jnp.zeros((batch, self.width)), jnp.zeros((batch, self.width))


def lstm_step(kernel: Any, bias: Any, state: LstmState, x: Any) -> LstmState:
    """Return the next state."""
    cell, output = state
    gates = jnp.concatenate([x, output], axis=-1) @ kernel + bias
    admit, forget, new, emit = jnp.split(gates, 4, axis=-1)
    cell = nn.sigmoid(forget) * cell + nn.sigmoid(admit) * jnp.tanh(new)
    return cell, nn.sigmoid(emit) * jnp.tanh(cell)


class RNNLM(nn.Module):
    """Stacked LSTM language model (Zaremba et al. 2014): tokens [batch, steps]."""

    layers: int = 2
    width: int = 1500
    vocabulary: int = 10000

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        sequence = split_steps(nn.Embed(self.vocabulary, self.width)(tokens))
        for _ in range(self.layers):
            sequence = LSTMCell(self.width, self.width).run(sequence)
        return log_probabilities(nn.Dense(self.vocabulary), sequence)


class Seq2Seq(nn.Module):
    """Encoder and decoder LSTM joined by the last state only (Sutskever et al. 2014)."""

    layers: int = 4
    width: int = 1000
    source_vocabulary: int = 160000
    target_vocabulary: int = 80000

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        inputs = split_steps(nn.Embed(self.source_vocabulary, self.width)(source[:, ::-1]))
        outputs = split_steps(nn.Embed(self.target_vocabulary, self.width)(target))
        for _ in range(self.layers):
            encoder, decoder = (LSTMCell(self.width, self.width) for _ in range(2))
            state = encoder.start(source.shape[0])
            for i, x in enumerate(inputs):
                state = encoder(state, x)
                inputs[i] = state[1]
            for i, x in enumerate(outputs):
                state = decoder(state, x)
                outputs[i] = state[1]
        return log_probabilities(nn.Dense(self.target_vocabulary), outputs)


class GridLSTM(nn.Module):
    """Two-dimensional grid LSTM for translation (Kalchbrenner, Danihelka, Graves 2015, section 3).

    Every cell of the grid source × target holds two LSTMs: one passes on along the source, one
    along the target, and both read both outputs. Each layer is a grid of its own; the cells of the
    last source word give the target's words.
    """

    layers: int = 2
    width: int = 450
    vocabulary: int = 8000

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        across = split_steps(nn.Embed(self.vocabulary, self.width)(source))
        down = split_steps(nn.Embed(self.vocabulary, self.width)(target))
        for _ in range(self.layers):
            across, down = self._grid(across, down)
        return log_probabilities(nn.Dense(self.vocabulary), down)

    def _grid(self, across: list[Any], down: list[Any]) -> tuple[list[Any], list[Any]]:
        along, below = (LSTMCell(2 * self.width, self.width) for _ in range(2))
        zero = jnp.zeros_like(across[0])
        columns: list[LstmState] = [(zero, x) for x in across]
        rows: list[LstmState] = [(zero, x) for x in down]
        for i in range(len(rows)):
            for j in range(len(columns)):
                both = jnp.concatenate([rows[i][1], columns[j][1]], axis=-1)
                rows[i], columns[j] = along(rows[i], both), below(columns[j], both)
        return [state[1] for state in columns], [state[1] for state in rows]


class GNMT(nn.Module):
    """Google's neural machine translation (Wu et al. 2016, section 3).

    A bidirectional bottom layer and ``layers − 1`` layers above it encode; ``layers`` layers
    decode, all reading the attention's context; residuals start at the third layer of either side.
    """

    layers: int = 8
    width: int = 1024
    vocabulary: int = 16000
    """Word pieces; the paper tries 8, 16 and 32 thousand."""

    @nn.compact
    def __call__(self, source: Any, target: Any) -> Any:
        memory = self._encoded(split_steps(nn.Embed(self.vocabulary, self.width)(source)))
        outputs = self._decoded(split_steps(nn.Embed(self.vocabulary, self.width)(target)), memory)
        return log_probabilities(nn.Dense(self.vocabulary), outputs)

    def _encoded(self, sequence: list[Any]) -> Any:
        forth = LSTMCell(self.width, self.width).run(sequence)
        back = LSTMCell(self.width, self.width).run(sequence[::-1])[::-1]
        sequence = [jnp.concatenate(pair, axis=-1) for pair in zip(forth, back, strict=True)]
        for layer in range(1, self.layers):
            inputs = 2 * self.width if layer == 1 else self.width
            outputs = LSTMCell(inputs, self.width).run(sequence)
            if layer > 1:
                outputs = [x + y for x, y in zip(sequence, outputs, strict=True)]
            sequence = outputs
        return jnp.stack(sequence, axis=1)

    def _decoded(self, sequence: list[Any], memory: Any) -> list[Any]:
        """Bottom layer and attention first, step by step; no other layer waits for the context."""
        sequence, contexts = self._bottom(sequence, memory)
        for layer in range(1, self.layers):
            pairs = zip(sequence, contexts, strict=True)
            cell = LSTMCell(2 * self.width, self.width)
            outputs = cell.run([jnp.concatenate(pair, axis=-1) for pair in pairs])
            if layer > 1:
                outputs = [x + y for x, y in zip(sequence, outputs, strict=True)]
            sequence = outputs
        return sequence

    def _bottom(self, sequence: list[Any], memory: Any) -> tuple[list[Any], list[Any]]:
        """Return the bottom decoder layer's outputs and the attention's contexts."""
        cell = LSTMCell(2 * self.width, self.width)
        keys = nn.Dense(self.width, use_bias=False)(memory)
        project = nn.Dense(self.width, use_bias=False)
        score = self.param("score", nn.initializers.lecun_normal(), (self.width, 1))
        state, context = cell.start(memory.shape[0]), jnp.zeros((memory.shape[0], self.width))
        outputs, contexts = [], []
        for x in sequence:
            state = cell(state, jnp.concatenate([x, context], axis=-1))
            weight = nn.softmax(jnp.tanh(keys + project(state[1])[:, None]) @ score, axis=1)
            context = (weight * memory).sum(1)
            outputs.append(state[1])
            contexts.append(context)
        return outputs, contexts


def log_probabilities(head: nn.Dense, sequence: list[Any]) -> list[Any]:
    """Return [batch, vocabulary] for each step."""
    return [nn.log_softmax(head(x)) for x in sequence]


def split_steps(sequence: Any) -> list[Any]:
    """Split [batch, steps, width] into ``steps`` arrays [batch, width]."""
    return [x[:, 0] for x in jnp.split(sequence, sequence.shape[1], axis=1)]
