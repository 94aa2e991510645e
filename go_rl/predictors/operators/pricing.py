"""`log_seconds`: what the models of all groups say of operators on any devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64, Int

from go_rl.core import TrainingError
from go_rl.predictors.operators import product_model, stream_model
from go_rl.predictors.operators.architectures import GENERATION_COUNT, generation_of
from go_rl.predictors.operators.examples import GROUPS, STREAM_GROUP, OperatorInputs
from go_rl.predictors.operators.pooled_params import UNMEASURED, of_unmeasured
from go_rl.programs.devices import DataSheet

Known = Mapping[str, tuple[int, ...]]
"""Of each of `GROUPS`, indices of the GPUs from which it was learned."""
SAME = ("memory_bandwidth", "vector_flops", "multiprocessors", "clock_hz", "l2_bytes")
"""Numbers of the data sheet by which a device is one that was measured."""


def log_seconds(
    params: Mapping[str, Mapping[str, np.ndarray]], known: Known,
    sheets: Sequence[DataSheet], inputs: OperatorInputs,
) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:  # fmt: skip
    """Return [R] natural logarithms of seconds, and [R] seconds that the host needs for a launch.

    Args:
        params: of groups.
        known: see `Known`.
        sheets: of the GPUs, by index.
        inputs: operators on any devices.

    Raises:
        TrainingError: the group of some row was not learned.
    """
    logs, floors = np.zeros(len(inputs.rows)), np.zeros(len(inputs.rows))
    for group in GROUPS:
        rows = inputs.in_group(group)
        if not len(rows):
            continue
        if not known[group]:
            raise TrainingError(f"these weights have learned nothing of {group}")
        logs[rows], floors[rows] = _of_group(
            params[group], group, np.array(known[group]), sheets, inputs.take(rows)
        )
    return logs, floors


def _of_group(
    params: Mapping[str, np.ndarray], group: str, known: Int[np.ndarray, "G"],
    sheets: Sequence[DataSheet], inputs: OperatorInputs,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Mean over the generations that a device's library may be of."""
    place = _places(inputs.devices, sheets, known)[inputs.device]
    measured = sorted({each for d in known if (each := generation_of(sheets[d])) is not None})
    if group == STREAM_GROUP:
        x = inputs.stream_inputs()
        own = of_unmeasured(params, known, place, np.zeros_like(place), x.op)
        return stream_model.log_seconds(own, x), np.exp(own["floor"])
    may_be = np.array([_may_be(each, measured) for each in inputs.devices])[inputs.device]
    logs, floor = np.zeros(len(place)), np.zeros(len(place))
    for generation in np.flatnonzero(may_be.any(0)):
        rows = np.flatnonzero(may_be[:, generation])
        part = inputs.take(rows)
        same = np.full(len(rows), generation)
        own = of_unmeasured(params, known, place[rows], same, None)
        floor[rows] = np.exp(own["floor"])
        logs[rows] += product_model.log_seconds(own, part.product_inputs())
    return logs / may_be.sum(1), floor


def _places(
    devices: Sequence[DataSheet], sheets: Sequence[DataSheet], known: Int[np.ndarray, "G"]
) -> np.ndarray:
    """[devices] index of the measured GPU that each one is, or `UNMEASURED`."""
    numbers = {tuple(getattr(sheets[d], name) for name in SAME): int(d) for d in known}
    own = [tuple(getattr(sheet, name) for name in SAME) for sheet in devices]
    return np.array([numbers.get(each, UNMEASURED) for each in own], np.int64)


def _may_be(sheet: DataSheet, measured: Sequence[int]) -> list[bool]:
    """[generations] whose kernels a device may run: its own if any was measured, else all that
    were."""
    own = generation_of(sheet)
    among = [own] if own in measured else measured
    return [each in among for each in range(GENERATION_COUNT)]
