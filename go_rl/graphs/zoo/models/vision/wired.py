"""Networks whose wiring is the point: RandWire, FractalNet, HRNet, and BiFPN of EfficientDet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from go_rl.graphs.zoo.models.vision.networks import BasicBlock, batch_norm

NEIGHBOURS, REWIRED = 4, 0.75
"""WS(4, 0.75), the best generator of the RandWire paper."""


class SeparableConv(nn.Module):
    """ReLU, depthwise 3 × 3 and pointwise convolution, batch normalisation."""

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: Any) -> Any:
        channels, strides = x.shape[-1], (self.stride, self.stride)
        x = nn.relu(x)
        x = nn.Conv(channels, (3, 3), strides, use_bias=False, feature_group_count=channels)(x)
        return batch_norm(nn.Conv(self.features, (1, 1), use_bias=False)(x))


def small_world(nodes: int, seed: int) -> list[tuple[int, ...]]:
    """Return the producers of each node of a Watts-Strogatz graph, edges from lower to higher.

    Every node is joined to `NEIGHBOURS` / 2 nodes on either side of a ring; an edge's far end is
    drawn anew with probability `REWIRED` (Watts, Strogatz 1998).
    """
    rng = np.random.default_rng(seed)
    edges = {
        frozenset((v, (v + hop) % nodes))
        for hop in range(1, NEIGHBOURS // 2 + 1)
        for v in range(nodes)
    }
    for hop in range(1, NEIGHBOURS // 2 + 1):
        for v in range(nodes):
            kept = frozenset((v, (v + hop) % nodes))
            if rng.random() >= REWIRED or kept not in edges:
                continue
            free = [w for w in range(nodes) if w != v and frozenset((v, w)) not in edges]
            if free:
                edges.remove(kept)
                edges.add(frozenset((v, free[int(rng.integers(len(free)))])))
    pairs = sorted(tuple(sorted(edge)) for edge in edges)
    return [tuple(low for low, high in pairs if high == v) for v in range(nodes)]


class RandomStage(nn.Module):
    """A random graph of separable convolutions; nodes without a producer read the stage's input at
    stride 2, and the mean of nodes without a consumer is its output."""

    nodes: int
    features: int
    seed: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        producers = small_world(self.nodes, self.seed)
        results: list[Any] = []
        for sources in producers:
            if not sources:
                results.append(SeparableConv(self.features, 2)(x))
                continue
            weight = self.param(f"weight{len(results)}", nn.initializers.zeros, (len(sources),))
            gates = jnp.split(nn.sigmoid(weight), len(sources)) if len(sources) > 1 else [None]
            total: Any = None
            for gate, source in zip(gates, sources, strict=True):
                term = results[source] if gate is None else gate * results[source]
                total = term if total is None else total + term
            results.append(SeparableConv(self.features)(total))
        used = {source for sources in producers for source in sources}
        last = [y for v, y in enumerate(results) if v not in used]
        return sum(last[1:], last[0]) / len(last)


class RandWire(nn.Module):
    """Randomly wired network, regular regime (Xie, Kirillov, Girshick, He 2019, section 4)."""

    features: int = 78
    nodes: int = 32
    seed: int = 1
    stages: int = 4

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.features // 2, (3, 3), (2, 2), use_bias=False)(x)
        x = batch_norm(x)
        for stage in range(self.stages):
            nodes = self.nodes // 2 if stage == 0 else self.nodes
            x = RandomStage(nodes, self.features * 2**stage, 100 * self.seed + stage)(x)
        x = nn.relu(batch_norm(nn.Conv(1280, (1, 1), use_bias=False)(nn.relu(x))))
        return nn.Dense(1000)(x.mean((1, 2)))


class FractalNet(nn.Module):
    """FractalNet (Larsson, Maire, Shakhnarovich 2016): f(c + 1) is mean(f(c) ∘ f(c), conv)."""

    columns: int = 4
    features: Sequence[int] = (64, 128, 256, 512)

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for features in self.features:
            x = jnp.stack(self._fractal(x, self.columns, features)).mean(0)
            x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(1000)(x.mean((1, 2)))

    def _fractal(self, x: Any, columns: int, features: int) -> list[Any]:
        """Return the paths that meet at the end of a block."""
        conv = nn.Conv(features, (3, 3), use_bias=False)
        short = nn.relu(batch_norm(conv(x)))
        if columns == 1:
            return [short]
        half = self._fractal(x, columns - 1, features)
        joined = sum(half[1:], half[0]) / len(half)
        return [short, *self._fractal(joined, columns - 1, features)]


class HRNet(nn.Module):
    """High-resolution network (Wang et al. 2019): branches in parallel that keep exchanging."""

    width: int = 18
    modules: Sequence[int] = (1, 4, 3)
    """Exchanges with 2, 3 and 4 branches."""
    blocks: int = 4

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.relu(batch_norm(nn.Conv(64, (3, 3), (2, 2), use_bias=False)(x)))
        branches = [self._joined(x, self.width)]
        for stage, count in enumerate(self.modules, 1):
            branches.append(self._joined(branches[-1], self.width * 2**stage, 2))
            for _ in range(count):
                branches = self._exchange(branches)
        pooled = [y.mean((1, 2)) for y in branches]
        return nn.Dense(1000)(jnp.concatenate(pooled, axis=-1))

    def _joined(self, x: Any, features: int, stride: int = 1) -> Any:
        conv = nn.Conv(features, (3, 3), (stride, stride), use_bias=False)
        return nn.relu(batch_norm(conv(x)))

    def _exchange(self, branches: list[Any]) -> list[Any]:
        for i, x in enumerate(branches):
            for _ in range(self.blocks):
                x = BasicBlock(x.shape[-1])(x)
            branches[i] = x
        return [nn.relu(self._fused(branches, i)) for i in range(len(branches))]

    def _fused(self, branches: list[Any], target: int) -> Any:
        """Sum of all branches at the resolution of one."""
        total, shape = branches[target], branches[target].shape
        for i, x in enumerate(branches):
            if i > target:
                x = batch_norm(nn.Conv(shape[-1], (1, 1), use_bias=False)(x))
                total = total + jax.image.resize(x, (*shape[:3], shape[-1]), "nearest")
            for hop in range(i, target):
                last = hop == target - 1
                conv = nn.Conv(shape[-1] if last else x.shape[-1], (3, 3), (2, 2), use_bias=False)
                x = batch_norm(conv(x))
                x = x if last else nn.relu(x)
            total = total + x if i < target else total
        return total


class Fusion(nn.Module):
    """Fast normalised fusion of feature maps (EfficientDet, section 3.3)."""

    @nn.compact
    def __call__(self, *terms: Any) -> Any:
        weight = nn.relu(self.param("weight", nn.initializers.ones, (len(terms),)))
        pieces = jnp.split(weight / (weight.sum() + 1e-4), len(terms))
        total = pieces[0] * terms[0]
        for piece, term in zip(pieces[1:], terms[1:], strict=True):
            total = total + piece * term
        return total


class BiFPN(nn.Module):
    """Bidirectional feature pyramid over a plain backbone (EfficientDet, Tan, Pang, Le 2020)."""

    width: int = 64
    rounds: int = 3
    levels: int = 5

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (3, 3), (2, 2), use_bias=False)(x)
        pyramid = []
        for level in range(self.levels + 1):
            x = SeparableConv(self.width, 2)(x)
            x = SeparableConv(self.width)(x)
            if level:
                pyramid.append(x)
        for _ in range(self.rounds):
            pyramid = self._round(pyramid)
        heads = [(SeparableConv(self.width)(y), SeparableConv(self.width)(y)) for y in pyramid]
        return [(nn.Conv(9, (3, 3))(c), nn.Conv(36, (3, 3))(b)) for c, b in heads]

    def _round(self, pyramid: list[Any]) -> list[Any]:
        down = list(pyramid)
        for i in range(len(pyramid) - 2, -1, -1):
            larger = jax.image.resize(down[i + 1], down[i].shape, "nearest")
            down[i] = SeparableConv(self.width)(Fusion()(pyramid[i], larger))
        up = [down[0]]
        for i in range(1, len(pyramid)):
            smaller = nn.max_pool(up[-1], (3, 3), (2, 2), "SAME")
            middle = () if i == len(pyramid) - 1 else (down[i],)
            up.append(SeparableConv(self.width)(Fusion()(pyramid[i], *middle, smaller)))
        return up
