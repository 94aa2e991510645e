"""AmoebaNet-D (Real et al. 2018, "Regularized Evolution", figure 7; its cells as GPipe runs them).

Convolutions are pre-activation (ReLU, convolution, batch normalisation); a cell reads the two
states before it and concatenates some of its own.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax.numpy as jnp

NORMAL = (
    (1, "conv_1x1"), (1, "max_3x3"), (1, "none"), (0, "conv_1x7_7x1"), (0, "conv_1x1"),
    (0, "conv_1x7_7x1"), (2, "max_3x3"), (2, "none"), (1, "avg_3x3"), (5, "conv_1x1"),
)  # fmt: skip
"""(state it reads, operation), two to a sum; states 0 and 1 are the cell's inputs."""
NORMAL_CONCATENATED = (0, 3, 4, 6)
REDUCTION = (
    (0, "max_2x2"), (0, "max_3x3"), (2, "none"), (1, "conv_3x3"), (2, "conv_1x7_7x1"),
    (2, "max_3x3"), (3, "none"), (1, "max_2x2"), (2, "avg_3x3"), (3, "conv_1x1"),
)  # fmt: skip
REDUCTION_CONCATENATED = (4, 5, 6)
WINDOWS = {"conv_1x1": (), "conv_3x3": ((3, 3),), "conv_1x7_7x1": ((1, 7), (7, 1))}
"""Kernels between the two 1 × 1 convolutions of a bottleneck."""


class ConvNorm(nn.Module):
    """ReLU, convolution, batch normalisation."""

    features: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        strides = (self.stride, self.stride)
        x = nn.Conv(self.features, self.kernel, strides, use_bias=False)(nn.relu(x))
        return nn.BatchNorm(use_running_average=not self.train)(x)


class FactorizedReduction(nn.Module):
    """Halve the resolution by two shifted, strided 1 × 1 convolutions side by side."""

    features: int
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(x)
        shifted = jnp.pad(x[:, 1:, 1:, :], ((0, 0), (0, 1), (0, 1), (0, 0)))
        halves = [
            nn.Conv(self.features // 2, (1, 1), (2, 2), use_bias=False)(y) for y in (x, shifted)
        ]
        joined = jnp.concatenate(halves, axis=-1)
        return nn.BatchNorm(use_running_average=not self.train)(joined)


class Operation(nn.Module):
    """One edge of a cell."""

    kind: str
    features: int
    stride: int
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        if self.kind == "none":
            reduction = FactorizedReduction(self.features, self.train)
            return reduction(x) if self.stride == 2 else x
        strides = (self.stride, self.stride)
        if self.kind == "avg_3x3":
            return nn.avg_pool(x, (3, 3), strides, "SAME", count_include_pad=False)
        if self.kind in ("max_3x3", "max_2x2"):
            window = (3, 3) if self.kind == "max_3x3" else (2, 2)
            return nn.max_pool(x, window, strides, "SAME")
        return self._convolve(x)

    def _convolve(self, x: Any) -> Any:
        windows = WINDOWS[self.kind]
        if not windows:
            return ConvNorm(self.features, (1, 1), self.stride, self.train)(x)
        x = ConvNorm(self.features // 4, train=self.train)(x)
        for i, window in enumerate(windows):
            stride = self.stride if i == 0 else 1
            x = ConvNorm(self.features // 4, window, stride, self.train)(x)
        return ConvNorm(self.features, train=self.train)(x)


class Cell(nn.Module):
    """One cell; returns its output and the state that the next cell reads beside it."""

    features: int
    reduction: bool
    after_reduction: bool
    train: bool = False

    @nn.compact
    def __call__(self, near: Any, far: Any) -> tuple[Any, Any]:
        states = [ConvNorm(self.features, train=self.train)(near)]
        if self.after_reduction:
            far = FactorizedReduction(self.features, self.train)(far)
        elif far.shape[-1] != self.features:
            far = ConvNorm(self.features, train=self.train)(far)
        states.append(far)
        edges = REDUCTION if self.reduction else NORMAL
        for first, second in zip(edges[::2], edges[1::2], strict=True):
            states.append(self._edge(states, *first) + self._edge(states, *second))
        joined = REDUCTION_CONCATENATED if self.reduction else NORMAL_CONCATENATED
        return jnp.concatenate([states[i] for i in joined], axis=-1), near

    def _edge(self, states: list[Any], state: int, kind: str) -> Any:
        stride = 2 if self.reduction and state < 2 else 1
        return Operation(kind, self.features, stride, self.train)(states[state])


class AmoebaNetD(nn.Module):
    """A stem, three runs of normal cells with reductions between them, a classifier."""

    layers: int = 18
    """Normal cells in all, a multiple of 3 (N = layers / 3 in the paper)."""
    filters: int = 256
    """Four times the channels of the stem (F in the paper)."""
    train: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        features = self.filters // 4
        x = nn.Conv(features, (3, 3), (2, 2), use_bias=False)(x)
        near = far = nn.BatchNorm(use_running_average=not self.train)(x)
        run = [False] * (self.layers // 3)
        after_reduction = False
        for reduction in (True, True, *run, True, *run, True, *run):
            features *= 2 if reduction else 1
            near, far = Cell(features, reduction, after_reduction, self.train)(near, far)
            after_reduction = reduction
        return nn.Dense(1000)(near.mean((1, 2)))
