"""The zoo's networks over tables, graphs, latent variables and time steps."""

from __future__ import annotations

from go_rl.zoo.models.building import Built, flax_model, floats, integers, key
from go_rl.zoo.models.tabular.graph_networks import GAT, GCN, GIN, EncodeProcessDecode
from go_rl.zoo.models.tabular.recommenders import DLRM, Autoencoder, DeepCross, NeuMF, WideAndDeep
from go_rl.zoo.models.tabular.relational import VAE, GraphNetwork, NeuralODE
from go_rl.zoo.models.zoo_model import ZooModel

KAGGLE = DLRM(26, 20000, 16, bottom=(512, 256, 64), top=(512, 256))
TERABYTE = DLRM(26, 40000, 128, bottom=(512, 256), top=(1024, 1024, 512, 256))
RM2 = DLRM(40, 20000, 32, bottom=(256, 128), top=(512, 128))


def _dlrm(network: DLRM, batch: int, lookups: int) -> Built:
    return flax_model(network, floats(batch, 13), integers(batch, network.tables, lookups))


def _simulator(rounds: int, nodes: int, edges: int) -> Built:
    ends = integers(edges), integers(edges)
    return flax_model(EncodeProcessDecode(rounds), floats(nodes, 24), floats(edges, 4), *ends)


def _proteins(network: GCN | GAT) -> Built:
    """One graph of PPI, on average: 2,372 proteins, 50 features, 68,226 directed links."""
    return flax_model(network, floats(2372, 50), integers(68226), integers(68226))


ENTRIES: tuple[ZooModel, ...] = (
    ZooModel("dlrm-kaggle", "dlrm", lambda: _dlrm(KAGGLE, 512, 1)),
    ZooModel("dlrm-terabyte", "dlrm", lambda: _dlrm(TERABYTE, 512, 1)),
    ZooModel("dlrm-rm2", "dlrm", lambda: _dlrm(RM2, 128, 80)),
    ZooModel("ncf", "recommender", lambda: flax_model(NeuMF(), integers(64), integers(64, 100))),
    ZooModel(
        "wide-and-deep",
        "recommender",
        lambda: flax_model(WideAndDeep(), floats(1024, 13), integers(1024, 26)),
    ),
    ZooModel(
        "deep-cross",
        "recommender",
        lambda: flax_model(DeepCross(), floats(1024, 13), integers(1024, 26)),
    ),
    ZooModel(
        "deep-autoencoder", "recommender", lambda: flax_model(Autoencoder(), floats(256, 17768))
    ),
    ZooModel("graph-simulator-10", "graph-network", lambda: _simulator(10, 1000, 15000)),
    ZooModel("mesh-simulator-15", "graph-network", lambda: _simulator(15, 1885, 11000)),
    ZooModel("gcn-3-layers", "graph-network", lambda: _proteins(GCN(3, 256, 121))),
    ZooModel("gcn-16-layers", "graph-network", lambda: _proteins(GCN(16, 128, 121))),
    ZooModel("gat-3-layers", "graph-network", lambda: _proteins(GAT(3, 4, 32, 121))),
    ZooModel(
        "gin-5-layers",
        "graph-network",
        lambda: flax_model(GIN(), floats(960, 37), integers(3584), integers(3584), integers(960)),
    ),
    ZooModel(
        "message-passing-4",
        "graph-network",
        lambda: flax_model(GraphNetwork(300), floats(300, 32), integers(2000), integers(2000)),
    ),
    ZooModel("vae-3-layers", "vae", lambda: flax_model(VAE(400, 20, 3), floats(128, 784), key())),
    ZooModel("vae-6-layers", "vae", lambda: flax_model(VAE(1024, 64, 6), floats(256, 3072), key())),
    ZooModel("neural-ode-8", "neural-ode", lambda: flax_model(NeuralODE(8, True), floats(32, 64))),
    ZooModel(
        "neural-ode-40",
        "neural-ode",
        lambda: flax_model(NeuralODE(40, True, 512), floats(256, 128)),
    ),
)
