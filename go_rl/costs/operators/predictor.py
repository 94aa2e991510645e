"""`OperatorPredictor`: seconds of single operators on GPUs of which only the data sheet is known.

One physical model of each group of operators (`product_model`, `stream_model`) is fitted to all
measured GPUs together; what GPUs do not share is told in `pooled_params`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.core import TrainingError
from go_rl.costs.devices import DataSheet
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.operators.calibration import Calibration, bounds, calibrate, cells
from go_rl.costs.operators.examples import (
    GROUPS,
    NEUSIGHT,
    STREAM_GROUP,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.costs.operators.pooled_params import UNMEASURED, Arrays, initial_params, on_hosts
from go_rl.costs.operators.pricing import Known, LogSeconds, log_seconds, places
from go_rl.costs.operators.reach import Reach, reach_of
from go_rl.runtime.saved_model import SavedKind

KIND = SavedKind(
    "go_rl-operators", "operator latency weights", {"interface": 4},
    shipped=Path(__file__).parent / "pretrained",
)  # fmt: skip
FEWEST_DEVICES, FEWEST_ROWS = 2, 20
"""GPUs without which nothing is learned of NeuSight's operators in float32, and rows of a group on
each."""
BATCH = 4096
"""Rows that are predicted at once: the memory they take is bounded."""
Fitted = Callable[[str, frozenset[int]], Arrays]
"""Parameters of a group, learned without some GPUs."""


@dataclass(frozen=True)
class OperatorFitConfig:
    """Configuration of fitting the models."""

    seed: int = 0
    """Random seed of the rows that are drawn."""
    rows: int = 1000
    """Rows of a GPU and group that are learned from, at most; of streams four times as many."""
    calibration_rows: int = 400
    """Rows of a GPU and operator by which left-out GPUs are judged, at most."""
    updates: int = 500
    """Updates of the parameters."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < (0 if name == "seed" else 1):
                raise TrainingError(f"operators: {name} must be positive, not {value}")


class Interval(NamedTuple):
    """``R`` predictions."""

    seconds: Float64[np.ndarray, "R"]
    low: Float64[np.ndarray, "R"]
    high: Float64[np.ndarray, "R"]
    """[R] bounds of a 90 % interval."""
    unlike: Bool[np.ndarray, "R"]
    """[R] whether sizes or device lie outside what was learned."""
    host: Float64[np.ndarray, "R"]
    """[R] seconds for which the host is busy with the launch; ``seconds`` has them only where the
    GPU waits for it."""
    start: Float64[np.ndarray, "R"]
    """[R] seconds after which the GPU begins; ``seconds`` has them."""
    busy: Float64[np.ndarray, "R"]
    """[R] seconds for which the GPU works."""


@dataclass(frozen=True, eq=False)
class OperatorPredictor(Predictor[OperatorExamples, OperatorInputs]):
    """Operator predictor: the models that were learned."""

    sheets: tuple[DataSheet, ...]
    """[D] measured GPUs."""
    params: Mapping[str, Mapping[str, np.ndarray]]
    """Parameters of groups, as in `pooled_params.initial_params`."""
    known: Known
    """GPUs from which each of `GROUPS` was learned."""
    calibration: Calibration
    reach: Reach
    card: Mapping[str, Any]
    """Provenance: data, configuration."""

    what = KIND.what
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(bool(self.sheets))

    @classmethod
    def fit(
        cls, examples: OperatorExamples, config: OperatorFitConfig | None = None
    ) -> OperatorPredictor:
        """Return what is learned from at least two GPUs."""
        from go_rl.costs.operators.fitting import fit_pooled

        config = config or OperatorFitConfig()
        examples = replace(examples, inputs=examples.inputs.as_learned())
        drawn = {group: examples.take(fit_rows(examples, group, config)) for group in GROUPS}

        def fitted(group: str, left_out: frozenset[int]) -> Arrays:
            return fit_pooled(drawn[group], group, config.updates, left_out)

        return cls.assembled(examples, config, fitted)

    @classmethod
    def assembled(
        cls, examples: OperatorExamples, config: OperatorFitConfig, fitted: Fitted,
        left_out: frozenset[int] = frozenset(),
    ) -> OperatorPredictor:  # fmt: skip
        """Return the predictor of fits with and without each GPU.

        Args:
            examples: measured operators.
            config: of the fits.
            fitted: gives the fits.
            left_out: indices of GPUs of which nothing but the data sheet may be used.
        """
        known = {group: _known(examples.inputs, group, left_out) for group in GROUPS}
        if not any(known.values()):
            raise TrainingError("operators: there are no rows to learn from")
        params = on_hosts({g: fitted(g, left_out) for g, each in known.items() if each})
        kept = np.flatnonzero(~np.isin(examples.inputs.device, list(left_out)))
        used = examples.take(kept)
        judged = used.take(_draw_calibration(used, config))
        found = _calibrated(judged, known, fitted, left_out)
        present = sorted(set(used.inputs.device.tolist()))
        sheets = tuple(examples.inputs.devices[each] for each in present)
        card = {"config": asdict(config), "rows": len(used.seconds),
                "devices": [sheet.device for sheet in sheets]}  # fmt: skip
        reach = reach_of(used.inputs, sheets)
        return cls(examples.inputs.devices, params, known, found, reach, card)

    def predict(self, inputs: OperatorInputs) -> Float64[np.ndarray, "R"]:
        """Return [R] seconds."""
        parts = [
            np.exp(log_seconds(self.params, self.known, self.sheets, each).total)
            for each in _batches(inputs)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def outside(self, inputs: OperatorInputs) -> Bool[np.ndarray, "R"]:
        """Return [R] whether sizes, device or element type lie outside what was learned."""
        found = self.reach.outside(inputs)
        if inputs.types is not None:
            found |= ~inputs.types.is_measured
            for name in GROUPS:
                if not self.known[name]:
                    found[inputs.in_group(name)] = True
        return found

    def has_measured(self, sheet: DataSheet) -> bool:
        """Whether a device is one of those that were measured."""
        measured = sorted({device for each in self.known.values() for device in each})
        return int(places((sheet,), self.sheets, np.array(measured))[0]) != UNMEASURED

    def interval(self, inputs: OperatorInputs) -> Interval:
        """Return seconds, the interval, and what is unlike anything measured."""
        parts = [self._interval(each) for each in _batches(inputs)]
        if not parts:
            nothing = np.zeros(0)
            unlike = np.zeros(0, bool)
            return Interval(nothing, nothing, nothing, unlike, nothing, nothing, nothing)
        return Interval(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _interval(self, inputs: OperatorInputs) -> Interval:
        logs = log_seconds(self.params, self.known, self.sheets, inputs)
        group = error_groups(inputs.rows)
        stated = np.array([sheet.launch_seconds is not None for sheet in inputs.devices])
        half_width = np.array(self.calibration.half_width)[cells(group, logs)]
        half_width = half_width * self.reach.wider(inputs)
        low, high = bounds(half_width, group, logs, stated[inputs.device])
        host, start = np.exp(logs.floor), np.exp(logs.start)
        return Interval(
            np.exp(logs.total), np.exp(low), np.exp(high), self.outside(inputs),
            host, start, np.exp(logs.body) - start,
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """Write the models to a file that `load` reads."""
        manifest = {
            "card": dict(self.card),
            "sheets": [asdict(sheet) for sheet in self.sheets],
            "calibration": asdict(self.calibration), "reach": asdict(self.reach),
            "known": dict(self.known),
        }  # fmt: skip
        KIND.write(path, {g: dict(arrays) for g, arrays in self.params.items()}, manifest)

    @classmethod
    def load(cls, source: str | Path) -> OperatorPredictor:
        with KIND.opened(source) as saved:
            manifest = saved.manifest
            sheets = tuple(DataSheet(**sheet) for sheet in manifest["sheets"])
            learned = manifest["calibration"]
            covered = {name: float(each) for name, each in learned.get("covered", {}).items()}
            calibration = Calibration(tuple(map(float, learned["half_width"])), covered)
            known = {group: tuple(map(int, manifest["known"][group])) for group in GROUPS}
            expected = {g: initial_params(g, len(sheets)) for g, each in known.items() if each}
            return cls(
                sheets, saved.tree(expected), known, calibration, Reach(**manifest["reach"]),
                dict(manifest["card"]),
            )  # fmt: skip


def _batches(inputs: OperatorInputs) -> Iterator[OperatorInputs]:
    for start in range(0, len(inputs.rows), BATCH):
        yield inputs.take(np.arange(start, min(start + BATCH, len(inputs.rows)))).as_learned()


def _known(inputs: OperatorInputs, group: str, left_out: frozenset[int]) -> tuple[int, ...]:
    """The GPUs from which a group is learned."""
    present = np.unique(inputs.device[inputs.in_group(group)]).tolist()
    known = tuple(each for each in present if each not in left_out)
    if known and group in NEUSIGHT and len(known) < FEWEST_DEVICES:
        raise TrainingError(f"operators: {group}: {FEWEST_DEVICES} devices or more are needed")
    return known


def fit_rows(examples: OperatorExamples, group: str, config: OperatorFitConfig) -> np.ndarray:
    """Return the rows of a group from which is learned: this many of each GPU.

    Raises:
        TrainingError: a GPU has too few, or there is one GPU only.
    """
    _known(examples.inputs, group, frozenset())
    rng = np.random.default_rng(config.seed)
    rows = examples.inputs.in_group(group)
    most = 4 * config.rows if GROUPS[group].is_stream else config.rows
    kept = [np.zeros(0, np.int64)]
    for device in np.unique(examples.inputs.device[rows]):
        own = rows[examples.inputs.device[rows] == device]
        if len(own) < FEWEST_ROWS:
            raise TrainingError(f"operators: {group}: {FEWEST_ROWS} rows or more of each device "
                                f"are needed, not {len(own)}")  # fmt: skip
        kept.append(rng.permutation(own)[:most])
    return np.concatenate(kept)


def _draw_calibration(examples: OperatorExamples, config: OperatorFitConfig) -> np.ndarray:
    """Rows by which left-out GPUs are judged: of each GPU and operator as many."""
    rng = np.random.default_rng((config.seed, 1))
    op, device = examples.inputs.rows.op, examples.inputs.device
    kept = []
    for name in np.unique(op):
        for each in np.unique(device):
            rows = np.flatnonzero((op == name) & (device == each))
            kept.append(rng.permutation(rows)[: config.calibration_rows])
    return np.concatenate(kept)


def _calibrated(
    judged: OperatorExamples, known: Known, fitted: Fitted, left_out: frozenset[int]
) -> Calibration:
    """Intervals by what fits without each GPU say of it; what one GPU alone measured tells
    none."""
    inputs = judged.inputs
    logs = LogSeconds(*(np.zeros(len(judged.seconds)) for _ in LogSeconds._fields))
    told = np.zeros(len(judged.seconds), bool)
    for device in np.unique(inputs.device):
        rows = np.flatnonzero(inputs.device == device)
        without = left_out | {int(device)}
        others = {g: tuple(d for d in each if d != device) for g, each in known.items()}
        priced = {g for g, each in known.items() if device in each} | {STREAM_GROUP}
        params = on_hosts({g: fitted(g, without) for g in priced if others[g]})
        alone = [inputs.take(rows).in_group(g) for g in priced if not others[g]]
        rows = np.delete(rows, np.concatenate([np.zeros(0, np.int64), *alone]))
        found = log_seconds(params, others, inputs.devices, inputs.take(rows))
        for whole, part in zip(logs, found, strict=True):
            whole[rows] = part
        told[rows] = True
    groups, logs = error_groups(inputs.rows)[told], LogSeconds(*(each[told] for each in logs))
    return calibrate(np.log(judged.seconds[told]), logs, groups, inputs.device[told])
