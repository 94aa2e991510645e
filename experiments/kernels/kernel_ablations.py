"""Ablations of the kernel cost model, and its error by the amount of data.

Run: ``python -m experiments.kernels.kernel_ablations [--data kernels-cpu-1] [--steps 3000]``. One
network each, on a random split; the parts on several splits, for networks that differ by their seed
alone differ, too. Mean and median absolute percentage errors of the kernels held out, and the
milliseconds in which all of these are priced, once compiled. A run that was cut off goes on where
it stopped (``results/kernel_ablations.csv``). The rank losses are compared by ``kernel_ranks.py``.

Weights that ship have GraphSAGE and the *Transformer* reduction (`kernel_fusion_size.py` says why).

Published ("A Learnt Performance Model for TPUs"): GraphSAGE ahead of a sequence model and of graph
attention; reductions that are not learned nearly as good as an LSTM or a Transformer, and faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment, timed
from experiments.rows import grouped, kept_of_run, run_name
from experiments.statistics import mean_cell, with_error
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data, plain_seconds
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.report.file_tables import markdown_table

SHARES = (0.0625, 0.125, 0.25, 0.5)
"""Of the training split, in the learning curve; the whole is the first row of the parts."""
DRAWS = 10


@dataclass(frozen=True)
class KernelAblations(Experiment):
    """Options of this experiment."""

    data: str = "kernels-cpu-1"
    """A data set that ships, or a file."""
    steps: int = 3000
    """Updates of each network."""
    draws: int = DRAWS
    """Hyper-parameters drawn."""
    repeats: int = 3
    """Splits on which the parts are compared; data and draws have the first."""
    seed: int = 0
    """Of the first split, and of the draws; the other splits have the next."""

    def run(self) -> None:
        """Train what is missing and write the page."""
        data = load_kernel_data(self.data)
        known = np.flatnonzero(np.isfinite(plain_seconds(data)))
        run = run_name(f"{self.steps} {self.seed}", plain_seconds(data))
        table = kept_of_run(Row, self.path(".csv"), run)
        done = {row.key for row in table.rows}
        judged = len(known) // 5
        for seed in range(self.seed, self.seed + self.repeats):
            order = np.random.default_rng(seed).permutation(known)
            for variant in variants(replace(self, seed=seed)):
                key = (seed, variant.part, variant.name)
                if key in done or (seed != self.seed and variant.part in ONCE):
                    continue
                table.add(judge(data, variant, order[judged:], order[:judged], run))
        self.write_page(page(table.rows, data.name, judged, self.steps))


ONCE = ("data", "draws")
"""Variants that run on one split only."""


@dataclass(frozen=True)
class Variant:
    """One row of the table."""

    part: str
    name: str
    config: KernelTrainConfig
    share: float = 1.0
    """Of the training split."""


@dataclass(frozen=True)
class Row:
    """Result of a variant."""

    run: str
    """Of the data, the split and the training: `csv_rows.run_name`."""
    part: str
    variant: str
    kernels: int
    """Learned from."""
    mean: float
    """Absolute percentage error."""
    median: float
    milliseconds: float
    """For all kernels held out."""
    seed: int
    """Of the split and the network."""

    @property
    def key(self) -> tuple[int, str, str]:
        """Key of a row."""
        return self.seed, self.part, self.variant


def variants(options: KernelAblations) -> list[Variant]:
    """Return what is compared; all others differ from the first in one part."""
    network = KernelNetworkConfig(encoder="graphsage", reduction="column")
    plain = KernelTrainConfig(network, steps=options.steps, seed=options.seed)

    def with_network(part: str, name: str, network: KernelNetworkConfig) -> Variant:
        return Variant(part, name, replace(plain, network=network))

    found = [Variant("base", "GraphSAGE, column reduction", plain)]
    for encoder, name in (
        ("attention", "graph attention"), ("sequence", "LSTM over the nodes"),
        ("none", "no neighbours"),
    ):  # fmt: skip
        found.append(with_network("encoder", name, replace(network, encoder=encoder)))
    for reduction, name in (("lstm", "LSTM"), ("transformer", "Transformer")):
        found.append(with_network("reduction", name, replace(network, reduction=reduction)))
    found.append(with_network("ours", "without the sum of parts", replace(network, additive=False)))
    found.append(with_network("ours", "without entering nodes", replace(network, skip=False)))
    found += [Variant("data", f"{share:.4g} of the kernels", plain, share) for share in SHARES]
    rng = np.random.default_rng(options.seed)
    return found + [_drawn(plain, i, rng) for i in range(options.draws)]


def _drawn(plain: KernelTrainConfig, number: int, rng: np.random.Generator) -> Variant:
    """Hyper-parameters drawn from plausible ranges."""
    width, layers = int(rng.choice([32, 64, 96])), int(rng.integers(2, 5))
    head, rate = int(rng.choice([64, 128, 256])), float(10 ** rng.uniform(-3, -2))
    network = replace(plain.network, width=width, layers=layers, head=head)
    name = f"{number + 1}: width {width}, {layers} layers, head {head}, rate {rate:.1e}"
    return Variant("draws", name, replace(plain, network=network, learning_rate=rate))


def judge(data: KernelData, variant: Variant, train: np.ndarray, test: np.ndarray, run: str) -> Row:
    """Train one network and test it."""
    part = train[: max(1, round(variant.share * len(train)))]
    weights = KernelPredictor.fit(data.take(part), variant.config, 1)
    asked, seconds = data.kernels.take(test), plain_seconds(data)[test]
    error = 100 * np.abs(weights.predict(asked) / seconds - 1)
    _, spent = timed(lambda: weights.predict(asked))
    mean, median = float(error.mean()), float(np.median(error))
    seed = variant.config.seed
    return Row(run, variant.part, variant.name, len(part), mean, median, 1e3 * spent, seed)


def page(rows: Sequence[Row], data: str, judged: int, steps: int) -> str:
    """Return the page: of each variant the averages over its splits."""
    variants = grouped(rows, lambda row: (row.part, row.variant))
    lines = [
        [
            *names, str(own[0].kernels), str(len(own)), with_error([row.mean for row in own]),
            mean_cell([row.median for row in own], 1),
            f"{np.median([row.milliseconds for row in own]):.0f}",
        ]
        for names, own in variants.items()
    ]  # fmt: skip
    heads = ["part", "variant", "kernels", "splits", "mean", "median", "milliseconds"]
    text = (
        f"# What the parts of the kernel cost model are worth\n\n{data}, one network of {steps} "
        f"updates for each random split, {judged} kernels held out; absolute percentage errors, "
        "their average over the splits with its standard error, and the time in which all of them "
        f"are priced.\n\n{markdown_table(heads, lines, ('variant',))}"
    )
    drawn = [row.mean for row in rows if row.part == "draws"]
    if drawn:
        text += (
            f"\nOver {len(drawn)} draws of hyper-parameters the mean error lies between "
            f"{min(drawn):.1f} and {max(drawn):.1f} %, {np.mean(drawn):.1f} % on average with a "
            f"deviation of {np.std(drawn):.1f}.\n"
        )
    return text


if __name__ == "__main__":
    KernelAblations.main()
