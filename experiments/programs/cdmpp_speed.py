"""Speed of CDMPP: training samples a second, and pricing 400 programs.

Run: ``python -m experiments.programs.cdmpp_speed``. Updates are timed behind the first of each
shape, which compile; prices behind a first pricing. Times are of this machine, beside whatever else
runs there: ratios within a run count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from experiments.pages import RESULTS, run_script, write_page
from experiments.programs.cdmpp_cross_model import tree_features
from experiments.programs.cdmpp_runs import Runs, TableOptions, trained
from go_rl.predictors.boosted import BoostedConfig, BoostedTrees, SummedKernels
from go_rl.predictors.programs.network import NAMED_CONFIGS, parameter_count
from go_rl.predictors.programs.training import ProgramTrainConfig

NAME = "cdmpp_speed"
PROGRAMS = 400
REPEATS = 20


@dataclass(frozen=True)
class Options(TableOptions):
    """Options of this table."""

    configs: tuple[str, ...] = ("small",)
    """Of the network: small, paper."""
    updates: int = 200
    """Timed."""


def main(options: Options) -> None:
    """Make the table."""
    runs = Runs(options, time.monotonic())
    rows = [_of_network(runs, name, options) for name in options.configs]
    rows.append(_of_trees(runs))
    lines = [
        "# Speed of CDMPP",
        "",
        f"Training: updates on {len(runs.examples.seconds):,} programs, compilation left out.",
        f"Pricing: {PROGRAMS} programs by one network, features known, least of {REPEATS} repeats,",
        f"on {len(os.sched_getaffinity(0))} cores beside other work.",
        "",
        "| | parameters | training samples/s | ms for 400 programs |",
        "|---|---|---|---|",
        *rows,
        "",
    ]
    write_page(RESULTS / NAME, "\n".join(lines), __file__)


def _of_network(runs: Runs, name: str, options: Options) -> str:
    counts = runs.run_config(0).network.leaf_counts
    config = ProgramTrainConfig(replace(NAMED_CONFIGS[name], leaf_counts=counts), steps=1)
    trained(runs.examples, replace(config, steps=options.updates // 2))  # compiles
    began = time.perf_counter()
    learned = trained(runs.examples, replace(config, steps=options.updates))
    speed = options.updates * config.batch / (time.perf_counter() - began)
    inputs = runs.examples.inputs.take(_some(runs))
    least = _least(lambda: learned.seconds(inputs))
    size = parameter_count(learned.network.params)
    return f"| CDMPP, {name} | {size:,} | {speed:,.0f} | {1e3 * least:.1f} |"


def _of_trees(runs: Runs) -> str:
    features, examples = tree_features(runs.examples), runs.examples
    began = time.perf_counter()
    config = BoostedConfig(trees=600)
    learned = BoostedTrees.fit(SummedKernels(features, examples.seconds), config)
    speed = len(examples.seconds) * config.trees / (time.perf_counter() - began)
    least = _least(lambda: learned.predict(features[_some(runs)]))
    return f"| boosted trees (a sample is a row of a tree) | – | {speed:,.0f} | {1e3 * least:.1f} |"


def _some(runs: Runs) -> np.ndarray:
    return np.arange(PROGRAMS) % len(runs.examples.seconds)


def _least(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    run_script(main, Options, __doc__)
