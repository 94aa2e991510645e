"""How near our FLOP and bytes are to XLA's cost analysis of the unoptimised program.

Run: ``python -m experiments.readers.cost_analysis_agreement``. XLA counts the body of a loop once,
so for networks with loops it is given the same network with every loop written out. Writes
``experiments/results/cost_analysis_agreement.csv`` and ``.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.rows import rows_table
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.bert import bert_base, bert_base_training
from go_rl.graphs.zoo.models.audio.networks import WaveNet, WaveRNN
from go_rl.graphs.zoo.models.building import Built, flax_model, floats, integers, key, training
from go_rl.graphs.zoo.models.language.attention import TransformerXL
from go_rl.graphs.zoo.models.language.transformers import GPT, T5, MixtureOfExperts
from go_rl.graphs.zoo.models.tabular.graph_networks import VAE, GraphNetwork, NeuralODE
from go_rl.graphs.zoo.models.tabular.recommenders import DLRM
from go_rl.graphs.zoo.models.vision.dense_prediction import UNet
from go_rl.graphs.zoo.models.vision.networks import Bottleneck, ResNet, batch_norm
from go_rl.graphs.zoo.models.vision.vision_transformers import MLPMixer, VisionTransformer


class MLP(nn.Module):
    """Fully connected layers with ReLU."""

    widths: Sequence[int] = (512, 512, 10)

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width in self.widths[:-1]:
            x = nn.relu(nn.Dense(width)(x))
        return nn.log_softmax(nn.Dense(self.widths[-1])(x))


class LeNet(nn.Module):
    """LeCun et al. 1998."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for features in (6, 16):
            x = nn.tanh(nn.Conv(features, (5, 5), padding="VALID")(x))
            x = nn.avg_pool(x, (2, 2), (2, 2))
        return MLP((120, 84, 10))(x.reshape(x.shape[0], -1))


class VGG(nn.Module):
    """VGG-11: plain 3 × 3 convolutions and max pooling."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for stage in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
            for features in stage:
                x = nn.relu(nn.Conv(features, (3, 3))(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return MLP((4096, 4096, 1000))(x.reshape(x.shape[0], -1))


class MobileNet(nn.Module):
    """Inverted residuals with depthwise convolutions and squeeze-and-excite."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.hard_swish(nn.Conv(16, (3, 3), (2, 2))(x))
        for features, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (112, 1)):
            wide = 4 * x.shape[-1]
            y = nn.relu6(batch_norm(nn.Conv(wide, (1, 1), use_bias=False)(x)))
            strides = (stride, stride)
            y = nn.Conv(wide, (5, 5), strides, feature_group_count=wide, use_bias=False)(y)
            y = nn.hard_swish(batch_norm(y))
            gate = nn.relu(nn.Dense(wide // 4)(y.mean((1, 2))))
            y = y * nn.sigmoid(nn.Dense(wide)(gate))[:, None, None, :]
            y = batch_norm(nn.Conv(features, (1, 1), use_bias=False)(y))
            x = x + y if x.shape == y.shape else y
        return nn.Dense(1000)(x.mean((1, 2)))


class Inception(nn.Module):
    """Blocks of parallel 1 × 1, 3 × 3, 5 × 5 and pooled branches."""

    blocks: int = 3

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(self.blocks):
            branches = [
                nn.relu(nn.Conv(64, (1, 1))(x)),
                nn.relu(nn.Conv(128, (3, 3))(nn.relu(nn.Conv(96, (1, 1))(x)))),
                nn.relu(nn.Conv(32, (5, 5))(nn.relu(nn.Conv(16, (1, 1))(x)))),
                nn.Conv(32, (1, 1))(nn.max_pool(x, (3, 3), padding="SAME")),
            ]
            x = jnp.concatenate(branches, axis=-1)
        return nn.Dense(1000)(x.mean((1, 2)))


class DenseNet(nn.Module):
    """Every layer reads all earlier ones."""

    growth: int = 32

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(64, (7, 7), (2, 2))(x)
        for layers in (6, 6):
            for _ in range(layers):
                y = nn.Conv(4 * self.growth, (1, 1))(nn.relu(batch_norm(x)))
                y = nn.Conv(self.growth, (3, 3))(nn.relu(batch_norm(y)))
                x = jnp.concatenate([x, y], axis=-1)
            x = nn.avg_pool(nn.Conv(x.shape[-1] // 2, (1, 1))(x), (2, 2), (2, 2))
        return nn.Dense(1000)(x.mean((1, 2)))


class DCGAN(nn.Module):
    """Generator of transposed convolutions (Radford et al. 2015)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Dense(4 * 4 * 256)(x)).reshape(-1, 4, 4, 256)
        for features in (128, 64, 32):
            x = nn.ConvTranspose(features, (5, 5), (2, 2), use_bias=False)(x)
            x = nn.relu(batch_norm(x))
        return nn.tanh(nn.ConvTranspose(3, (5, 5), (2, 2))(x))


class DropoutMLP(nn.Module):
    """Dense layers with dropout, its mask drawn inside the graph."""

    @nn.compact
    def __call__(self, x: Any, key: Any) -> Any:
        for layer in range(3):
            x = nn.relu(nn.Dense(512)(x))
            keep = jax.random.bernoulli(jax.random.fold_in(key, layer), 0.9, x.shape)
            x = jnp.where(keep, x / 0.9, 0.0)
        return nn.Dense(10)(x)


class Recurrent(nn.Module):
    """An LSTM or GRU over time by scan, then a classifier."""

    cell: Any
    steps: int
    unrolled: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.RNN(self.cell(256), unroll=self.steps if self.unrolled else 1)(x)
        return nn.Dense(100)(x)


@dataclass(frozen=True)
class Network:
    """One network."""

    name: str
    build: Callable[[bool], Built]
    """Takes ``unrolled``: whether every loop is written out, which is what XLA can count."""


def _fixed(name: str, build: Callable[[], Built]) -> Network:
    return Network(name, lambda unrolled: build())


def _recurrent(cell: type[nn.Module], unrolled: bool) -> Built:
    return flax_model(Recurrent(cell, 12, unrolled), floats(4, 12, 128))


def _image(size: int, batch: int = 1) -> object:
    return floats(batch, size, size, 3)


UNET = UNet((32, 64, 128, 256), residual=True)
MODELS: tuple[Network, ...] = (
    _fixed("mlp", lambda: flax_model(MLP(), floats(32, 784))),
    _fixed("mlp-training", lambda: training(flax_model(MLP(), floats(32, 784)))),
    _fixed("lenet", lambda: flax_model(LeNet(), floats(8, 28, 28, 1))),
    _fixed("lenet-training", lambda: training(flax_model(LeNet(), floats(8, 28, 28, 1)))),
    _fixed("vgg11", lambda: flax_model(VGG(), _image(224))),
    _fixed("resnet18", lambda: flax_model(ResNet(), _image(224))),
    _fixed(
        "resnet50",
        lambda: flax_model(ResNet((3, 4, 6, 3), Bottleneck), _image(224)),
    ),
    _fixed(
        "resnet18-training",
        lambda: training(flax_model(ResNet(train=True), _image(64, 2))),
    ),
    _fixed("mobilenet", lambda: flax_model(MobileNet(), _image(128))),
    _fixed("mobilenet-training", lambda: training(flax_model(MobileNet(), _image(64, 2)))),
    _fixed("inception", lambda: flax_model(Inception(), floats(1, 28, 28, 192))),
    _fixed("densenet", lambda: flax_model(DenseNet(), _image(64))),
    _fixed("unet", lambda: flax_model(UNET, _image(64))),
    _fixed("unet-training", lambda: training(flax_model(UNET, _image(32)))),
    _fixed("dcgan", lambda: flax_model(DCGAN(), floats(4, 100))),
    _fixed("vit", lambda: flax_model(VisionTransformer(6, 384, 6), _image(224))),
    _fixed("mlp-mixer", lambda: flax_model(MLPMixer(4, 256, 16, 128, 1024), _image(224))),
    _fixed("bert-base", bert_base),
    _fixed("bert-base-training", bert_base_training),
    _fixed("gpt", lambda: flax_model(GPT(6, 256, 8, 5000, 64), integers(2, 64))),
    _fixed("gpt-training", lambda: training(flax_model(GPT(6, 256, 8, 5000, 64), integers(2, 64)))),
    _fixed(
        "t5", lambda: flax_model(T5(3, 256, 8, 1024, 32, 4000), integers(2, 48), integers(2, 32))
    ),
    _fixed("wavenet", lambda: flax_model(WaveNet(1, 10), floats(1, 2048, 1))),
    _fixed(
        "transformer-xl",
        lambda: flax_model(TransformerXL(4, 256), integers(2, 32), floats(4, 2, 32, 256)),
    ),
    _fixed("mixture-of-experts", lambda: flax_model(MixtureOfExperts(), floats(128, 256))),
    _fixed("dlrm", lambda: flax_model(DLRM(), floats(64, 13), integers(64, 8, 4))),
    _fixed(
        "graph-network",
        lambda: flax_model(GraphNetwork(300), floats(300, 32), integers(2000), integers(2000)),
    ),
    _fixed("vae", lambda: flax_model(VAE(), floats(32, 784), key())),
    _fixed("dropout-mlp", lambda: flax_model(DropoutMLP(), floats(32, 256), key())),
    Network("lstm", lambda unrolled: _recurrent(nn.OptimizedLSTMCell, unrolled)),
    Network(
        "lstm-training",
        lambda unrolled: training(_recurrent(nn.OptimizedLSTMCell, unrolled)),
    ),
    Network("gru", lambda unrolled: _recurrent(nn.GRUCell, unrolled)),
    Network(
        "wavernn",
        lambda unrolled: flax_model(WaveRNN(256, unrolled), floats(16, 4, 80)),
    ),
    Network(
        "neural-ode",
        lambda unrolled: flax_model(NeuralODE(8, unrolled), floats(32, 64)),
    ),
)


@dataclass(frozen=True)
class Agreement:
    """One row of the table."""

    model: Annotated[str, Column("network")]
    nodes: int
    flops: Annotated[float, Column("FLOP")]
    xla_flops: Annotated[float, Column("XLA's FLOP")]
    flops_ratio: Annotated[float, Column("ratio", ".4f")]
    bytes_accessed: Annotated[float, Column("bytes")]
    xla_bytes: Annotated[float, Column("XLA's bytes")]
    bytes_ratio: Annotated[float, Column("ratio", ".4f")]

    @property
    def worst(self) -> float:
        """The larger relative error of FLOP and bytes."""
        return max(abs(self.flops_ratio - 1), abs(self.bytes_ratio - 1))


def compare(model: Network, options: JaxOptions | None = None) -> Agreement:
    """Read a network, price it with XLA too, and return both."""
    function, args, weights = model.build(False)
    graph = trace_jax(function, *args, weights=weights, options=options)
    reference, args, _ = model.build(True)
    xla = xla_analysis(reference, args)
    flops, moved = float(graph.flops.sum()), float(graph.bytes_accessed.sum())
    return Agreement(
        model=model.name, nodes=graph.num_nodes, flops=flops, xla_flops=xla["flops"],
        flops_ratio=flops / xla["flops"], bytes_accessed=moved, xla_bytes=xla["bytes accessed"],
        bytes_ratio=moved / xla["bytes accessed"],
    )  # fmt: skip


def xla_analysis(function: Any, args: Any) -> dict[str, float]:
    """Return XLA's own counts for the program before any optimisation."""
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=("cpu",))
    analysis = lowered.cost_analysis()
    if not analysis:
        raise RuntimeError("this JAX build has no cost analysis")
    return dict(analysis)


@dataclass(frozen=True)
class CostAnalysisAgreement(Experiment):
    """Options of this experiment."""

    def run(self) -> None:
        """Compare every network and write the tables."""
        rows: list[Agreement] = []
        for model in MODELS:
            rows.append(compare(model))
            print(rows[-1], flush=True)
        worst = max(row.worst for row in rows)
        within = sum(row.worst <= 0.05 for row in rows)
        self.write_rows(rows)
        self.write_page(
            "# FLOP and bytes against XLA's cost analysis of the unoptimised program\n\n"
            f"{within} of {len(rows)} networks within 5 % on both; the worst error is {worst:.2%}. "
            f"JAX {jax.__version__}.\n\n{rows_table(rows)}"
        )


if __name__ == "__main__":
    CostAnalysisAgreement.main()
