"""ResNet, and the batch normalisation that several vision networks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp


def batch_norm(x: Any, train: bool = False) -> Any:
    """Normalise over the batch (training) or by stored statistics."""
    if not train:
        return nn.BatchNorm(use_running_average=True)(x)
    axes = tuple(range(x.ndim - 1))
    mean, var = x.mean(axes), x.var(axes)
    return (x - mean) / jnp.sqrt(var + 1e-5)


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
