"""How long the learned cost model takes for all operators of a graph, beside its rivals.

Run: ``python -m experiments.kernels.learned_pricing_speed``. Each operator is a kernel of its own;
equal kernels are priced once. Seconds from the graph to all prices with nothing remembered,
compilation not counted: kernels are cut, hashed, described and priced. *learned*: the ensemble that
ships; *boosted*: trees on summed features, grown on the same kernels; *analytical*: the roofline,
which needs no kernels. Wall milliseconds, the median of several repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.experiment import Experiment, repeated_seconds
from go_rl.core import OpGraph, load_hardware
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.measure.data import load_kernel_data, plain_seconds
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache
from go_rl.costs.models.kernel_work import kernel_work
from go_rl.costs.models.learned import Learned
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels, summed_features
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.zoo import zoo_graph
from go_rl.report.file_tables import markdown_table

CHIP = load_hardware("cpu-1").devices[0]
HEADS = ("graph", "nodes", "distinct kernels", "learned", "boosted", "analytical",
         "learned / boosted")  # fmt: skip


@dataclass(frozen=True)
class LearnedPricingSpeed(Experiment):
    """Options of this experiment."""

    graphs: tuple[str, ...] = (
        "bert-base",
        "inception-v3-b32-training",
        "amoebanet-d-6-192-training",
        "gnmt-8-layers",
        "gnmt-8-layers-full",
    )
    """Graphs of the zoo."""
    weights: str = "kernels-cpu-1-v3"
    """Of the learned model."""
    data: str = "kernels-cpu-1"
    """That the trees learn from."""
    repeats: int = 9

    def run(self) -> None:
        """Measure and write the page."""
        weights = KernelPredictor.load(self.weights)
        trees = grown(self.data, weights)
        rows = []
        for name in self.graphs:
            rows.append(row(name, weights, trees, self.repeats))
            print(rows[-1], flush=True)
        self.write_page(
            "# Pricing all operators of a graph\n\nWall milliseconds with nothing remembered, "
            f"compilation not counted, the median of {self.repeats}; each operator a kernel, equal "
            f"ones priced once.\n\n{markdown_table(HEADS, rows)}"
        )


def row(name: str, weights: KernelPredictor, trees: BoostedTrees, repeats: int) -> list[str]:
    """Return a graph's row of the table."""
    graph = zoo_graph(name)
    kernels = whole(graph)
    asked: set[str] = set()

    def by_trees(new: KernelSet) -> np.ndarray:
        asked.update(new.hashes)
        return guessed(trees, weights, new)

    learned = median(lambda: Learned(weights).seconds(kernels, CHIP), repeats)
    boosted = median(lambda: KernelCache().seconds(kernels, by_trees), repeats)
    plain = median(lambda: Analytical().seconds(kernels, CHIP), repeats)
    return [name, str(graph.num_nodes), str(len(asked)), f"{learned:.0f}", f"{boosted:.0f}",
            f"{plain:.1f}", f"{learned / boosted:.2f}"]  # fmt: skip


def whole(graph: OpGraph) -> Kernels:
    """Return each operator as a kernel of its own."""
    return kernel_work(KernelSet(graph, np.arange(graph.num_nodes), graph.num_nodes))


def grown(data: str, weights: KernelPredictor) -> BoostedTrees:
    """Return trees that learned all kernels of a data set."""
    known = load_kernel_data(data)
    which = np.flatnonzero(np.isfinite(plain_seconds(known)))
    features = kernel_features(known.kernels.take(which), weights.vocabulary)
    summed = summed_features(features, len(weights.vocabulary))
    return BoostedTrees.fit(SummedKernels(summed, plain_seconds(known)[which]))


def guessed(trees: BoostedTrees, weights: KernelPredictor, kernels: KernelSet) -> np.ndarray:
    """Return what trees predict."""
    features = kernel_features(kernels, weights.vocabulary)
    return trees.predict(summed_features(features, len(weights.vocabulary)))


def median(run: Callable[[], object], repeats: int) -> float:
    """Return the median of wall milliseconds, the first run left out: it compiles."""
    return 1e3 * float(np.median(repeated_seconds(run, repeats)))


if __name__ == "__main__":
    LearnedPricingSpeed.main()
