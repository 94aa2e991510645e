"""ConvDRAW (Gregor et al. 2016, "Towards Conceptual Compression", section 2.2).

A recurrent variational autoencoder with convolutional LSTMs: every step encodes what the canvas
still misses, draws a latent, and adds to the canvas. The noise of the latents is an argument.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax.numpy as jnp


class ConvLSTM(nn.Module):
    """Convolutional LSTM cell over the sum of convolutions of its inputs."""

    features: int

    @nn.compact
    def __call__(self, state: tuple[Any, Any], *inputs: Any) -> tuple[Any, Any]:
        cell, hidden = state
        gates = nn.Conv(4 * self.features, (3, 3))(hidden)
        for x in inputs:
            stride = (x.shape[1] // hidden.shape[1],) * 2
            gates = gates + nn.Conv(4 * self.features, (5, 5), stride, use_bias=False)(x)
        write, keep, out, new = jnp.split(gates, 4, axis=-1)
        cell = nn.sigmoid(keep + 1.0) * cell + nn.sigmoid(write) * jnp.tanh(new)
        return cell, nn.sigmoid(out) * jnp.tanh(cell)


class Latent(nn.Module):
    """Mean and log deviation of a diagonal Gaussian from a hidden state."""

    features: int

    @nn.compact
    def __call__(self, hidden: Any) -> tuple[Any, Any]:
        mean, log_deviation = jnp.split(nn.Conv(2 * self.features, (3, 3))(hidden), 2, axis=-1)
        return mean, log_deviation


class ConvDRAW(nn.Module):
    """Returns the drawn canvas and the nats that each step's latent costs, [steps, batch]."""

    steps: int = 16
    features: int = 160
    latents: int = 12

    @nn.compact
    def __call__(self, image: Any, noise: Any) -> tuple[Any, Any]:
        batch, height, width, _ = image.shape
        hidden = jnp.zeros((batch, height // 2, width // 2, self.features))
        encoder_state = decoder_state = (hidden, hidden)
        encoder, decoder = ConvLSTM(self.features), ConvLSTM(self.features)
        posterior, prior = Latent(self.latents), Latent(self.latents)
        write = nn.ConvTranspose(image.shape[-1], (5, 5), (2, 2))
        canvas = jnp.zeros_like(image) + self.param("canvas", nn.initializers.zeros, (3,))
        costs = []
        for step in range(self.steps):
            error = image - nn.sigmoid(canvas)
            inputs = (image, error, decoder_state[1])
            encoder_state = encoder(encoder_state, *inputs)
            mean, spread = posterior(encoder_state[1])
            expected, allowed = prior(decoder_state[1])
            latent = mean + jnp.exp(spread) * noise[step]
            costs.append(_divergence(mean, spread, expected, allowed))
            decoder_state = decoder(decoder_state, latent)
            canvas = canvas + write(decoder_state[1])
        return nn.sigmoid(canvas), jnp.stack(costs)


def _divergence(mean: Any, spread: Any, expected: Any, allowed: Any) -> Any:
    """Return the Kullback-Leibler divergence of two Gaussians given by log deviations, [batch]."""
    scaled = (jnp.exp(2 * spread) + jnp.square(mean - expected)) * jnp.exp(-2 * allowed)
    return (allowed - spread + 0.5 * scaled - 0.5).sum((1, 2, 3))
