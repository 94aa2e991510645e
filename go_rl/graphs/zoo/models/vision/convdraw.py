"""ConvDRAW (Gregor et al. 2016, "Towards Conceptual Compression", section 2.2).

A recurrent variational autoencoder with convolutional LSTMs: every step encodes what the canvas
still misses as a latent, and adds to the canvas. The encoder reads canvas and error, which hold
the same as image and error since the canvas is linear: no step but the first reads the image.
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
    """Returns the drawn canvas and the nats that the latents of all steps cost, [batch].

    The latents are the posterior's means, as when an image is compressed.
    """

    steps: int = 16

    features: int = 160
    latents: int = 12

    @nn.compact
    def __call__(self, image: Any) -> tuple[Any, Any]:
        batch, height, width, channels = image.shape
        hidden = jnp.zeros((batch, height // 2, width // 2, self.features))
        encoder_state = decoder_state = (hidden, hidden)
        encoder, decoder = ConvLSTM(self.features), ConvLSTM(self.features)
        posterior, prior = Latent(self.latents), Latent(self.latents)
        write = nn.ConvTranspose(channels, (5, 5), (2, 2))
        start = self.param("canvas", nn.initializers.zeros, (channels,))
        canvas, error = jnp.zeros_like(image) + start, image - start
        cost = jnp.zeros(batch)
        for _ in range(self.steps):
            encoder_state = encoder(encoder_state, canvas, error, decoder_state[1])
            mean, spread = posterior(encoder_state[1])
            expected, allowed = prior(decoder_state[1])
            cost = cost + _divergence(mean, spread, expected, allowed)
            decoder_state = decoder(decoder_state, mean)
            stroke = write(decoder_state[1])
            canvas, error = canvas + stroke, error - stroke
        return nn.sigmoid(canvas), cost


def _divergence(mean: Any, spread: Any, expected: Any, allowed: Any) -> Any:
    """Return the Kullback-Leibler divergence of two Gaussians given by log deviations, [batch]."""
    scaled = (jnp.exp(2 * spread) + jnp.square(mean - expected)) * jnp.exp(-2 * allowed)
    return (allowed - spread + 0.5 * scaled - 0.5).sum((1, 2, 3))
