"""Operators in 16-bit types, predicted and measured: the part of `element_types` on operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.page_text import markdown_table
from experiments.programs.measured_gpu import kinds_of
from experiments.programs.operator_errors import OperatorErrors, errors_by_kind
from go_rl.core import ElementType
from go_rl.core.hardware.rates import rates_of
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.type_rates import type_rates

TYPES = (ElementType.FLOAT32, ElementType.BFLOAT16, ElementType.FLOAT16)
TEXT = """## Operators

The H100's, each in all types. *Error* is the mean of |predicted / measured − 1| as a CUDA graph,
with the median of ln(predicted / measured); *covered* are the rows whose latency between events
lies within the 90 % interval, which is wider in other types than float32; all in %.
"""


def typed_rows(folder: Path, learned: OperatorPredictor) -> Iterator[OperatorErrors]:
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


def operator_page(rows: Sequence[OperatorErrors]) -> Iterator[str]:
    """Yield the section of the page."""
    yield TEXT
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
