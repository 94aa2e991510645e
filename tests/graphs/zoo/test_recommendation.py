"""Recommendation and graph networks compute what their papers say."""

import jax
import numpy as np
from parameters import random_variables
from rounding import assert_rounded_alike

from go_rl.graphs.zoo.models.building import flax_model, integers
from go_rl.graphs.zoo.models.tabular.graph_networks import GAT, GCN, GIN
from go_rl.graphs.zoo.models.tabular.recommenders import DLRM, NeuMF

SENDERS, RECEIVERS = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
"""The path 0 – 1 – 2, both ways."""


def _applied(model, *inputs):
    variables = random_variables(model.init, *inputs)
    return variables["params"], np.asarray(jax.jit(model.apply)(variables, *inputs))


def test_neumf_parameters_by_hand():
    """Users and items of MovieLens-1M; factors 4, embeddings of 2, hidden 4 and 3."""
    built = flax_model(NeuMF(factors=4, hidden=(4, 3)), integers(2), integers(2, 20))
    tables = (6040 + 3706) * (4 + 2)
    dense = (4 * 4 + 4) + (4 * 3 + 3) + (4 + 3 + 1)
    assert sum(x.size for x in jax.tree.leaves(built[1][0])) == tables + dense


def test_dlrm_interacts_every_pair_once():
    model = DLRM(3, 5, 2, bottom=(4,), top=(4,))
    dense, sparse = np.ones((1, 6), np.float32), np.array([[[0, 0], [1, 1], [2, 2]]])
    params, out = _applied(model, dense, sparse)

    def layer(number, x):
        weights = params[f"Dense_{number}"]
        return x @ weights["kernel"] + weights["bias"]

    vectors = [np.maximum(layer(1, np.maximum(layer(0, dense), 0)), 0)[0]]
    vectors += [2 * params[f"Embed_{t}"]["embedding"][t] for t in range(3)]
    pairs = [vectors[i] @ vectors[j] for i in range(4) for j in range(i)]
    features = np.concatenate([vectors[0], pairs])
    top = layer(3, np.maximum(layer(2, features), 0))
    assert_rounded_alike(out[0], 1 / (1 + np.exp(-top)))


def test_graph_convolution_is_the_normalised_adjacency():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    params, out = _applied(GCN(1, classes=2), x, SENDERS, RECEIVERS)
    looped = np.eye(3) + np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    scale = np.diag(looped.sum(1) ** -0.5)
    logits = scale @ looped @ scale @ (x @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"])
    expected = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    assert_rounded_alike(out, expected)


def test_attention_over_one_neighbour_copies_it():
    x = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 1.0]], np.float32)
    params, out = _applied(GAT(1, classes=2), x, SENDERS, RECEIVERS)
    values = x @ params["DenseGeneral_0"]["kernel"][:, 0]
    expected = values[1] - np.log(np.exp(values[1]).sum())
    assert_rounded_alike(out[0], expected)
    assert_rounded_alike(out[2], expected)


def test_graph_isomorphism_network_ignores_the_order_of_nodes():
    model = GIN(2, 4, graphs=1)
    x, graphs = np.array([[1.0], [2.0], [4.0]], np.float32), np.zeros(3, int)
    variables = random_variables(model.init, x, SENDERS, RECEIVERS, graphs)
    order = np.array([2, 0, 1])
    place = np.argsort(order)
    apply = jax.jit(model.apply)
    here = apply(variables, x, SENDERS, RECEIVERS, graphs)
    there = apply(variables, x[order], place[SENDERS], place[RECEIVERS], graphs)
    assert_rounded_alike(here, there)
