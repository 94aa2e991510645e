"""`predict`: latency of operators on a GPU of which only the data sheet is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from go_rl.predictors.operators.predictor import OperatorPredictor

WEIGHTS = "gpus-1.1"
"""Name of the weights that ship."""
EVERY_DEVICE = "all"


@dataclass(frozen=True)
class OperatorLatency:
    """One operator, run alone."""

    op: str
    latency_ms: float
    low_ms: float
    high_ms: float
    """Bounds of a 90 % interval."""
    unlike: bool
    """Whether its sizes or the device lie outside what was measured."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the command's JSON."""
        return {
            "latency_ms": self.latency_ms,
            "low_ms": self.low_ms,
            "high_ms": self.high_ms,
            "unlike": self.unlike,
        }


@dataclass(frozen=True)
class Prediction:
    """Operators that run one after the other on a device."""

    device: str
    operators: tuple[OperatorLatency, ...]
    """In the order of the table."""

    @property
    def latency_ms(self) -> float:
        """Sum over the operators."""
        return float(sum(each.latency_ms for each in self.operators))

    @property
    def unlike(self) -> int:
        """Number of operators that are unlike what was measured."""
        return sum(each.unlike for each in self.operators)

    def to_json(self) -> dict[str, Any]:
        """Return the command's JSON document."""
        return {
            "operators": [each.to_json() for each in self.operators],
            "latency_ms": self.latency_ms,
        }


def predict(
    operators: str | Path, device: str | Path, *, weights: str | Path = WEIGHTS
) -> Prediction:
    """Price a table of float32 operators in eager execution on one device.

    Args:
        operators: ``.csv`` or ``.csv.gz`` with the columns of docs/predict.md.
        device: name of the table of devices, or a JSON file with a data sheet.
        weights: those that ship, or a file of `train_operators`.

    Raises:
        OperatorError: the table is malformed.
        DeviceError: there is no such device, or its data sheet is wrong.
        CheckpointError: there are no such weights.
    """
    return _predicted(operators, [device], weights)[0]


def predict_everywhere(
    operators: str | Path, *, weights: str | Path = WEIGHTS
) -> tuple[Prediction, ...]:
    """Price a table of operators on every device of the table, the fastest first.

    Raises:
        See `predict`.
    """
    from go_rl.programs.devices import device_names

    found = _predicted(operators, device_names(), weights)
    return tuple(sorted(found, key=lambda each: each.latency_ms))


def train_operators(data: str | Path, out: str | Path) -> OperatorPredictor:
    """Learn from a folder of measured operators; write weights for `predict`.

    Args:
        data: folder with a table ``OPERATOR.csv`` or ``.csv.gz`` for each operator: its sizes,
            ``latency_ms``, ``device`` and, where known, ``kernel``.
        out: ``.npz`` to be written.

    Raises:
        TrainingError: there is no table, one is malformed, or there are too few rows or devices.
        DeviceError: a device is not in the table of devices.
        CheckpointError: the file cannot be written.
    """
    from go_rl.predictors.operators.measured_tables import read_measured
    from go_rl.predictors.operators.predictor import OperatorPredictor

    learned = OperatorPredictor.fit(read_measured(data))
    learned.save(Path(out))
    return learned


def _predicted(
    operators: str | Path, devices: Sequence[str | Path], weights: str | Path
) -> tuple[Prediction, ...]:
    import numpy as np

    from go_rl.predictors.operators.examples import OperatorInputs
    from go_rl.predictors.operators.predictor import OperatorPredictor
    from go_rl.programs.devices import load_device
    from go_rl.programs.operators import read_operators

    sheets = [load_device(device) for device in devices]
    rows = read_operators(operators)
    learned = OperatorPredictor.load(weights)
    found = []
    for sheet in sheets:
        inputs = OperatorInputs(rows, (sheet,), np.zeros(len(rows), np.int64))
        answer = learned.interval(inputs)
        each = zip(
            rows.op.tolist(), *(1e3 * v for v in answer[:3]), answer.unlike.tolist(), strict=True
        )
        priced = tuple(
            OperatorLatency(op, float(mid), float(low), float(high), unlike)
            for op, mid, low, high, unlike in each
        )
        found.append(Prediction(sheet.name, priced))
    return tuple(found)
