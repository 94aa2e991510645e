"""Runs of CDMPP that its tables share: each is kept as JSON, so that a table goes on where it
stopped.

Rows are those of the data set; networks, labels and updates those of the weights that ship, unless
a run says otherwise. Seconds are predicted by one network.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.experiment import timed
from experiments.page_text import table_lines
from experiments.statistics import mean_cell
from go_rl.core.files.whole_file import write_text
from go_rl.costs.learning.metrics import latency_metrics
from go_rl.costs.learning.splits import HELD_OUT, DataSplit, by_model
from go_rl.costs.programs.learn.code_inputs import of_width
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.network import SMALL
from go_rl.costs.programs.learn.predictor import ProgramCalibration, ProgramPredictor
from go_rl.costs.programs.learn.prepared import InputScale
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig, train_programs_network

Metrics = dict[str, float]
SEEDS = 3


@dataclass(frozen=True)
class TableOptions:
    """Options that the tables share."""

    data: tuple[str, ...] = ("programs-1",)
    """Data sets, by file or by the name of one that ships; or folders of records."""
    runs: str = "build/cdmpp"
    """Folder of finished runs."""
    updates: int = 1500
    """Updates of each network."""
    seeds: int = SEEDS
    """Runs of which a cell is the mean."""
    minutes: float = 1e9
    """Stop behind the run, at least one, that ends later than this; the next call goes on."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Finished runs, one JSON document each, and the examples they learn from."""

    options: TableOptions
    started: float = field(default_factory=time.monotonic)
    made: list[str] = field(default_factory=list)
    """Names of the runs of this call."""
    missing: list[str] = field(default_factory=list)
    """Names of the runs that time did not allow."""

    @cached_property
    def examples(self) -> ProgramExamples:
        """All of the data set."""
        return read_examples(self.options.data)

    def split(self, seed: int) -> DataSplit:
        """Return networks held out (`HELD_OUT`), the rest 8 : 1 : 1."""
        inputs = self.examples.inputs
        return by_model(inputs.task, inputs.networks, HELD_OUT, seed)

    def run_config(self, seed: int) -> ProgramTrainConfig:
        """Return the configuration that ships, of a seed."""
        counts = tuple(int(n) for n in np.unique(self.examples.inputs.leaves))
        network = replace(SMALL, leaf_counts=counts)
        return ProgramTrainConfig(network, updates=self.options.updates, seed=seed)

    def tried(self, name: str, make: Callable[[], Metrics]) -> list[Metrics]:
        """Return the metrics of a run by name, made where they are not there; none where the time
        is over."""
        options = self.options
        end = f"{options.updates}-{len(self.examples.seconds)}"
        path = Path(options.runs) / f"{name}-{end}.json"
        if path.exists():
            return [json.loads(path.read_text())]
        if self.made and time.monotonic() - self.started > 60 * options.minutes:
            self.missing.append(name)
            return []
        found, seconds = timed(make, time.monotonic)
        self.made.append(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({**found, "wall_seconds": seconds}))
        print(f"{name}: {seconds:.0f} s", flush=True)
        return [found]

    def not_run(self) -> list[str]:
        """Return the lines that say what has not run yet."""
        return ["", "## Not run yet", "", f"{', '.join(self.missing)}."] if self.missing else []


def trained(examples: ProgramExamples, config: ProgramTrainConfig) -> ProgramPredictor:
    """Return one network that learned from examples, with layers for all numbers of leaves of its
    configuration and without an interval."""
    inputs = of_width(examples.inputs, config.network.leaf_numbers)
    examples = replace(examples, inputs=inputs)
    scale = InputScale.fit(examples.inputs)
    transform = LabelTransform.fit(config.labels, examples.seconds)
    network = train_programs_network(examples, config, scale, transform)
    unknown, no_interval = np.zeros_like(scale.mean), ProgramCalibration(-1.0, 1.0, 1.0)
    return ProgramPredictor(
        (network,), config, scale, transform, unknown, unknown, no_interval, examples.name, {}
    )


def judged(found: np.ndarray, examples: ProgramExamples, rows: np.ndarray) -> Metrics:
    """Return metrics of predictions [P] for some rows."""
    return latency_metrics(found[rows], examples.seconds[rows], examples.inputs.group[rows])


def means_table(
    found: Mapping[str, Sequence[Metrics]], columns: Mapping[str, str], digits: Mapping[str, int]
) -> list[str]:
    """Return the lines of a table of means over runs, by the name of a row and the metric of a
    column, two decimals unless ``digits`` says otherwise; the last column is the number of runs."""
    rows = [
        [name, *(mean_of(runs, each, digits.get(each, 2)) for each in columns), str(len(runs))]
        for name, runs in found.items()
    ]
    return table_lines(["", *columns.values(), "n"], rows)


def mean_of(runs: Sequence[Metrics], name: str, digits: int = 2) -> str:
    """Return the mean of a metric as a cell; a dash where there is no run."""
    return mean_cell([run[name] for run in runs], digits)


def parameter_count(params: Any) -> int:
    """Return the number of parameters."""
    return sum(int(each.size) for each in jax.tree.leaves(params["params"]))
