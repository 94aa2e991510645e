"""A few kernels of a small network, for tests."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.cost.learned.kernel_features import KernelFeatures, kernel_features
from go_rl.cost.learned.opcodes import vocabulary_of
from go_rl.kernels import Fuser, KernelSet, cut_kernels, join_kernels
from go_rl.readers.jax_reader import trace_jax


def _mlp(x, weights):
    for w in weights:
        x = jax.nn.gelu(x @ w) * 2.0
    return jax.nn.softmax(x)


@cache
def few_kernels() -> KernelSet:
    """Single operators of a multilayer perceptron, and its kernels when all is fused."""
    weights = [jnp.ones((8 * 2**i, 16 * 2**i)) for i in range(4)]
    graph = trace_jax(_mlp, jnp.ones((4, 8)), weights, weights=(1,))
    size = (1, graph.num_nodes)
    fused = Fuser(graph).leaders(np.ones(size, np.int64), np.zeros(size, np.int64))[0]
    return join_kernels([cut_kernels(graph, np.arange(size[1]))[0], cut_kernels(graph, fused)[0]])


@cache
def few_features() -> KernelFeatures:
    """Their features, in their own vocabulary."""
    kernels = few_kernels()
    return kernel_features(kernels, vocabulary_of(kernels.graph.op_type))
