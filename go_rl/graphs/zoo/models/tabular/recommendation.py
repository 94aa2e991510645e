"""The zoo's networks over tables, graphs, latent variables and time steps."""

from __future__ import annotations

from typing import Any

import flax.linen as nn

from go_rl.graphs.zoo.models.building import ZooModel, flax_entry, flax_model, floats, integers, key
from go_rl.graphs.zoo.models.tabular.graph_networks import (
    GAT,
    GCN,
    GIN,
    VAE,
    EncodeProcessDecode,
    GraphNetwork,
    NeuralODE,
)
from go_rl.graphs.zoo.models.tabular.recommenders import (
    DLRM,
    Autoencoder,
    DeepCross,
    MultiTower,
    NeuMF,
    WideAndDeep,
)

KAGGLE = DLRM(26, 20000, 16, bottom=(512, 256, 64), top=(512, 256))
TERABYTE = DLRM(26, 40000, 128, bottom=(512, 256), top=(1024, 1024, 512, 256))
RM2 = DLRM(40, 20000, 32, bottom=(256, 128), top=(512, 128))


def _dlrm(name: str, network: DLRM, batch: int, lookups: int) -> ZooModel:
    rows = integers(batch, network.tables, lookups)
    return flax_entry(name, "dlrm", network, floats(batch, 13), rows)


def _multi_tower(name: str, network: MultiTower, batch: int, lookups: int) -> ZooModel:
    rows = integers(batch, network.towers, network.tables, lookups)
    return flax_entry(name, "multi-tower", network, floats(batch, 13), rows)


def _recommender(name: str, network: nn.Module, *inputs: Any) -> ZooModel:
    return flax_entry(name, "recommender", network, *inputs)


def _graph_network(name: str, network: nn.Module, *inputs: Any) -> ZooModel:
    return flax_entry(name, "graph-network", network, *inputs)


def _simulator(name: str, rounds: int, nodes: int, edges: int) -> ZooModel:
    features, ends = (floats(nodes, 24), floats(edges, 4)), (integers(edges), integers(edges))
    return _graph_network(name, EncodeProcessDecode(rounds), *features, *ends)


PROTEINS = floats(2372, 50), integers(68226), integers(68226)
"""One graph of PPI, on average: 2,372 proteins, 50 features, 68,226 directed links."""
CLICKS = floats(1024, 13), integers(1024, 26)

ENTRIES: tuple[ZooModel, ...] = (
    _dlrm("dlrm-kaggle", KAGGLE, 512, 1),
    _dlrm("dlrm-terabyte", TERABYTE, 512, 1),
    _dlrm("dlrm-rm2", RM2, 128, 80),
    _multi_tower("multi-tower-8", MultiTower(), 512, 1),
    _multi_tower("multi-tower-16", MultiTower(16, 4, 10000, 16, 8, 6), 512, 4),
    _multi_tower("multi-tower-24", MultiTower(24, 8, 10000, 32, 12, 8), 256, 8),
    _recommender("ncf", NeuMF(), integers(64), integers(64, 100)),
    _recommender("wide-and-deep", WideAndDeep(), *CLICKS),
    _recommender("deep-cross", DeepCross(), *CLICKS),
    _recommender("deep-autoencoder", Autoencoder(), floats(256, 17768)),
    _simulator("graph-simulator-10", 10, 1000, 15000),
    _simulator("mesh-simulator-15", 15, 1885, 11000),
    _graph_network("gcn-3-layers", GCN(3, 256, 121), *PROTEINS),
    _graph_network("gcn-16-layers", GCN(16, 128, 121), *PROTEINS),
    _graph_network("gat-3-layers", GAT(3, 4, 32, 121), *PROTEINS),
    _graph_network(
        "gin-5-layers", GIN(), floats(960, 37), integers(3584), integers(3584), integers(960)
    ),
    _graph_network(
        "message-passing-4", GraphNetwork(300), floats(300, 32), integers(2000), integers(2000)
    ),
    ZooModel("vae-3-layers", "vae", lambda: flax_model(VAE(400, 20, 3), floats(128, 784), key())),
    ZooModel("vae-6-layers", "vae", lambda: flax_model(VAE(1024, 64, 6), floats(256, 3072), key())),
    flax_entry("neural-ode-8", "neural-ode", NeuralODE(8, True), floats(32, 64)),
    flax_entry("neural-ode-40", "neural-ode", NeuralODE(40, True, 512), floats(256, 128)),
)
