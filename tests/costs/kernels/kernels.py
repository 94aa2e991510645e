"""A few kernels of a small network, for tests."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from parameters import random_variables

from go_rl.costs.kernels.batch import batch_of
from go_rl.costs.kernels.ensemble import TrainedNetwork
from go_rl.costs.kernels.features import KernelFeatures, kernel_features
from go_rl.costs.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.graphs.cutting.opcode_names import vocabulary_of
from go_rl.graphs.readers.jax.reader import trace_jax


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


@cache
def weights() -> KernelPredictor:
    """Two untrained networks."""
    features = few_features()
    vocabulary = vocabulary_of(few_kernels().graph.op_type)
    config = KernelNetworkConfig(width=8, layers=1, head=8, opcode_width=4, opcodes=len(vocabulary))
    batch = jax.tree.map(jnp.asarray, batch_of(features, np.array([0]), 1, 8))
    network = KernelNetwork(config)
    members = tuple(
        TrainedNetwork(network, random_variables(network.init, batch, seed=i)) for i in range(2)
    )
    low, high = features.whole.min(axis=0), features.whole.max(axis=0)
    return KernelPredictor(members, vocabulary, "cpu-1", "test", {"data": "none"}, low, high)
