"""Networks that make speech or read it."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.building import ZooModel, flax_entry, floats, integers, training_form
from go_rl.graphs.zoo.models.language.attention import PreNormBlock, RelativeAttention, sinusoids
from go_rl.graphs.zoo.models.language.recurrent import LSTMCell, split_steps


class WaveNet(nn.Module):
    """Gated dilated causal convolutions over [batch, samples, 1] (van den Oord et al. 2016).

    Each stack doubles the dilation from 1 in each of its ``layers // stacks`` layers.
    """

    stacks: int = 2
    layers: int = 18
    residual: int = 64
    skip: int = 256

    @nn.compact
    def __call__(self, samples: Any) -> Any:
        x = nn.Conv(self.residual, (1,))(samples)
        total: Any = None
        for layer in range(self.layers):
            y = self._gated(x, 2 ** (layer % (self.layers // self.stacks)))
            skip = nn.Conv(self.skip, (1,))(y)
            total = skip if total is None else total + skip
            if layer < self.layers - 1:
                x = x + nn.Conv(self.residual, (1,))(y)
        hidden = nn.relu(nn.Conv(self.skip, (1,))(nn.relu(total)))
        return nn.log_softmax(nn.Conv(256, (1,))(hidden))

    def _gated(self, x: Any, dilation: int) -> Any:
        padded = jnp.pad(x, ((0, 0), (dilation, 0), (0, 0)))
        both = nn.Conv(2 * self.residual, (2,), kernel_dilation=(dilation,), padding="VALID")(
            padded
        )
        content, gate = jnp.split(both, 2, axis=-1)
        return nn.tanh(content) * nn.sigmoid(gate)


class WaveRNN(nn.Module):
    """One GRU step a sample, fed with its own choice (Kalchbrenner et al. 2018, section 2).

    Maps conditioning [steps, batch, features] to the logits of the coarse and the fine byte of
    each sample, [steps, batch, 256] each.
    """

    width: int = 896
    unrolled: bool = False

    @nn.compact
    def __call__(self, condition: Any) -> Any:
        _, batch, features = condition.shape
        half = self.width // 2
        recurrent = self._matrix("recurrent", self.width, 3 * self.width)
        project = self._matrix("project", features + 2, 3 * self.width)
        heads = [
            (self._matrix(f"{name}_hidden", half, half), self._matrix(f"{name}_logits", half, 256))
            for name in ("coarse", "fine")
        ]

        def step(carry: Any, features: Any) -> Any:
            state, sample = carry
            read = jnp.concatenate([features, sample], axis=-1) @ project
            u, r, e = jnp.split(read, 3, axis=-1)
            hu, hr, he = jnp.split(state @ recurrent, 3, axis=-1)
            update, reset = nn.sigmoid(u + hu), nn.sigmoid(r + hr)
            state = update * state + (1 - update) * jnp.tanh(e + reset * he)
            halves = jnp.split(state, 2, axis=-1)
            logits = [nn.relu(y @ a) @ b for y, (a, b) in zip(halves, heads, strict=True)]
            chosen = [jnp.argmax(row, axis=-1, keepdims=True) for row in logits]
            sample = jnp.concatenate(chosen, axis=-1).astype(jnp.float32) / 127.5 - 1.0
            return (state, sample), logits

        start = (jnp.zeros((batch, self.width)), jnp.zeros((batch, 2)))
        return jax.lax.scan(step, start, condition, unroll=self.unrolled)[1]

    def _matrix(self, name: str, inputs: int, outputs: int) -> Any:
        return self.param(name, nn.initializers.lecun_normal(), (inputs, outputs))


class Conformer(nn.Module):
    """Convolution-augmented transformer encoder over [batch, frames, 80] (Gulati et al. 2020)."""

    layers: int = 16
    width: int = 144
    heads: int = 4
    kernel: int = 32

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = x[..., None]
        for _ in range(2):
            x = nn.relu(nn.Conv(self.width, (3, 3), (2, 2))(x))
        x = nn.Dense(self.width)(x.reshape(*x.shape[:2], -1))
        for _ in range(self.layers):
            x = x + 0.5 * self._feed_forward(x)
            y = nn.LayerNorm()(x)
            x = x + RelativeAttention(self.heads)(y, y[:, :0])
            x = x + self._convolution(x)
            x = nn.LayerNorm()(x + 0.5 * self._feed_forward(x))
        return x

    def _feed_forward(self, x: Any) -> Any:
        inner = nn.swish(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
        return nn.Dense(self.width)(inner)

    def _convolution(self, x: Any) -> Any:
        y = nn.glu(nn.Dense(2 * self.width)(nn.LayerNorm()(x)))
        y = nn.Conv(self.width, (self.kernel,), feature_group_count=self.width)(y)
        y = nn.swish(nn.BatchNorm(use_running_average=True)(y))
        return nn.Dense(self.width)(y)


class DeepSpeech2(nn.Module):
    """Two convolutions and five bidirectional LSTM layers over spectrograms (Amodei et al. 2015).

    Input [batch, frames, 161, 1]; the recurrent layers are written out over time.
    """

    layers: int = 5
    width: int = 800

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for kernel, strides in (((11, 41), (2, 2)), ((11, 21), (1, 2))):
            x = nn.Conv(32, kernel, strides, use_bias=False)(x)
            x = jnp.clip(nn.BatchNorm(use_running_average=True)(x), 0.0, 20.0)
        sequence = split_steps(x.reshape(*x.shape[:2], -1))
        for _ in range(self.layers):
            inputs = sequence[0].shape[-1]
            forth = LSTMCell(inputs, self.width).run(sequence)
            back = LSTMCell(inputs, self.width).run(sequence[::-1])[::-1]
            sequence = [x + y for x, y in zip(forth, back, strict=True)]
        return nn.log_softmax(nn.Dense(29)(jnp.stack(sequence, axis=1)))


class Wav2Vec2(nn.Module):
    """Convolutions over raw samples [batch, samples, 1], then a transformer.

    Source: Baevski et al. 2020; the blocks are those with norms first.
    """

    layers: int = 12
    width: int = 768
    heads: int = 12

    @nn.compact
    def __call__(self, x: Any) -> Any:
        widths = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
        for layer, (kernel, stride) in enumerate(widths):
            x = nn.Conv(512, (kernel,), (stride,), padding="VALID", use_bias=False)(x)
            if layer == 0:
                x = nn.GroupNorm(num_groups=512)(x)
            x = nn.gelu(x)
        x = nn.Dense(self.width)(nn.LayerNorm()(x))
        places = nn.Conv(self.width, (128,), feature_group_count=16)(x)
        x = nn.LayerNorm()(x + nn.gelu(places))
        for _ in range(self.layers):
            x = PreNormBlock(self.heads, 4 * self.width)(x)
        return x


class Whisper(nn.Module):
    """Encoder over spectrograms [batch, frames, 80], decoder over tokens (Radford et al. 2022)."""

    layers: int = 4
    width: int = 384
    heads: int = 6
    vocabulary: int = 51865

    @nn.compact
    def __call__(self, spectrogram: Any, tokens: Any) -> Any:
        x = spectrogram
        for stride in (1, 2):
            x = nn.gelu(nn.Conv(self.width, (3,), (stride,))(x))
        x = x + sinusoids(jnp.arange(x.shape[1]), self.width)
        for _ in range(self.layers):
            x = PreNormBlock(self.heads, 4 * self.width)(x)
        memory = nn.LayerNorm()(x)
        table = nn.Embed(self.vocabulary, self.width)
        places = self.param("positions", nn.initializers.zeros, (448, self.width))
        y = table(tokens) + places[: tokens.shape[1]]
        for _ in range(self.layers):
            y = PreNormBlock(self.heads, 4 * self.width, causal=True)(y, memory)
        return table.attend(nn.LayerNorm()(y))


def _wavenet(network: WaveNet, batch: int, samples: int) -> ZooModel:
    name = f"wavenet-{network.stacks}x{network.layers}"
    return flax_entry(name, "wavenet", network, floats(batch, samples, 1))


def _speech(name: str, network: nn.Module, *inputs: Any) -> ZooModel:
    return flax_entry(name, "speech", network, *inputs)


ENTRIES: tuple[ZooModel, ...] = (
    _wavenet(WaveNet(1, 10, residual=32, skip=128), 1, 4096),
    _wavenet(WaveNet(2, 18), 2, 8192),
    _wavenet(WaveNet(3, 30, residual=128), 1, 8192),
    _wavenet(WaveNet(4, 36), 2, 8192),
    flax_entry("wavernn-224", "wavernn", WaveRNN(224), floats(96, 8, 80)),
    flax_entry("wavernn-896", "wavernn", WaveRNN(896), floats(40, 16, 80)),
    _speech("conformer-s", Conformer(), floats(4, 512, 80)),
    _speech("conformer-l", Conformer(17, 512, 8), floats(1, 1024, 80)),
    _speech("deepspeech2", DeepSpeech2(), floats(8, 60, 161, 1)),
    _speech("wav2vec2-base", Wav2Vec2(), floats(1, 48000, 1)),
    _speech("whisper-tiny", Whisper(), floats(1, 2000, 80), integers(1, 64)),
    _speech("whisper-base", Whisper(6, 512, 8), floats(1, 1500, 80), integers(1, 32)),
    training_form(_wavenet(WaveNet(2, 18), 2, 8192)),
    training_form(_wavenet(WaveNet(4, 36), 2, 8192)),
)
