"""The networks see kernels, not padding; losses by hand; what is simple is learned."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from costs.kernels.kernels import few_features
from parameters import random_variables
from rounding import assert_rounded_alike

from go_rl.core import TrainingError
from go_rl.costs.kernels.batch import KernelBatch, batch_of
from go_rl.costs.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.costs.learning.losses import absolute_loss

TINY = KernelNetworkConfig(width=8, layers=2, head=8, opcode_width=4, opcodes=20)


def batch(which, size: int, length: int) -> KernelBatch:
    return jax.tree.map(jnp.asarray, batch_of(few_features(), which, size, length))


@pytest.mark.parametrize(
    ("encoder", "reduction"),
    [
        ("graphsage", "column"), ("attention", "lstm"),
    ],
)  # fmt: skip
def test_neither_padding_nor_the_rest_of_a_batch_is_seen(encoder, reduction):
    features = few_features()
    network = KernelNetwork(replace(TINY, encoder=encoder, reduction=reduction))
    short = np.flatnonzero(np.diff(features.first_node) <= 8)[:5]
    alone = batch(short, 5, 8)
    apply = jax.jit(network.apply)
    params = random_variables(network.init, alone)
    wide = np.asarray(apply(params, batch(short[::-1].copy(), 9, 24)))
    assert_rounded_alike(wide[:5][::-1], apply(params, alone))


def test_edges_are_seen():
    features = few_features()
    network = KernelNetwork(TINY)
    which = np.flatnonzero((np.diff(features.first_edge) > 1) & (np.diff(features.first_node) <= 8))
    one = batch(which[:1], 1, 8)
    apply = jax.jit(network.apply)
    params = random_variables(network.init, one)
    apart = one._replace(adjacent=jnp.zeros_like(one.adjacent))
    assert not np.allclose(apply(params, one), apply(params, apart), atol=1e-4)


def test_the_absolute_loss_by_hand():
    """Errors 0.04, within Huber's 0.1, and 2, beyond it; deviations 1; the third row is padding."""
    predicted = jnp.array([[0.04, 0.0], [2.0, 0.0], [9.0, 0.0]])
    loss = absolute_loss(predicted, jnp.zeros((3, 1)), jnp.array([1.0, 1.0, 0.0]))
    huber = (0.04**2 / 2 / 0.1 + (2.0 - 0.05)) / 2
    assert loss == pytest.approx(huber + 0.1 * (0.04**2 / 2 + 2.0) / 2)


@pytest.mark.parametrize(
    "wrong", [{"updates": 0}, {"nodes": 159}, {"learning_rate": 0.0}, {"forget": 1.0}]
)
def test_bad_configurations_are_refused(wrong):
    with pytest.raises(TrainingError, match=next(iter(wrong))):
        KernelTrainConfig(**wrong)


def test_a_width_must_divide_among_the_heads():
    with pytest.raises(TrainingError, match="width must be a multiple of 4, not 6"):
        KernelNetworkConfig(width=6)
