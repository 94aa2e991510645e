"""Operators and networks in 16-bit types on two GPUs, predicted from what was learned in float32.

Run: ``python -m experiments programs.element_types``. The measurements lie in
``experiments/results/h200`` and ``h100``; each network and operator as one CUDA graph. The models
learned nothing in any type but float32; constants of `type_rates` are of the H100's operators.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.experiment import RESULTS, Experiment
from experiments.page_text import markdown_table
from experiments.programs.measured_gpu import kinds_of
from experiments.programs.measured_networks import is_fused, packed_graph, priced
from experiments.programs.operator_errors import OperatorErrors, errors_by_kind
from go_rl import retyped
from go_rl.core import ElementType, OpGraph
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.devices import DataSheet, find_device
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import OperatorInputs
from go_rl.costs.operators.launches import eager_launches
from go_rl.costs.operators.launches.launch_prices import PredictsOperators
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import Interval, OperatorPredictor
from go_rl.costs.operators.type_rates import type_rates

TYPES = (ElementType.FLOAT32, ElementType.BFLOAT16, ElementType.FLOAT16)
FLOAT32, *HALVES = MEASURED = tuple(each.label for each in TYPES)
BYTES_ALONE = 2.0
"""Speed-up of a network that only moves bytes, of half the width."""
DEVICES = ("h200", "h100")
TYPED = "h100"
"""GPU of which operators were measured in all types."""
HEAD = """# Operators and networks in 16-bit types, predicted from float32

All as CUDA graphs, predicted are the GPU's part of `predict --fusion none --element-type`.
*Speed-up* is float32 over the type; its error is |ln(predicted / measured)|, which no error of the
float32 prediction enters. Ours is a geometric mean of two estimates by operator
(`docs/predict.md`). Its constants are of the H100's operators below, whose sizes are hardly ever
multiples of 8, and the weights of the two estimates were chosen with the networks of both GPUs in
view. Rivals: every network alike, by the peaks of the data sheet ({peaks:.1f}) or by the bytes
alone ({bytes:.1f}).
"""
OPERATORS = """## Operators

The H100's, each in all types. *Error* is the mean of |predicted / measured − 1| as a CUDA graph,
with the median of ln(predicted / measured); *covered* are the rows whose latency between events
lies within the 90 % interval, which is wider in other types than float32; all in %.
"""


@dataclass(frozen=True)
class TypeRow:
    """One network in one type; milliseconds."""

    device: str
    network: str
    type: str
    measured_float32_ms: float
    measured_ms: float
    predicted_float32_ms: float
    predicted_ms: float
    rates_alone_ms: float
    """By the first estimate: arithmetic and bytes change, latencies do not."""
    roofline_alone_ms: float
    """By the second: the distance from the roofline stays."""

    @property
    def speed_up(self) -> float:
        """Measured."""
        return self.measured_float32_ms / self.measured_ms

    @property
    def predicted_speed_up(self) -> float:
        """Predicted."""
        return self.predicted_float32_ms / self.predicted_ms


@dataclass(frozen=True)
class ElementTypes(Experiment):
    """Options of the script."""

    measured: Path = RESULTS
    """Folder of the measurements of both GPUs."""
    weights: str = GPU_WEIGHTS
    """Weights, which saw the H200 in float32."""

    def run(self) -> None:
        """Price, compare, write the page."""
        learned = OperatorPredictor.load(self.weights)
        rows = [row for each in DEVICES for row in _rows(self.measured, each, learned)]
        operators = list(_typed_rows(self.measured / TYPED / "typed", learned))
        self.write_rows(rows)
        self.write_rows(operators, "_operators.csv")
        self.write_page([*_page(rows), *_operator_page(operators)])


def _rows(folder: Path, device: str, learned: OperatorPredictor) -> Iterator[TypeRow]:
    sheet = find_device(device)
    times: dict[str, dict[str, float]] = {}
    for row in json.loads((folder / device / "networks.json").read_text())["rows"]:
        if "graph" in row and row.get("type") in MEASURED and not is_fused(row["network"]):
            times.setdefault(row["network"], {})[row["type"]] = row["graph"]["ms"]
    for name, measured in times.items():
        graph = packed_graph(folder / "h200" / "networks" / f"{name}.onnx.gz")
        predicted = {each: _milliseconds(graph, each, sheet, learned) for each in measured}
        leaning = [_Leaning(learned, share) for share in (0.0, 1.0)]
        for half in HALVES:
            if half in measured:
                yield TypeRow(
                    device, name, half, measured[FLOAT32], measured[half], predicted[FLOAT32],
                    predicted[half], *(_milliseconds(graph, half, sheet, each) for each in leaning),
                )  # fmt: skip


@dataclass(frozen=True)
class _Leaning:
    """A predictor that gives one of the two estimates more weight."""

    learned: OperatorPredictor
    share: float

    def interval(self, inputs: OperatorInputs) -> Interval:
        if inputs.types is not None:
            types = replace(inputs.types, roofline_share=self.share)
            inputs = replace(inputs, types=types)
        return self.learned.interval(inputs)


def _milliseconds(graph: OpGraph, name: str, sheet: DataSheet, learned: PredictsOperators) -> float:
    """The GPU's part alone."""
    return priced(eager_launches(retyped(graph, name)), sheet, learned)[-1]


def _page(rows: list[TypeRow]) -> Iterator[str]:
    peaks = dict(rates_of(TYPED))["bfloat16"] / find_device(TYPED).matrix_flops
    yield HEAD.format(peaks=peaks, bytes=BYTES_ALONE)
    heads = ("GPU", "network", "type", "float32", "measured", "predicted", "speed-up", "predicted",
             "error")  # fmt: skip
    cells = [
        [row.device, row.network, row.type, *(f"{each:.4g}" for each in (
            row.measured_float32_ms, row.measured_ms, row.predicted_ms, row.speed_up,
            row.predicted_speed_up,
        )), f"{_error(row, row.predicted_speed_up):.0%}"]
        for row in rows
    ]  # fmt: skip
    yield markdown_table(heads, cells)
    yield ""
    for device in DEVICES:
        own = [row for row in rows if row.device == device]
        heads = (f"speed-up on {device} predicted by", "mean error", "median")
        yield markdown_table(heads, _summary(own, peaks))
        milliseconds = [abs(row.predicted_ms / row.measured_ms - 1) for row in own]
        plain = [abs(r.predicted_float32_ms / r.measured_float32_ms - 1) for r in own]
        yield (
            f"\nMilliseconds on {device} are off by {np.mean(milliseconds):.0%} in 16-bit types, "
            f"by {np.mean(plain):.0%} in float32 (mean of |predicted / measured - 1|).\n"
        )


def _summary(rows: list[TypeRow], peaks: float) -> list[list[str]]:
    found = []
    methods: Mapping[str, Any] = {
        "ours": lambda row: row.predicted_speed_up,
        "the first estimate alone": lambda r: r.predicted_float32_ms / r.rates_alone_ms,
        "the second estimate alone": lambda r: r.predicted_float32_ms / r.roofline_alone_ms,
        "the peaks alone": lambda _: peaks,
        "the bytes alone": lambda _: BYTES_ALONE,
    }
    for name, predicted in methods.items():
        errors = [_error(row, predicted(row)) for row in rows]
        found.append([name, f"{np.mean(errors):.0%}", f"{np.median(errors):.0%}"])
    return found


def _error(row: TypeRow, speed_up: float) -> float:
    return float(abs(np.log(speed_up / row.speed_up)))


def _typed_rows(folder: Path, learned: OperatorPredictor) -> Iterator[OperatorErrors]:
    """Yield the errors of all types and kinds, as CUDA graphs; the interval is of latencies between
    events."""
    for each in TYPES:
        found = read_measured(folder / each.label)
        inputs = found.inputs
        rates = dict(rates_of(inputs.devices[0].name))
        types = type_rates(np.full(len(inputs.rows), int(each), np.int8), rates)
        price = learned.interval(replace(inputs, types=types))
        inside = (price.low <= found.seconds) & (found.seconds <= price.high)
        yield from errors_by_kind(
            "ours", each.label, price.busy + BETWEEN_KERNELS, found.in_graph, kinds_of(found),
            inside, price.high / price.low,
        )  # fmt: skip


def _operator_page(rows: Sequence[OperatorErrors]) -> Iterator[str]:
    """Yield the section of the page."""
    yield OPERATORS
    value = {(row.operators, row.case): row for row in rows}
    heads = (
        "operators",
        "rows",
        *(f"{each.label}: error, bias (covered; width)" for each in TYPES),
    )
    lines = []
    for kind in dict.fromkeys(row.operators for row in rows):
        own = [value[kind, each.label] for each in TYPES]
        cells = (f"{r.mean:.0f}, {r.bias:+.0f} ({r.coverage:.0f}; {r.width:.1f})" for r in own)
        lines.append([kind, str(own[0].rows), *cells])
    yield markdown_table(heads, lines)
