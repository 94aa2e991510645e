"""How near our FLOP and bytes are to XLA's cost analysis of the unoptimised program.

Run: ``python -m experiments readers.cost_analysis_agreement``. XLA counts the body of a loop once,
so for networks with loops it is given the same network with every loop written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import flax.linen as nn
import jax

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.rows import rows_table
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.audio.networks import WaveRNN
from go_rl.graphs.zoo.models.building import Built, flax_model, floats, training
from go_rl.graphs.zoo.models.inventory import zoo_model
from go_rl.graphs.zoo.models.tabular.graph_networks import NeuralODE
from go_rl.graphs.zoo.models.vision.networks import batch_norm


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


class DCGAN(nn.Module):
    """Generator of transposed convolutions (Radford et al. 2015)."""

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.Dense(4 * 4 * 256)(x)).reshape(-1, 4, 4, 256)
        for features in (128, 64, 32):
            x = nn.ConvTranspose(features, (5, 5), (2, 2), use_bias=False)(x)
            x = nn.relu(batch_norm(x))
        return nn.tanh(nn.ConvTranspose(3, (5, 5), (2, 2))(x))


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


Build = Callable[[bool], Built]
"""Takes ``unrolled``: whether every loop is written out, which is what XLA can count."""


def _of_zoo(name: str) -> Build:
    return lambda unrolled: zoo_model(name).build()


def _trained(build: Build) -> Build:
    return lambda unrolled: training(build(unrolled))


def _recurrent(cell: type[nn.Module]) -> Build:
    return lambda unrolled: flax_model(Recurrent(cell, 12, unrolled), floats(4, 12, 128))


ZOO = (
    "bert-base", "bert-tiny", "conformer-s", "deep-autoencoder", "deep-cross", "dlrm-kaggle",
    "fractalnet-4", "gat-3-layers", "gcn-3-layers", "gin-5-layers", "gpt-6-layers",
    "message-passing-4", "mixer-s16", "moe-8-experts", "ncf", "resnet18", "ssd-vgg16", "t5-small",
    "transformer-xl-2-layers", "unet", "vae-3-layers", "vit-tiny", "wavenet-1x10", "wide-and-deep",
)  # fmt: skip
"""Networks of the zoo without loops."""
TRAINED = ("bert-tiny", "dlrm-kaggle", "gpt-6-layers", "resnet18", "unet", "wavenet-1x10", "mlp",
           "lenet", "lstm")  # fmt: skip
"""Those whose training step is read, too."""
OWN: dict[str, Build] = {
    "mlp": lambda unrolled: flax_model(MLP(), floats(32, 784)),
    "lenet": lambda unrolled: flax_model(LeNet(), floats(8, 28, 28, 1)),
    "dcgan": lambda unrolled: flax_model(DCGAN(), floats(4, 100)),
    "lstm": _recurrent(nn.OptimizedLSTMCell),
    "gru": _recurrent(nn.GRUCell),
    "wavernn": lambda unrolled: flax_model(WaveRNN(256, unrolled), floats(16, 4, 80)),
    "neural-ode": lambda unrolled: flax_model(NeuralODE(8, unrolled), floats(32, 64)),
}
"""Small networks, and networks with loops."""
MODELS: dict[str, Build] = {name: _of_zoo(name) for name in ZOO} | OWN
MODELS |= {f"{name}-training": _trained(MODELS[name]) for name in TRAINED}


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


def compare(model: str, options: JaxOptions | None = None) -> Agreement:
    """Read one of `MODELS`, price it with XLA too, and return both."""
    function, args, weights = MODELS[model](False)
    graph = trace_jax(function, *args, weights=weights, options=options)
    reference, args, _ = MODELS[model](True)
    xla = xla_analysis(reference, args)
    flops, moved = float(graph.flops.sum()), float(graph.bytes_accessed.sum())
    return Agreement(
        model=model, nodes=graph.num_nodes, flops=flops, xla_flops=xla["flops"],
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
        rows = self.write_rows(map(compare, MODELS))
        worst = max(row.worst for row in rows)
        within = sum(row.worst <= 0.05 for row in rows)
        self.write_page(
            "# FLOP and bytes against XLA's cost analysis of the unoptimised program\n\n"
            f"{within} of {len(rows)} networks within 5 % on both; the worst error is {worst:.2%}. "
            f"JAX {jax.__version__}.\n\n{rows_table(rows)}"
        )
