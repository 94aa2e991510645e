"""`OperatorPredictor`: seconds of single operators on GPUs of which only the data sheet is known.

A physical model (`product_model`, `stream_model`) is fitted to each measured GPU; on another one
each model is asked with that one's data sheet, and the answers are averaged by similarity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.core import CheckpointError, TrainingError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.predictors.operators import product_model, stream_model
from go_rl.predictors.operators.calibration import Calibration, blend, calibrate, group_of
from go_rl.predictors.operators.examples import (
    ERROR_GROUPS,
    GROUPS,
    STREAM_GROUP,
    OperatorExamples,
    OperatorInputs,
    error_groups,
)
from go_rl.predictors.operators.fitting import Arrays, fit_products, fit_streams
from go_rl.predictors.operators.product_model import PEAK_SHARES
from go_rl.predictors.operators.reach import Reach, reach_of
from go_rl.predictors.operators.similarity import bounded_by_power, weights_of
from go_rl.predictors.predictor import Predictor
from go_rl.programs.devices import DataSheet
from go_rl.runtime.parameter_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

FORMAT, INTERFACE = "go_rl-operators", 1
SHIPPED = Path(__file__).parent / "pretrained"
FEWEST_DEVICES, FEWEST_ROWS = 2, 20
"""GPUs, and rows of a group on each, without which nothing is learned."""
SLOW_HOST = 2.0
"""Times as slow as the median host another may be: part of every interval, for few were seen."""
THROTTLE_SHOWS = 0.5
"""`bounded_by_power` from which a GPU teaches how power bounds products."""
BATCH = 4096
"""Rows that are predicted at once: the memory they take is bounded."""


@dataclass(frozen=True)
class OperatorFitConfig:
    """How the models are fitted."""

    seed: int = 0
    """Of the rows that are drawn."""
    rows: int = 1000
    """Rows of a GPU and group that are learned from, at most."""
    calibration_rows: int = 400
    """Rows of a GPU and operator by which left-out GPUs are judged, at most."""
    updates: int = 300
    """Gradient steps."""

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


@dataclass(frozen=True, eq=False)
class OperatorPredictor(Predictor[OperatorExamples, OperatorInputs]):
    """What was learned."""

    sheets: tuple[DataSheet, ...]
    """[D] measured GPUs."""
    params: Mapping[str, Mapping[str, np.ndarray]]
    """Of groups, each array [GPUs that have it, ...]."""
    known: Mapping[str, tuple[int, ...]]
    """Of each of `GROUPS`, which GPUs have it."""
    calibration: Calibration
    reach: Reach
    card: Mapping[str, Any]
    """Where it comes from: data, configuration."""

    what = "operator latency weights"
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(bool(self.sheets))

    @classmethod
    def fit(
        cls, examples: OperatorExamples, config: OperatorFitConfig | None = None
    ) -> OperatorPredictor:
        """Return what is learned from at least two GPUs."""
        config = config or OperatorFitConfig()
        rng = np.random.default_rng(config.seed)
        params, known = _fit_groups(examples, config, rng)
        return cls.calibrated(examples, params, known, config)

    @classmethod
    def calibrated(
        cls,
        examples: OperatorExamples,
        params: Mapping[str, Mapping[str, np.ndarray]],
        known: Mapping[str, tuple[int, ...]],
        config: OperatorFitConfig,
    ) -> OperatorPredictor:
        """Return the predictor of models that are fitted already, one for each GPU."""
        sheets = examples.inputs.devices
        params = {
            group: arrays if group == STREAM_GROUP else _with_throttle(
                arrays, [bounded_by_power(sheets[d]) for d in known[group]]
            )
            for group, arrays in params.items()
        }  # fmt: skip
        judged = examples.take(_draw_calibration(examples, config))
        logs = _left_out_logs(params, known, judged.inputs)
        found = calibrate(
            logs, np.log(judged.seconds), judged.inputs.device,
            error_groups(judged.inputs.rows), sheets, [known[group] for group in GROUPS],
        )  # fmt: skip
        card = {"config": asdict(config), "rows": len(examples.seconds)}
        return cls(sheets, params, known, found, reach_of(examples.inputs), card)

    def predict(self, inputs: OperatorInputs) -> Float64[np.ndarray, "R"]:
        """Return [R] seconds."""
        return self.interval(inputs).seconds

    def interval(self, inputs: OperatorInputs) -> Interval:
        """Return seconds, the interval, and what is unlike anything measured."""
        parts = [
            self._interval(inputs.take(np.arange(start, min(start + BATCH, len(inputs.rows)))))
            for start in range(0, len(inputs.rows), BATCH)
        ]
        if not parts:
            nothing = np.zeros(0)
            return Interval(nothing, nothing, nothing, np.zeros(0, bool))
        return Interval(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _interval(self, inputs: OperatorInputs) -> Interval:
        logs, floor = log_seconds(self.params, self.known, len(self.sheets), inputs)
        kind = error_groups(inputs.rows)
        weights = self._weights(inputs.devices)[
            :, inputs.device, np.array([group_of(each) for each in range(len(ERROR_GROUPS))])[kind]
        ]
        mean, spread = blend(logs, weights)
        found = self.calibration
        centre = mean + np.array(found.shift)[kind]
        low = centre + np.array(found.low)[kind] * spread
        high = np.exp(centre + np.array(found.high)[kind] * spread)
        seconds = np.exp(centre)
        high = np.maximum(high, seconds + (SLOW_HOST - 1) * floor)
        return Interval(seconds, np.exp(low), high, self.reach.outside(inputs))

    def _weights(self, devices: tuple[DataSheet, ...]) -> np.ndarray:
        """[D, devices, groups] weights of the measured GPUs."""
        found = self.calibration
        weights = np.zeros((len(self.sheets), len(devices), len(GROUPS)))
        for g, group in enumerate(GROUPS):
            sources = self.known[group]
            for d, sheet in enumerate(devices if sources else ()):
                weights[list(sources), d, g] = weights_of(
                    sheet, [self.sheets[each] for each in sources],
                    found.generation[g], found.power[g],
                )  # fmt: skip
        return weights

    def save(self, path: Path) -> None:
        """See `Predictor`."""
        manifest = {
            "format": FORMAT, "interface": INTERFACE, "card": dict(self.card),
            "sheets": [asdict(sheet) for sheet in self.sheets],
            "calibration": asdict(self.calibration), "reach": asdict(self.reach),
            "known": dict(self.known),
        }  # fmt: skip
        write_parameters(path, {g: dict(arrays) for g, arrays in self.params.items()}, manifest)

    @classmethod
    def load(cls, source: str | Path) -> OperatorPredictor:
        """See `Predictor`."""
        path = shipped_or_given(source, SHIPPED, ".npz", cls.what, CheckpointError)
        manifest, arrays = read_parameters(path)
        if manifest.get("format") != FORMAT:
            raise CheckpointError(f"{path}: is no file of {cls.what}")
        if manifest.get("interface") != INTERFACE:
            raise CheckpointError(f"{path}: is of version {manifest.get('interface')!r}, this "
                                  f"go_rl reads {INTERFACE}; train it again")  # fmt: skip
        check_digest(path, manifest, arrays)
        try:
            sheets = tuple(DataSheet(**sheet) for sheet in manifest["sheets"])
            fields = {k: tuple(v) for k, v in manifest["calibration"].items()}
            calibration, reach = Calibration(**fields), Reach(**manifest["reach"])
            card = dict(manifest["card"])
            known = {group: tuple(map(int, manifest["known"][group])) for group in GROUPS}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"{path}: is damaged ({error})") from error
        expected = {group: _initial(group, len(each)) for group, each in known.items() if each}
        check_parameters(path, arrays, expected)
        return cls(sheets, parameter_tree(arrays), known, calibration, reach, card)


def _with_throttle(arrays: Mapping[str, np.ndarray], power: Sequence[float]) -> Arrays:
    """Parameters where GPUs that power does not bound have the mean throttle of those that it
    does: they cannot teach it."""
    bound = np.array(power) > THROTTLE_SHOWS
    throttle = arrays["throttle"].copy()
    if bound.any():
        throttle[~bound] = throttle[bound].mean(0)
    return {**arrays, "throttle": throttle}


def _initial(group: str, count: int) -> Arrays:
    """Arrays of a group before learning, of ``count`` GPUs."""
    model = stream_model if group == STREAM_GROUP else product_model
    return {name: np.stack([each] * count) for name, each in model.initial_params().items()}


def _fit_groups(
    examples: OperatorExamples, config: OperatorFitConfig, rng: np.random.Generator
) -> tuple[dict[str, Arrays], dict[str, tuple[int, ...]]]:
    """Parameters of each group, and which GPUs have it."""
    inputs = examples.inputs
    found: dict[str, Arrays] = {}
    known: dict[str, tuple[int, ...]] = {}
    for group in GROUPS:
        rows = inputs.in_group(group)
        known[group] = tuple(int(each) for each in np.unique(inputs.device[rows]))
        if not known[group]:
            continue
        if len(known[group]) < FEWEST_DEVICES:
            raise TrainingError(f"operators: {group}: {FEWEST_DEVICES} devices or more are needed")
        each = [
            fit_group(examples, rows[inputs.device[rows] == d], group, config, rng)
            for d in known[group]
        ]
        found[group] = {name: np.stack([one[name] for one in each]) for name in each[0]}
    if not found:
        raise TrainingError("operators: there are no rows to learn from")
    return found, known


def fit_group(
    examples: OperatorExamples, rows: np.ndarray, group: str, config: OperatorFitConfig,
    rng: np.random.Generator,
) -> Arrays:  # fmt: skip
    """Return the parameters of one group on one GPU.

    Args:
        examples: of any kind.
        rows: those of the group on the GPU; as many as ``config`` says are drawn.
        group: of `GROUPS`.
        config: of the fit.
        rng: draws the rows.
    """
    if len(rows) < FEWEST_ROWS:
        raise TrainingError(f"operators: {group}: {FEWEST_ROWS} rows or more of each device are "
                            f"needed, not {len(rows)}")  # fmt: skip
    most = 4 * config.rows if group == STREAM_GROUP else config.rows
    return _fit_one(examples.take(rng.permutation(rows)[:most]), group, config)


def _fit_one(examples: OperatorExamples, group: str, config: OperatorFitConfig) -> Arrays:
    if group == STREAM_GROUP:
        return fit_streams(examples.inputs.stream_inputs(), examples.seconds, config.updates)
    x = examples.inputs.product_inputs()
    return fit_products(x, examples.tile, examples.seconds, group, config.updates)


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


def _left_out_logs(
    params: Mapping[str, Mapping[str, np.ndarray]], known: Mapping[str, tuple[int, ...]],
    inputs: OperatorInputs,
) -> Float64[np.ndarray, "D R"]:  # fmt: skip
    """[D, R] logarithms of seconds as if each row's GPU were unknown."""
    logs = np.zeros((len(inputs.devices), len(inputs.rows)))
    for device in np.unique(inputs.device):
        rows = np.flatnonzero(inputs.device == device)
        others = {group: tuple(d for d in each if d != device) for group, each in known.items()}
        kept = {
            group: {
                name: each[[d != device for d in known[group]]] for name, each in arrays.items()
            }
            for group, arrays in params.items()
            if others[group]
        }
        logs[:, rows] = log_seconds(kept, others, len(inputs.devices), inputs.take(rows))[0]
    return logs


def log_seconds(
    params: Mapping[str, Mapping[str, np.ndarray]], known: Mapping[str, tuple[int, ...]],
    count: int, inputs: OperatorInputs,
) -> tuple[Float64[np.ndarray, "D R"], Float64[np.ndarray, "R"]]:  # fmt: skip
    """Return [D, R] logarithms of seconds by the model of each GPU, 0 where it has none, and [R]
    seconds that the host needs for a launch: the median of the GPUs, which all models share, for
    it belongs to the host.

    Raises:
        TrainingError: no GPU has a model of some row.
    """
    logs, floors = np.zeros((count, len(inputs.rows))), np.zeros(len(inputs.rows))
    for group in GROUPS:
        rows = inputs.in_group(group)
        if not len(rows):
            continue
        if not known[group]:
            raise TrainingError(f"these weights have learned nothing of {group}")
        part = inputs.take(rows)
        floor = np.median(params[group]["floor"], axis=0)
        is_stream = group == STREAM_GROUP
        floors[rows] = np.exp(floor[part.stream_inputs().op] if is_stream else floor)
        for place, source in enumerate(known[group]):
            own = {name: each[place] for name, each in params[group].items()} | {"floor": floor}
            if is_stream:
                logs[source, rows] = stream_model.log_seconds(own, part.stream_inputs())
            else:
                x = part.product_inputs()
                logs[source, rows] = product_model.log_seconds(own, x, PEAK_SHARES[group])
    return logs, floors
