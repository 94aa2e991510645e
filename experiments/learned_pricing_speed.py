"""How long the learned cost model takes for all operators of a graph, beside its rivals.

Run: ``python experiments/learned_pricing_speed.py``. Each operator is a kernel of its own; equal
kernels are priced once. Seconds from the graph to all prices with nothing remembered, compilation
not counted: kernels are cut, hashed, described and priced. *learned*: the ensemble that ships;
*boosted*: trees on summed features, grown on the same kernels; *analytical*: the roofline, which
needs no kernels. Wall milliseconds, the median of several repeats.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from go_rl.core import OpGraph, package
from go_rl.core.plan import write_text
from go_rl.cost.analytical import Analytical
from go_rl.cost.kernel_data import load_kernel_data
from go_rl.cost.kernel_work import kernel_work
from go_rl.cost.learned.boosted import BoostedTrees, summed_features, train_boosted
from go_rl.cost.learned.kernel_features import kernel_features
from go_rl.cost.learned.kernel_fit import plain_seconds
from go_rl.cost.learned.kernel_weights import KernelWeights, load_kernel_weights
from go_rl.cost.learned.learned import predict_kernels
from go_rl.kernels import KernelSet, cut_kernels
from go_rl.zoo import zoo_graph

RESULTS = Path(__file__).parent / "results"
NAME = "learned_pricing_speed"
CHIP = package("cpu-1").chips[0]


@dataclass(frozen=True)
class Options:
    """Command line of this experiment."""

    graphs: tuple[str, ...] = (
        "bert-base",
        "inception-v3-b32-training",
        "amoebanet-d-6-192-training",
        "gnmt-8-layers",
        "gnmt-8-layers-full",
    )
    """Graphs of the zoo."""
    weights: str = "kernels-cpu-1"
    """Of the learned model."""
    repeats: int = 9


def main(options: Options) -> None:
    """Measure and write the page."""
    weights, trees = load_kernel_weights(options.weights), grown(options.weights)
    out = io.StringIO()
    out.write(
        "# Pricing all operators of a graph\n\nWall milliseconds with nothing remembered, "
        f"compilation not counted, the median of {options.repeats}; each operator a kernel, equal "
        "ones priced once.\n\n"
        "| graph | nodes | distinct kernels | learned | boosted | analytical | "
        "learned / boosted |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for name in options.graphs:
        graph = zoo_graph(name)
        learned = median(lambda g=graph: price(g, lambda k: told(weights, k)), options.repeats)
        boosted = median(lambda g=graph: price(g, lambda k: guessed(trees, weights, k)),
                         options.repeats)  # fmt: skip
        plain = median(lambda g=graph: roofline(g), options.repeats)
        count = len(price(graph, lambda k: np.ones(k.num_kernels)))
        row = (
            f"| {name} | {graph.num_nodes} | {count} | {learned:.0f} | {boosted:.0f} | "
            f"{plain:.1f} | {learned / boosted:.2f} |\n"
        )
        print(row, end="", flush=True)
        out.write(row)
    write_text(RESULTS / f"{NAME}.md", out.getvalue())


def grown(data: str) -> BoostedTrees:
    """Return trees that learned all kernels of a data set."""
    known = load_kernel_data(data)
    which = np.flatnonzero(np.isfinite(plain_seconds(known)))
    vocabulary = load_kernel_weights(data).vocabulary
    features = kernel_features(known.kernels.take(which), vocabulary)
    return train_boosted(summed_features(features, len(vocabulary)), plain_seconds(known)[which])


def price(graph: OpGraph, seconds: Callable[[KernelSet], np.ndarray]) -> dict[str, float]:
    """Return the seconds of each distinct kernel, by hash."""
    kernels = cut_kernels(graph, np.arange(graph.num_nodes))[0]
    first = {h: k for k, h in reversed(list(enumerate(kernels.hashes)))}
    asked = kernels.take(np.array(sorted(first.values()), np.int64))
    return dict(zip(asked.hashes, seconds(asked).tolist(), strict=True))


def told(weights: KernelWeights, kernels: KernelSet) -> np.ndarray:
    """Return what the ensemble predicts."""
    return predict_kernels(weights, kernels).seconds


def guessed(trees: BoostedTrees, weights: KernelWeights, kernels: KernelSet) -> np.ndarray:
    """Return what trees predict."""
    features = kernel_features(kernels, weights.vocabulary)
    return trees.seconds(summed_features(features, len(weights.vocabulary)))


def roofline(graph: OpGraph) -> np.ndarray:
    """Return what the analytical model says of each operator."""
    return Analytical().seconds(kernel_work(KernelSet(graph, np.arange(graph.num_nodes),
                                                      graph.num_nodes)), CHIP)  # fmt: skip


def median(run: Callable[[], object], repeats: int) -> float:
    """Return the median of wall milliseconds, the first run left out: it compiles."""
    run()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return 1e3 * float(np.median(found))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__, config=(tyro.conf.FlagCreatePairsOff,)))
