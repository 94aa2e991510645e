"""The predictor of kernels: features, network, fit."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from costs.kernels.kernels import few_features, few_kernels, weights
from parameters import random_variables
from rounding import assert_rounded_alike
from small_graphs import graph_of

from go_rl.core import CheckpointError, Geometry, OpKind, TrainingError
from go_rl.costs.kernels.batch import KernelBatch, batch_of
from go_rl.costs.kernels.features import KERNEL_FEATURES, NODE_FEATURES, kernel_features
from go_rl.costs.kernels.measure.data import KernelData, plain_seconds
from go_rl.costs.kernels.network import KernelNetwork, KernelNetworkConfig
from go_rl.costs.kernels.predictor import KernelPredictor, predict_kernels
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.costs.learning.losses import absolute_loss
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.cutting.opcode_names import UNKNOWN
from go_rl.graphs.readers.graph_builder import Node


def matmul_and_relu():
    """[3, 1023] times a weight [1023, 7], then a maximum; the product is of no use elsewhere."""
    nodes = (
        Node("x", "input", OpKind.INPUT, output_bytes=12276.0, output_itemsize=4.0,
             output_shape=(3, 1023)),
        Node("dot", "dot_general", OpKind.MATMUL, flops=2.0 * 3 * 7 * 1023, output_bytes=84.0,
             weight_bytes=28644.0, output_itemsize=4.0, output_shape=(3, 7),
             geometry=Geometry(minor=3.0)),
        Node("relu", "max", OpKind.ELEMENTWISE, flops=21.0, output_bytes=84.0, output_itemsize=4.0,
             output_shape=(3, 7), geometry=Geometry()),
    )  # fmt: skip
    graph = graph_of(nodes, [(0, 1, 12276.0), (1, 2, 84.0)])
    return cut_kernels(graph, np.array([0, 1, 1]))[0]


def test_by_hand():
    features = kernel_features(matmul_and_relu(), ("dot_general", "max"))
    node = dict(zip(NODE_FEATURES, features.nodes[1].tolist(), strict=True))
    assert features.opcode.tolist() == [UNKNOWN, 1, 2]
    assert (node["is matmul"], node["is input"]) == (1.0, 0.0)
    assert (node["dimension -2"], node["dimension -1"], node["dimension -3"]) == (2.0, 3.0, 0.0)
    assert node["FLOP"] == pytest.approx(np.log2(1 + 42 * 1023))
    assert node["FLOP an element"] == pytest.approx(np.log2(2047.0))
    assert (node["minor in left"], node["minor in right"]) == (1.0, 1.0)
    assert (node["geometry unknown"], node["is result"], node["depth"]) == (0.0, 0.0, 1.0)
    whole = dict(zip(KERNEL_FEATURES, features.whole[0].tolist(), strict=True))
    assert whole["nodes"] == 2.0
    assert whole["bytes read"] == pytest.approx(np.log2(12277))
    assert whole["bytes inside"] == pytest.approx(np.log2(85))
    assert whole["FLOP of matmul"] == pytest.approx(np.log2(1 + 42 * 1023))
    assert whole["FLOP of convolution"] == 0.0
    assert whole["handed over"] == 1.0
    assert whole["laid out otherwise"] == 0.0


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


SMALL = KernelTrainConfig(
    KernelNetworkConfig(width=8, layers=1, head=8, opcode_width=4), updates=150, nodes=320,
    learning_rate=1e-2,
)  # fmt: skip


def data() -> KernelData:
    """Every kernel but the last has a time that follows from its FLOP; the first two, others."""
    kernels = few_kernels()
    count = kernels.num_kernels - 1
    work = np.bincount(kernels.kernel, kernels.graph.flops)[:count]
    rows = np.array([*range(count), 0, 1])
    return KernelData(
        "small", "cpu-1", kernels, ("m",) * kernels.num_kernels, ("", '{"flags":{}}'),
        kernel=rows, setting=np.array([0] * count + [1, 0]), round=np.array([0] * count + [0, 1]),
        seconds=1e-6 + 1e-9 * np.array([*work, 1e9, 1e9]), spread=np.zeros(count + 2),
        xla=np.full((kernels.num_kernels, 3), np.nan), failures={},
    )  # fmt: skip


@pytest.mark.slow
def test_an_ensemble_learns_and_its_members_differ():
    which = np.arange(few_kernels().num_kernels - 1)
    told = replace(data(), processor="Acme family 1 model 2")
    weights = KernelPredictor.fit(told.take(which), SMALL, members=2)
    assert weights.processor == "Acme family 1 model 2"
    assert (weights.target, weights.card["kernels"]) == ("cpu-1", len(which))
    found = predict_kernels(weights, few_kernels().take(which)).seconds
    seconds = plain_seconds(data())[which]
    blind = np.abs(np.log(seconds) - np.log(seconds).mean()).mean()
    assert np.abs(np.log(found / seconds)).mean() < 0.5 * blind
    one, two = (net.params["params"]["enter"]["kernel"] for net in weights.networks)
    assert not np.array_equal(one, two)


def test_a_kernel_without_a_time_is_refused():
    with pytest.raises(TrainingError, match=r"small: 1 of \d+ kernels have no time"):
        KernelPredictor.fit(data(), SMALL)


def test_an_ensemble_says_the_mean_and_adds_its_disagreement_to_its_doubt():
    found = predict_kernels(weights(), few_kernels())
    one, two = (network.predict(few_features()) for network in weights().networks)
    np.testing.assert_allclose(np.log(found.seconds), (one[:, 0] + two[:, 0]) / 2)
    doubt = (np.exp(2 * np.minimum(one[:, 1], 2)) + np.exp(2 * np.minimum(two[:, 1], 2))) / 2
    apart = ((one[:, 0] - two[:, 0]) / 2) ** 2
    np.testing.assert_allclose(found.deviation, np.sqrt(doubt + apart), rtol=1e-5)


def test_an_opcode_never_seen_is_named_and_its_kernels_are_flagged():
    kernels = few_kernels()
    strange = replace(kernels, graph=replace(
        kernels.graph, op_type=tuple("fft" if t == "exp" else t for t in kernels.graph.op_type)
    ))  # fmt: skip
    found = predict_kernels(weights(), strange)
    assert found.unseen == ("fft",)
    with_it = {int(kernels.kernel[i]) for i, t in enumerate(kernels.graph.op_type) if t == "exp"}
    assert set(np.flatnonzero(found.unfamiliar).tolist()) == with_it


def test_other_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="no kernel cost weights 'kernels-9'"):
        KernelPredictor.load("kernels-9")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read as weights"):
        KernelPredictor.load(tmp_path / "bad.npz")
    path = tmp_path / "w.npz"
    weights().save(path)
    monkeypatch.setattr("go_rl.costs.kernels.predictor.KERNEL_FEATURES", ("one",))
    with pytest.raises(CheckpointError, match="its features is "):
        KernelPredictor.load(path)
