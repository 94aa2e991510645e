"""The four networks whose operators are recorded: graphs, and their tunable operators.

ResNet-18 is the zoo's; the others are DynaTune's, small enough that a random candidate of one
operator takes less than about 0.3 s on one core. One image or sentence at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from go_rl.core import OpGraph
from go_rl.costs.programs.workloads import TensorTask, task_uses
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.graphs.zoo.models.building import flax_model, floats
from go_rl.graphs.zoo.models.language.attention import Attention, FeedForward

TUNABLE = ("conv2d", "depthwise_conv2d", "matmul")
LEAST_FLOPS = 1e6
"""Operators with fewer are launches rather than programs."""
FIRES = (
    (16, True), (16, False), (32, True), (32, False), (48, True), (48, False), (64, False),
    (64, False),
)  # fmt: skip
"""Channels of a squeeze layer of SqueezeNet, and whether the image is pooled before it."""


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1 (Iandola et al., 2016)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Conv(64, (3, 3), (2, 2), padding="VALID")(x))
        for squeeze, pooled in FIRES:
            x = nn.max_pool(x, (3, 3), (2, 2)) if pooled else x
            x = nn.relu(nn.Conv(squeeze, (1, 1))(x))
            wide = (nn.relu(nn.Conv(4 * squeeze, (side, side))(x)) for side in (1, 3))
            x = jnp.concatenate(list(wide), axis=-1)
        return nn.relu(nn.Conv(1000, (1, 1))(x)).mean((1, 2))


class Vgg16(nn.Module):
    """VGG-16 (Simonyan and Zisserman, 2015), convolutions and one classifier."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(count):
                x = nn.relu(nn.Conv(width, (3, 3))(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1)
        for width in (4096, 4096, 1000):
            x = nn.Dense(width)(x)
        return x


class TransformerEncoder(nn.Module):
    """The encoder of the base Transformer (Vaswani et al., 2017) on embedded tokens."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(6):
            x = nn.LayerNorm()(x + Attention(heads=8, size=64)(x))
            x = nn.LayerNorm()(x + FeedForward(hidden=2048)(x))
        return nn.Dense(1000)(x)


def _traced(name: str, module: nn.Module, *shape: int) -> OpGraph:
    function, arguments, weights = flax_model(module, floats(*shape))
    return trace_jax(function, *arguments, name=name, weights=weights)


NETWORKS: Mapping[str, Callable[[], OpGraph]] = MappingProxyType({
    "resnet18": lambda: zoo_graph("resnet18"),
    "squeezenet": lambda: _traced("squeezenet", SqueezeNet(), 1, 224, 224, 3),
    "vgg16-64px": lambda: _traced("vgg16-64px", Vgg16(), 1, 64, 64, 3),
    "transformer-encoder": lambda: _traced(
        "transformer-encoder", TransformerEncoder(), 1, 128, 512
    ),
})  # fmt: skip


def tunable_operators(network: str) -> dict[TensorTask, int]:
    """Return the tunable operators of one of `NETWORKS` or of the zoo, each with how often it is
    used."""
    uses = task_uses(NETWORKS[network]() if network in NETWORKS else zoo_graph(network))
    return {
        task: count for task, count in uses.items()
        if task.op in TUNABLE and task.flops >= LEAST_FLOPS
    }  # fmt: skip
