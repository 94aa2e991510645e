"""Operators and networks in TF32, bfloat16 and float16, and fused attention: times and prices.

Run: ``python -m experiments programs.element_types``. The measurements lie in
``experiments/results/h200`` and ``h100``; each network and operator as one CUDA graph. The weights
learned the H200's operators; the H100's, of other sizes, and all networks are for judging alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.experiment import RESULTS, Experiment
from experiments.page_text import markdown_table
from experiments.programs.measured_networks import is_fused, measured_graph, priced
from experiments.programs.operator_errors import (
    OperatorErrors,
    errors_by_kind,
    errors_table,
    roofline,
)
from go_rl.core import ElementType, OpGraph
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.devices import DataSheet, find_device
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import GROUPS, OperatorExamples
from go_rl.costs.operators.launches import eager_launches
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.type_rates import Precision

FLOAT32 = ElementType.FLOAT32.label
TYPES = tuple(e.label for e in (ElementType.TF32, ElementType.BFLOAT16, ElementType.FLOAT16))
DEVICES = ("h200", "h100")
HELD_OUT = "h100"
"""GPU from whose operators nothing was learned."""
FOLDERS = ("half", "more", "typed")
"""Of its measurements."""
LEFT_OUT = ("bert-large-b8-s512-fused",)
"""Networks that cannot be captured: what was timed as a CUDA graph is a module exported before,
with attention in pieces, and eager they wait for the host."""
BYTES_ALONE = 2.0
"""Speed-up of a network in 16 bits that only moves bytes."""
HEAD = """# Operators and networks in other element types, and fused attention

Weights `{weights}`. *Error* is predicted / measured − 1 as one CUDA graph, the GPU's part of
`predict --fusion none --element-type`. The weights learned operators of an H200 in bfloat16,
float16 and TF32, of sizes drawn as for the H100 below but by another seed; of the H100 they know
the data sheet. Chip and libraries are the same, memory and cache are not: how other generations do
in these types is not known.
"""
NETWORKS = """## Networks

Milliseconds as one CUDA graph. The graphs that are priced are those of `torch.export` in float32
and in bfloat16.
"""
OPERATORS = """## Operators on the H100, which taught nothing

Mean and median of |predicted / measured − 1| and the median of ln(predicted / measured), in %.
*By float32* is what the parameters of float32 say with the rates and widths of the type (the former
form, without its corrections); *roofline* 0.7 of the type's peak or of the bandwidth.
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

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_ms / self.measured_ms - 1


@dataclass(frozen=True)
class ElementTypes(Experiment):
    """Options of the script."""

    measured: Path = RESULTS
    """Folder of the measurements of both GPUs."""
    weights: str = GPU_WEIGHTS
    """Weights that are judged."""

    def run(self) -> None:
        """Price, compare, write the page."""
        learned = OperatorPredictor.load(self.weights)
        rows = self.write_rows(row for d in DEVICES for row in _rows(self.measured, d, learned))
        found = read_measured(*(self.measured / HELD_OUT / each for each in FOLDERS))
        operators = self.write_rows(operator_rows(found, learned), "_operators.csv")
        pages = (_network_page(rows), _operator_page(operators))
        self.write_page([HEAD.format(weights=self.weights), *(x for page in pages for x in page)])


def _rows(folder: Path, device: str, learned: OperatorPredictor) -> Iterator[TypeRow]:
    sheet = find_device(device)
    for name, measured in network_times(folder / device).items():
        predicted = {
            each: _milliseconds(measured_graph(folder / "h200" / "networks", name, each), sheet,
                                learned)
            for each in measured
        }  # fmt: skip
        for each in TYPES:
            if each in measured:
                yield TypeRow(
                    device, name, each, measured[FLOAT32], measured[each], predicted[FLOAT32],
                    predicted[each],
                )  # fmt: skip


def network_times(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """Return milliseconds of networks that were measured on a device, by name and type."""
    found: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("*networks.json")):
        for row in json.loads(path.read_text())["rows"]:
            timed = "graph" in row and row.get("type") in (FLOAT32, *TYPES)
            if timed and row["network"] not in LEFT_OUT:
                found.setdefault(row["network"], {})[row["type"]] = row["graph"]["ms"]
    return found


def _milliseconds(graph: OpGraph, sheet: DataSheet, learned: OperatorPredictor) -> float:
    """The GPU's part alone."""
    return priced(eager_launches(graph), sheet, learned)[-1]


def _network_page(rows: Sequence[TypeRow]) -> Iterator[str]:
    yield NETWORKS
    for device in DEVICES:
        own = [row for row in rows if row.device == device]
        heads = ("network on " + device, *(f"{each}: ms, predicted, error" for each in TYPES))
        value = {(row.network, row.type): row for row in own}
        cells = [
            [name, *(_cell(value.get((name, each))) for each in TYPES)]
            for name in dict.fromkeys(row.network for row in own)
        ]
        yield markdown_table(heads, cells)
        heads = ("mean error on " + device, *TYPES)
        yield markdown_table(heads, list(_means(own)))


def _cell(row: TypeRow | None) -> str:
    if row is None:
        return "–"
    return f"{row.measured_ms:.4g}, {row.predicted_ms:.4g}, {row.error:+.0%}"


def _means(rows: Sequence[TypeRow]) -> Iterator[list[str]]:
    sheet = find_device(rows[0].device)
    rates = dict(rates_of(rows[0].device))
    for label, fused in (("attention in pieces", False), ("fused attention, decoding", True)):
        own = [row for row in rows if is_fused(row.network) is fused]
        methods = {
            "ours": lambda row: row.predicted_ms,
            "float32's prediction over the gain in peak": (
                lambda row: row.predicted_float32_ms * sheet.matrix_flops / rates[row.type]
            ),
            "float32's prediction over the gain in bytes": (
                lambda row: row.predicted_float32_ms / (1 if row.type == TYPES[0] else BYTES_ALONE)
            ),
        }
        for method, predicted in methods.items():
            errors = [
                np.mean([abs(predicted(r) / r.measured_ms - 1) for r in own if r.type == each])
                for each in TYPES
            ]
            yield [f"{label} ({len(own) // len(TYPES)}): {method}", *(f"{e:.1%}" for e in errors)]


def operator_rows(found: OperatorExamples, learned: OperatorPredictor) -> list[OperatorErrors]:
    """Return the errors of all methods on operators within a CUDA graph, by group."""
    inputs = found.inputs
    assert inputs.types is not None
    full = replace(inputs, types=inputs.types.as_full())
    methods = {
        "ours": learned.interval(inputs).busy + BETWEEN_KERNELS,
        "by float32": learned.interval(full).busy + BETWEEN_KERNELS,
        "roofline": roofline(inputs) + BETWEEN_KERNELS,
    }
    kinds = [
        (name, np.isin(np.arange(len(inputs.rows)), inputs.in_group(name)))
        for name, group in GROUPS.items()
        if group.precision > Precision.FULL or group.host != name
    ]
    return [
        row
        for method, seconds in methods.items()
        for row in errors_by_kind(method, HELD_OUT, seconds, found.in_graph, kinds)
    ]


def _operator_page(operators: Sequence[OperatorErrors]) -> Iterator[str]:
    yield OPERATORS
    yield errors_table(
        "operators", operators, lambda row: f"{row.mean:.0f}, {row.median:.0f}, {row.bias:+.0f}"
    )
