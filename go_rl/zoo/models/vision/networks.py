"""Convolutional and patch networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp


class MLP(nn.Module):
    """Fully connected layers with ReLU."""

    widths: Sequence[int] = (512, 512, 10)

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width in self.widths[:-1]:
            x = nn.relu(nn.Dense(width)(x))
        return nn.log_softmax(nn.Dense(self.widths[-1])(x))


class LeNet(nn.Module):
    """LeCun et al. 1998."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for features in (6, 16):
            x = nn.tanh(nn.Conv(features, (5, 5), padding="VALID")(x))
            x = nn.avg_pool(x, (2, 2), (2, 2))
        return MLP((120, 84, 10))(x.reshape(x.shape[0], -1))


class VGG(nn.Module):
    """VGG-11: plain 3 × 3 convolutions and max pooling."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for stage in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
            for features in stage:
                x = nn.relu(nn.Conv(features, (3, 3))(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return MLP((4096, 4096, 1000))(x.reshape(x.shape[0], -1))


def batch_norm(x: Any, train: bool = False) -> Any:
    """Normalise over the batch (training) or by stored statistics."""
    if not train:
        return nn.BatchNorm(use_running_average=True)(x)
    axes = tuple(range(x.ndim - 1))
    mean, var = x.mean(axes), x.var(axes)
    return (x - mean) / jnp.sqrt(var + 1e-5)


class Bottleneck(nn.Module):
    """Residual block of ResNet-50."""

    features: int
    stride: int = 1
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.relu(batch_norm(nn.Conv(self.features, (1, 1), use_bias=False)(x), self.train))
        strides = (self.stride, self.stride)
        y = nn.Conv(self.features, (3, 3), strides, use_bias=False)(y)
        y = nn.relu(batch_norm(y, self.train))
        y = batch_norm(nn.Conv(4 * self.features, (1, 1), use_bias=False)(y), self.train)
        if x.shape != y.shape:
            x = nn.Conv(4 * self.features, (1, 1), strides, use_bias=False)(x)
            x = batch_norm(x, self.train)
        return nn.relu(x + y)


class BasicBlock(nn.Module):
    """Residual block of ResNet-18."""

    features: int
    stride: int = 1
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        strides = (self.stride, self.stride)
        y = nn.Conv(self.features, (3, 3), strides, use_bias=False)(x)
        y = nn.relu(batch_norm(y, self.train))
        y = batch_norm(nn.Conv(self.features, (3, 3), use_bias=False)(y), self.train)
        if x.shape != y.shape:
            x = nn.Conv(self.features, (1, 1), strides, use_bias=False)(x)
            x = batch_norm(x, self.train)
        return nn.relu(x + y)


class ResNet(nn.Module):
    """He et al. 2015; stages of `block` at doubling widths."""

    stages: Sequence[int] = (2, 2, 2, 2)
    block: Any = BasicBlock
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(64, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], use_bias=False)(x)
        x = nn.max_pool(nn.relu(batch_norm(x, self.train)), (3, 3), (2, 2), padding="SAME")
        for i, blocks in enumerate(self.stages):
            for j in range(blocks):
                x = self.block(64 * 2**i, 2 if i > 0 and j == 0 else 1, self.train)(x)
        return nn.Dense(1000)(x.mean((1, 2)))


class MobileNet(nn.Module):
    """Inverted residuals with depthwise convolutions and squeeze-and-excite."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.hard_swish(nn.Conv(16, (3, 3), (2, 2))(x))
        for features, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (112, 1)):
            wide = 4 * x.shape[-1]
            y = nn.relu6(batch_norm(nn.Conv(wide, (1, 1), use_bias=False)(x)))
            strides = (stride, stride)
            y = nn.Conv(wide, (5, 5), strides, feature_group_count=wide, use_bias=False)(y)
            y = nn.hard_swish(batch_norm(y))
            gate = nn.relu(nn.Dense(wide // 4)(y.mean((1, 2))))
            y = y * nn.sigmoid(nn.Dense(wide)(gate))[:, None, None, :]
            y = batch_norm(nn.Conv(features, (1, 1), use_bias=False)(y))
            x = x + y if x.shape == y.shape else y
        return nn.Dense(1000)(x.mean((1, 2)))


class Inception(nn.Module):
    """Blocks of parallel 1 × 1, 3 × 3, 5 × 5 and pooled branches."""

    blocks: int = 3

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(self.blocks):
            branches = [
                nn.relu(nn.Conv(64, (1, 1))(x)),
                nn.relu(nn.Conv(128, (3, 3))(nn.relu(nn.Conv(96, (1, 1))(x)))),
                nn.relu(nn.Conv(32, (5, 5))(nn.relu(nn.Conv(16, (1, 1))(x)))),
                nn.Conv(32, (1, 1))(nn.max_pool(x, (3, 3), padding="SAME")),
            ]
            x = jnp.concatenate(branches, axis=-1)
        return nn.Dense(1000)(x.mean((1, 2)))


class DenseNet(nn.Module):
    """Every layer reads all earlier ones."""

    growth: int = 32

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(64, (7, 7), (2, 2))(x)
        for layers in (6, 6):
            for _ in range(layers):
                y = nn.Conv(4 * self.growth, (1, 1))(nn.relu(batch_norm(x)))
                y = nn.Conv(self.growth, (3, 3))(nn.relu(batch_norm(y)))
                x = jnp.concatenate([x, y], axis=-1)
            x = nn.avg_pool(nn.Conv(x.shape[-1] // 2, (1, 1))(x), (2, 2), (2, 2))
        return nn.Dense(1000)(x.mean((1, 2)))


class UNet(nn.Module):
    """Encoder and decoder with skip connections; group normalisation, transposed convolutions."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        skips = []
        for features in (32, 64, 128):
            x = nn.swish(nn.GroupNorm(8)(nn.Conv(features, (3, 3))(x)))
            skips.append(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.swish(nn.Conv(256, (3, 3))(x))
        for skip in reversed(skips):
            x = nn.ConvTranspose(skip.shape[-1], (2, 2), (2, 2))(x)
            x = jnp.concatenate([x, skip], axis=-1)
            x = nn.swish(nn.Conv(skip.shape[-1], (3, 3))(x))
        return nn.Conv(2, (1, 1))(x)


class DCGAN(nn.Module):
    """Generator of transposed convolutions (Radford et al. 2015)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Dense(4 * 4 * 256)(x)).reshape(-1, 4, 4, 256)
        for features in (128, 64, 32):
            x = nn.ConvTranspose(features, (5, 5), (2, 2), use_bias=False)(x)
            x = nn.relu(batch_norm(x))
        return nn.tanh(nn.ConvTranspose(3, (5, 5), (2, 2))(x))


class EncoderBlock(nn.Module):
    """Pre-norm transformer block."""

    heads: int
    causal: bool = False
    exact_gelu: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2], jnp.int32)) if self.causal else None
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y, mask=mask)
        y = nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))
        y = nn.gelu(y, approximate=not self.exact_gelu)
        return x + nn.Dense(x.shape[-1])(y)


class ViT(nn.Module):
    """Vision transformer (Dosovitskiy et al. 2020), small."""

    layers: int = 6
    width: int = 384

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (16, 16), (16, 16))(x)
        x = x.reshape(x.shape[0], -1, self.width)
        token = self.param("token", nn.initializers.zeros, (1, 1, self.width))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, self.width)), x], axis=1)
        x = x + self.param("positions", nn.initializers.zeros, (1, x.shape[1], self.width))
        for _ in range(self.layers):
            x = EncoderBlock(6, exact_gelu=True)(x)
        return nn.Dense(1000)(nn.LayerNorm()(x)[:, 0])


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021)."""

    layers: int = 4

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(256, (16, 16), (16, 16))(x)
        x = x.reshape(x.shape[0], -1, 256)
        for _ in range(self.layers):
            y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
            y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(128)(y)))
            x = x + jnp.swapaxes(y, 1, 2)
            x = x + nn.Dense(256)(nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x))))
        return nn.Dense(1000)(x.mean(1))
