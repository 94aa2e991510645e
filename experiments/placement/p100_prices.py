"""Errors of the prices of `go_placement_p100.py` on the operators that were measured on a P100."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from go_rl.core import OpKind
from go_rl.core.presets import GPU_CHIPS
from go_rl.costs.learning.metrics import mape
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.operators.examples import ERROR_GROUPS, OperatorExamples, error_groups
from go_rl.costs.operators.measured_tables import of_devices, read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import OperatorRows
from go_rl.graphs.zoo import zoo_graph

DEVICE = "p100"
KINDS = {"bmm": OpKind.MATMUL, "linear": OpKind.MATMUL, "conv": OpKind.CONVOLUTION,
         "softmax": OpKind.REDUCTION, "ln": OpKind.REDUCTION}  # fmt: skip
"""What the analytical model takes operators for; others are element-wise."""


@dataclass(frozen=True)
class PriceError:
    """Of one group of operators on the P100."""

    operators: str
    rows: int
    analytical: float
    """Mean absolute percentage error."""
    analytical_over_measured: float
    """Geometric mean."""
    learned: float
    learned_over_measured: float


def price_errors(folder: Path, learned: OperatorPredictor) -> list[PriceError]:
    """Return the errors on all rows of a P100 in a folder of measured operators."""
    examples = of_devices(read_measured(folder), [DEVICE])
    group = error_groups(examples.inputs.rows)
    answers = {
        "analytical": _analytical(examples.inputs.rows),
        "learned": learned.predict(examples.inputs),
    }
    return [
        _error(name, examples, np.flatnonzero(group == number), answers)
        for number, name in enumerate(ERROR_GROUPS)
        if (group == number).any()
    ]


def _error(
    name: str, examples: OperatorExamples, rows: np.ndarray,
    answers: Mapping[str, Float64[np.ndarray, "R"]],
) -> PriceError:  # fmt: skip
    measured = examples.seconds[rows]
    found: list[float] = []
    for seconds in answers.values():
        found += [mape(seconds[rows], measured),
                  float(np.exp(np.log(seconds[rows] / measured).mean()))]  # fmt: skip
    return PriceError(name, len(rows), *found)


def _analytical(rows: OperatorRows) -> Float64[np.ndarray, "R"]:
    """Seconds by the roofline that plans have; the graph has no say in them."""
    kinds = [int(KINDS.get(op, OpKind.ELEMENTWISE)) for op in rows.op.tolist()]
    kernels = Kernels(
        graph=zoo_graph("bert-tiny"),
        kind=np.array(kinds, np.int8),
        flops=rows.flops(),
        bytes_accessed=rows.least_bytes(),
        streamed_bytes=np.zeros(len(rows)),
    )
    return Analytical().seconds(kernels, GPU_CHIPS[DEVICE])
