"""Where the graph of a kernel counts for its cost: errors by the size of the fusion.

Run: ``python -m experiments kernels.kernel_fusion_size [--data kernels-cpu-1] [--updates 3000]``.
Each seed holds out families of models that have a fifth of the kernels, and one network learns from
the rest. *no neighbours* sees the same operators and features of the whole kernel, but no edge.
*Paper's inputs*: of our columns those that the published model reads (`OF_PAPER`). Paired
differences are of the logarithms of a family's mean errors; intervals are bootstrapped over
families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Bool, Float64, Int64

from experiments.experiment import Experiment
from experiments.page_text import NOTHING, grid_table
from experiments.rows import grouped, run_name
from experiments.statistics import family_means, ratio_of, with_error
from go_rl.costs.kernels.features import (
    LAYOUT_COLUMNS,
    NODE_FEATURES,
    KernelFeatures,
    kernel_features,
)
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data, plain_seconds
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.predictor import measured_features
from go_rl.costs.kernels.training import KernelTrainConfig, train_absolute
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import opcode, vocabulary_of
from go_rl.graphs.zoo import zoo_entry

NETWORKS = {
    "GraphSAGE": KernelNetworkConfig(encoder="graphsage"),
    "no neighbours": KernelNetworkConfig(encoder="none"),
    "GraphSAGE, Transformer": KernelNetworkConfig(encoder="graphsage", reduction="transformer"),
    "no neighbours, Transformer": KernelNetworkConfig(encoder="none", reduction="transformer"),
}
"""The last two reduce the nodes by a Transformer instead of by columns."""
PAPER = "paper's inputs: "
"""Prefix of variants whose networks read `OF_PAPER` alone."""
VARIANTS = {prefix + name: network for prefix in ("", PAPER) for name, network in NETWORKS.items()}
PAIRS = (
    ("no neighbours", "GraphSAGE"),
    ("no neighbours, Transformer", "GraphSAGE, Transformer"),
    ("GraphSAGE", "GraphSAGE, Transformer"),
    ("no neighbours", "GraphSAGE, Transformer"),
    (f"{PAPER}no neighbours", f"{PAPER}GraphSAGE"),
    (f"{PAPER}no neighbours, Transformer", f"{PAPER}GraphSAGE, Transformer"),
    ("GraphSAGE, Transformer", f"{PAPER}GraphSAGE, Transformer"),
)
"""Compared, the second with the first."""
SIZES = {"1": (1, 1), "2 to 4": (2, 4), "5 to 9": (5, 9), "10 and more": (10, None)}
"""Least and most operators."""
ROWS = {"all": tuple(SIZES), **{name: (name,) for name in SIZES}}
ROWS["5 and more"] = ("5 to 9", "10 and more")
OF_PAPER = tuple(
    name.startswith(("dimension ", "log ", "minor ", "geometry "))
    or name.endswith("bytes an element")
    or name in ("other dimensions", "rank", "weight bytes", "is result")
    for name in NODE_FEATURES
)
"""Columns of nodes that the published model reads; of the whole kernel it reads layouts alone."""


@dataclass(frozen=True)
class KernelFusionSize(Experiment):
    """Options of this experiment."""

    data: str = "kernels-cpu-1"
    """A data set that ships, or a file."""
    updates: int = 3000
    """Updates of each network."""
    splits: int = 3
    """Splits, with seeds 0, 1, …"""
    variants: tuple[str, ...] = tuple(VARIANTS)
    """Networks to train; the page shows all that were trained."""

    def run(self) -> None:
        """Train what is missing and write the page."""
        data = load_kernel_data(self.data)
        seconds = plain_seconds(data)
        families = np.array([zoo_entry(name).family for name in data.models])
        count, known = operators(data), np.isfinite(seconds)
        run = run_name(str(self.updates), seconds)
        table = self.kept_rows(Row, run=run)

        def rows(run: str, variant: str, seed: int) -> Iterator[Row]:
            held = held_out(families, known, seed)
            asked, learned = np.flatnonzero(known & held), np.flatnonzero(known & ~held)
            config = KernelTrainConfig(VARIANTS[variant], updates=self.updates, seed=seed)
            kernels, paper = data.kernels.take(asked), variant.startswith(PAPER)
            found = predicted(data.take(learned), kernels, config, paper)
            error = 100 * np.abs(found / seconds[asked] - 1)
            for family, (size, (least, most)) in product(
                sorted(set(families[asked])), SIZES.items()
            ):
                own = (families[asked] == family) & (count[asked] >= least)
                own &= count[asked] <= (most or np.inf)
                if own.any():
                    mean = float(error[own].mean())
                    yield Row(run, variant, seed, family, size, int(own.sum()), mean)

        asked = product(range(self.splits), self.variants)
        table.fill(((run, variant, seed) for seed, variant in asked), rows)
        self.write_page(page(table.rows, data.name, self.updates))


@dataclass(frozen=True)
class Row:
    """Errors of one network on the kernels of one size of one family."""

    run: str
    """Of the data and the training: `csv_rows.run_name`."""
    variant: str
    seed: int
    """Of the split and the network."""
    family: str
    size: str
    kernels: int
    error: float
    """Mean absolute percentage error."""


def of_paper(features: KernelFeatures) -> KernelFeatures:
    """Return the features with zeros in the place of what the published model does not read."""
    whole = np.zeros_like(features.whole)
    whole[:, LAYOUT_COLUMNS] = features.whole[:, LAYOUT_COLUMNS]
    return replace(features, nodes=np.where(OF_PAPER, features.nodes, 0.0), whole=whole)


def predicted(
    learned: KernelData, asked: KernelSet, config: KernelTrainConfig, paper: bool
) -> Float64[np.ndarray, "K"]:
    """Return the seconds of kernels as one network predicts them that learned from others;
    ``paper``: by `OF_PAPER` alone."""
    inputs = of_paper if paper else lambda features: features
    vocabulary = vocabulary_of(learned.kernels.graph.op_type)
    features, seconds = measured_features(learned, vocabulary)
    network = replace(config.network, opcodes=len(vocabulary))
    trained = train_absolute(inputs(features), seconds, replace(config, network=network))
    return np.exp(trained.predict(inputs(kernel_features(asked, vocabulary)))[:, 0])


def operators(data: KernelData) -> Int64[np.ndarray, "K"]:
    """Return [K] operators of each kernel, inputs not counted."""
    real = np.array([opcode(name) != "input" for name in data.kernels.graph.op_type])
    return np.bincount(data.kernels.kernel[real], minlength=data.kernels.num_kernels)


def held_out(
    families: np.ndarray, known: Bool[np.ndarray, "K"], seed: int
) -> Bool[np.ndarray, "K"]:
    """Return [K] kernels of random families that together have at least a fifth of all."""
    held = np.zeros(len(families), bool)
    for family in np.random.default_rng(seed).permutation(sorted(set(families))):
        if held[known].sum() * 5 >= known.sum():
            break
        held |= families == family
    return held


def page(rows: Sequence[Row], data: str, updates: int) -> str:
    """Return the page."""
    variants = [name for name in VARIANTS if any(row.variant == name for row in rows)]
    seeds = sorted({row.seed for row in rows})
    first = [row for row in rows if row.variant == variants[0]]
    held = {seed: sorted({row.family for row in first if row.seed == seed}) for seed in seeds}
    splits = "; ".join(f"split {seed} holds out {', '.join(of)}" for seed, of in held.items())
    kernels = {"kernels": lambda sizes: str(sum(r.kernels for r in first if r.size in sizes))}
    errors = {v: lambda sizes, v=v: _errors(rows, v, sizes) for v in variants}
    gains = {
        f"{two} against {one}": lambda sizes, two=two, one=one: _gain(rows, two, one, sizes)
        for one, two in PAIRS
        if {one, two} <= set(variants)
    }
    return (
        f"# Kernel cost model: errors by the size of the fusion\n\n{data}, one network of "
        f"{updates} updates for each of {len(seeds)} splits by family: {splits}. Mean absolute "
        "percentage errors of kernels, averaged over the splits, with the standard error over "
        "them.\n\n"
        f"{_by_size(kernels | errors)}\n## What the graph is worth\n\nError of one network over "
        "that of another on the same kernels, less 1: the geometric mean over families held out, "
        "and its 95 % interval over families. Negative: the first is better.\n\n"
        f"{_by_size(gains)}"
    )


def _by_size(columns: Mapping[str, Callable[[Sequence[str]], str]]) -> str:
    """A table with a row for each of `ROWS`."""
    return grid_table("operators", ROWS, columns)


def _errors(rows: Sequence[Row], variant: str, sizes: Sequence[str]) -> str:
    own = grouped(_of(rows, variant, sizes), lambda row: row.seed)
    return with_error([_mean_error(own[seed]) for seed in sorted(own)])


def _gain(rows: Sequence[Row], first: str, second: str, sizes: Sequence[str]) -> str:
    one, two = (
        grouped(_of(rows, name, sizes), lambda row: (row.family, row.seed))
        for name in (first, second)
    )
    means = family_means(
        (key[0], float(np.log(_mean_error(one[key]) / _mean_error(two[key]))))
        for key in sorted(one.keys() & two.keys())
    )
    if len(means) < 2:
        return NOTHING
    mean, low, high = (100 * (ratio - 1) for ratio in ratio_of(means))
    return f"{mean:+.1f} % ({low:+.1f} to {high:+.1f})"


def _of(rows: Sequence[Row], variant: str, sizes: Sequence[str]) -> list[Row]:
    return [row for row in rows if row.variant == variant and row.size in sizes]


def _mean_error(rows: Sequence[Row]) -> float:
    """Mean over the kernels of all rows."""
    return float(np.average([row.error for row in rows], weights=[row.kernels for row in rows]))
