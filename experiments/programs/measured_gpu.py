"""Predicted and measured on an H100, a GPU that the weights never saw: operators and networks.

Run: ``python -m experiments programs.measured_gpu``. The measurements lie in
``experiments/results/h100``, whose README says how they were made; no GPU is needed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.experiment import RESULTS, Experiment
from experiments.programs.measured_networks import NetworkRow, network_rows, networks_text
from experiments.programs.operator_errors import (
    OperatorErrors,
    errors_by_kind,
    errors_table,
    roofline,
)
from go_rl.costs.devices import with_launch
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import ERROR_GROUPS, OperatorExamples, error_groups
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import OperatorPredictor

ALL, LONG = "all", "all of 0.1 ms and more"
LONG_SECONDS = 1e-4
"""Seconds from which on a launch hardly counts."""
USUAL_LAUNCH = 26e-6
"""Seconds that the roofline adds for a launch on a host of which nothing is known."""
ALONE, IN_GRAPH = "between events", "in a CUDA graph"
LEARNED_CONV, OTHER_CONV = "conv, 3 × 3, stride 1", "conv, others"
TOLD_BY = "add of one element"
"""Operator by which a user states a host."""
HEAD = """# Predicted and measured on an H100

{gpu}, torch {torch}, CUDA {cuda}, cuDNN {cudnn}, PyTorch's own kernels; measured by
`experiments/programs/on_gpu/measure.py`. The weights `{weights}` learned from P4, P100, V100, T4
and A100 (NeuSight's tables) and from an H200 and knew the H100 by its data sheet alone. It is no
stranger: chip and library are the H200's, memory and host are not. Errors are
|predicted / measured − 1|, *bias* is the median of ln(predicted / measured), all in %."""
OPERATORS = """## Operators in float32

{rows:,} operators with sizes drawn anew. *Between events*: one call alone, the host's launch
included, as the weights learned it; the prediction is that of `predict`. *Host told*: the same with
`--launch-us {launch:.1f}`, what an addition of one element takes here. *In a CUDA graph*: one call
among twenty, no host between them; the prediction is what the model says the GPU works, and the
microsecond between two kernels. *Roofline* is 0.7 of peak or bandwidth, between events with a
launch of 26 µs, or the one told."""


@dataclass(frozen=True)
class MeasuredGpu(Experiment):
    """Options of the script."""

    measured: Path = RESULTS / "h100"
    """Folder of the measurements."""
    networks: Path = RESULTS / "h200" / "networks"
    """Folder of the exported networks."""
    weights: str = GPU_WEIGHTS
    """Weights that are judged."""

    def run(self) -> None:
        """Price, compare, write the page."""
        learned = OperatorPredictor.load(self.weights)
        alone, launch = read_measured(self.measured / "operators"), told_launch(self.measured)
        rows = self.write_rows(operator_rows(alone, learned, launch), "_operators.csv")
        document = json.loads((self.measured / "networks.json").read_text())
        device = alone.inputs.devices[0]
        networks = self.write_rows(
            network_rows(self.networks, document["rows"], learned, device, launch), "_networks.csv"
        )
        self.write_page(page(rows, networks, document, self.weights, launch))


def told_launch(folder: Path) -> float:
    """Return the microseconds by which a user with this host would state it."""
    host = json.loads((folder / "host.json").read_text())
    return 1e3 * host["operators"][TOLD_BY]["latency_ms"]


def operator_rows(
    alone: OperatorExamples, learned: OperatorPredictor, launch: float
) -> list[OperatorErrors]:
    """Return the errors of all methods, by kind of operator, timed alone and in a CUDA graph;
    ``launch``: microseconds of a launch on the host of the measurements."""
    devices = tuple(with_launch(each, launch) for each in alone.inputs.devices)
    plain = learned.interval(alone.inputs)
    told = learned.interval(replace(alone.inputs, devices=devices))
    bound = roofline(alone.inputs)
    found: list[OperatorErrors] = []
    for method, seconds, price in (
        ("ours", plain.seconds, plain),
        ("ours, host told", told.seconds, told),
        ("roofline", bound + USUAL_LAUNCH, None),
        ("roofline, host told", bound + 1e-6 * launch, None),
    ):
        inside = price and (price.low <= alone.seconds) & (alone.seconds <= price.high)
        found += errors_by_kind(method, ALONE, seconds, alone.seconds, kinds_of(alone), inside)
    for method, seconds in (
        ("ours", plain.busy + BETWEEN_KERNELS),
        ("ours, host told", told.busy + BETWEEN_KERNELS),
        ("roofline", bound),
    ):
        kinds = kinds_of(replace(alone, seconds=alone.in_graph))
        found += errors_by_kind(method, IN_GRAPH, seconds, alone.in_graph, kinds)
    return found


def kinds_of(examples: OperatorExamples) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the kinds of operators and [R] which rows are of each."""
    group, size = error_groups(examples.inputs.rows), examples.inputs.rows.sizes
    usual = (size["kernel_size"] == 3) & (size["stride"] == 1)
    for number, name in enumerate(ERROR_GROUPS):
        if name == "conv":
            yield LEARNED_CONV, (group == number) & usual
            yield OTHER_CONV, (group == number) & ~usual
        else:
            yield name, group == number
    yield ALL, np.ones(len(group), bool)
    yield LONG, examples.seconds >= LONG_SECONDS


def page(
    rows: Sequence[OperatorErrors], networks: Sequence[NetworkRow],
    document: Mapping[str, Any], weights: str, launch: float,
) -> str:  # fmt: skip
    """Return the page in Markdown."""
    count = next(row.rows for row in rows if row.operators == ALL)
    return "\n\n".join(
        [
            HEAD.format(weights=weights, **document),
            OPERATORS.format(rows=count, launch=launch),
            *(_operator_table(rows, against) for against in (ALONE, IN_GRAPH)),
            networks_text(networks, launch),
        ]
    )


def _operator_table(rows: Sequence[OperatorErrors], against: str) -> str:
    """Median, mean and bias of each method, one row a kind."""

    def told(row: OperatorErrors) -> str:
        numbers = f"{row.median:.0f} / {row.mean:.0f} / {row.bias:+.0f}"
        return numbers + ("" if np.isnan(row.coverage) else f" ({row.coverage:.0f})")

    own = [row for row in rows if row.case == against]
    what = "Median / mean error / bias" + (
        " (in brackets: rows within the 90 % interval):" if against == ALONE else ":"
    )
    return f"{what}\n\n{errors_table(f'operators {against}', own, told).rstrip()}"
