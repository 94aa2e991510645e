"""`log_seconds`: what the models of all groups say of operators on any devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int

from go_rl.core import TrainingError
from go_rl.costs.devices import DataSheet
from go_rl.costs.operators import attention_model, product_model, stream_model
from go_rl.costs.operators.architectures import (
    AMPERE,
    GENERATION_COUNT,
    HOPPER,
    generation_of,
    known_generations,
)
from go_rl.costs.operators.conv_residuals import residuals
from go_rl.costs.operators.examples import GROUPS, STREAM_GROUP, OperatorInputs
from go_rl.costs.operators.launches.launch_floor import (
    PRODUCT_SHARPNESS,
    STREAM_SHARPNESS,
    with_floor,
)
from go_rl.costs.operators.pooled_params import UNMEASURED, UsualHost, of_unmeasured
from go_rl.costs.operators.tables.operator_rows import STREAMED
from go_rl.costs.operators.type_rates import Precision

Known = Mapping[str, tuple[int, ...]]
"""Known GPUs: indices of those from which each of `GROUPS` was learned."""
SAME = ("memory_bandwidth", "vector_flops", "multiprocessors", "clock_hz", "l2_bytes")
"""Numbers of the data sheet by which a device is one that was measured."""
HOST_OPERATOR = "add"
"""The operator whose shortest time, stated for a host, says how slow all its launches are."""


class LogSeconds(NamedTuple):
    """Natural logarithms of seconds of ``R`` operators."""

    total: Float64[np.ndarray, "R"]
    body: Float64[np.ndarray, "R"]
    """[R] what the GPU takes."""
    floor: Float64[np.ndarray, "R"]
    """[R] what the host needs for a launch."""
    start: Float64[np.ndarray, "R"]
    """[R] the part of the floor that adds to what the GPU takes; ``body`` has it."""
    uncached: Float64[np.ndarray, "R"]
    """[R] ``body`` if a stream found nothing in the cache, which is hardly measured."""


def log_seconds(
    params: Mapping[str, Mapping[str, np.ndarray]], known: Known,
    sheets: Sequence[DataSheet], inputs: OperatorInputs,
) -> LogSeconds:  # fmt: skip
    """Return what operators take; in a precision of which nothing was learned, as those of float32
    with their own rate and width.

    Args:
        params: of groups.
        known: see `Known`.
        sheets: of the GPUs, by index.
        inputs: operators on any devices.

    Raises:
        TrainingError: the group of some row was not learned, or the host of a device is stated and
            nothing was learned of `HOST_OPERATOR`.
    """
    found = LogSeconds(*(np.zeros(len(inputs.rows)) for _ in LogSeconds._fields))
    stated, slower = _hosts(params, known, sheets, inputs.devices)
    stated = stated[inputs.device]
    for name, rows in inputs.present_groups().items():
        group, part = GROUPS[name], inputs.take(rows)
        if not known[name] and group.precision > Precision.FULL and part.types is not None:
            part, name = replace(part, types=part.types.as_full()), full_sibling(name)
        if not known[name]:
            raise TrainingError(f"these weights have learned nothing of {name}")
        body, floor, start, uncached = _of_group(
            params[name], name, np.array(known[name]), sheets, part, stated[rows], slower
        )
        sharpness = STREAM_SHARPNESS if group.is_stream else PRODUCT_SHARPNESS
        found.total[rows] = with_floor(body, floor, sharpness, np)
        found.body[rows], found.floor[rows] = body, floor
        found.start[rows], found.uncached[rows] = start, uncached
    return found


def full_sibling(name: str) -> str:
    """Return the name of the group of the same operators in float32."""
    return next(each for each, group in GROUPS.items() if group.ops == GROUPS[name].ops)


def _hosts(
    params: Mapping[str, Mapping[str, np.ndarray]], known: Known,
    sheets: Sequence[DataSheet], devices: Sequence[DataSheet],
) -> tuple[Float64[np.ndarray, "devices"], Float64[np.ndarray, "GPUs"]]:  # fmt: skip
    """Logarithms by which hosts are slower than the usual one, the lower median of those that were
    measured: those stated for devices (nan where none is), and those of the measured GPUs (0 where
    it is not known)."""
    stated = np.array([sheet.launch_seconds or np.nan for sheet in devices])
    among, slower = np.array(known[STREAM_GROUP], np.int64), np.zeros(len(sheets))
    if not len(among):
        if not np.isnan(stated).all():
            raise TrainingError(f"these weights have learned nothing of {HOST_OPERATOR}, so a host "
                                "cannot be stated")  # fmt: skip
        return stated, slower
    floor = params[STREAM_GROUP]["floor"][among, STREAMED.index(HOST_OPERATOR)].astype(np.float64)
    usual = _lower_median(floor)
    slower[among] = floor - usual
    return np.log(stated) - usual, slower


def usual_floors(
    floor: Float[np.ndarray, "GPUs ..."], known: Int[np.ndarray, "G"],
    sheets: Sequence[DataSheet], slower: Float64[np.ndarray, "GPUs"],
) -> Float[np.ndarray, "generations ..."]:  # fmt: skip
    """Return floors (or starts) of launches on the usual host, by the generation of the library:
    the lower median over the GPUs that were measured with a like framework (`HOPPER` and later with
    a newer one), or over all where there are none, each put on the usual host.

    Args:
        floor: logarithms of seconds.
        known: indices of the GPUs that count.
        sheets: of the GPUs.
        slower: [GPUs] logarithms by which their hosts are slower than the usual one.
    """
    newer = np.array([(generation_of(sheets[d]) or 0) >= HOPPER for d in known])
    found = []
    for generation in range(GENERATION_COUNT):
        like = newer == (generation >= HOPPER)
        some = known[like] if like.any() else known
        shift = slower[some].reshape(-1, *[1] * (floor.ndim - 1))
        found.append(_lower_median(floor[some] - shift))
    return np.stack(found)


def _lower_median(each: Float[np.ndarray, "G ..."]) -> Float[np.ndarray, "..."]:
    return np.asarray(np.sort(each, axis=0)[(len(each) - 1) // 2])


def _of_group(
    params: Mapping[str, np.ndarray], group: str, known: Int[np.ndarray, "G"],
    sheets: Sequence[DataSheet], inputs: OperatorInputs, stated: Float64[np.ndarray, "R"],
    slower: Float64[np.ndarray, "GPUs"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Body, floor, start and body without cache: means over the generations that a device's library
    may be of."""
    place = places(inputs.devices, sheets, known)[inputs.device]
    usual = usual_floors(params["floor"], known, sheets, slower)
    of_sheets = [AMPERE if (own := generation_of(each)) is None else own for each in sheets]
    starts = usual_floors(params["start"][of_sheets], known, sheets, np.zeros(len(sheets)))
    measured = {each for d in known if (each := generation_of(sheets[d])) is not None}
    may_be = np.array([_may_be(each, measured) for each in inputs.devices])[inputs.device]
    if GROUPS[group].is_stream:
        x, generation = inputs.stream_inputs(), may_be.argmax(1)
        of_host = UsualHost(usual[generation, x.op], starts[generation, x.op])
        own = of_unmeasured(params, of_host, place, generation, x.op)
        own["floor"] = _on_host(own["floor"], of_host.floor, stated)
        body, uncached = (stream_model.log_body(own, x, is_cached=each) for each in (True, False))
        return body, own["floor"], own["start"] + own["floor"], uncached
    work, floor, start = (np.zeros(len(place)) for _ in range(3))
    for generation in np.flatnonzero(may_be.any(0)):
        rows = np.flatnonzero(may_be[:, generation])
        part, same = inputs.take(rows), np.ones(len(rows))
        of_host = UsualHost(usual[generation] * same, starts[generation] * same)
        own = of_unmeasured(params, of_host, place[rows], np.full(len(rows), generation), None)
        own["floor"] = _on_host(own["floor"], of_host.floor, stated[rows])
        floor[rows] += own["floor"]
        start[rows] += own["start"] + own["floor"]
        if GROUPS[group].is_attention:
            work[rows] += attention_model.log_gpu_seconds(own, part.attention_inputs())
        else:
            work[rows] += product_model.log_gpu_seconds(own, part.product_inputs())
    work, floor, start = (each / may_be.sum(1) for each in (work, floor, start))
    if "residuals" in params:
        work = work + residuals(params["residuals"][inputs.with_winograd()], inputs.rows)
    body = np.logaddexp(start, work)
    return body, floor, np.minimum(start, floor), body


def _on_host(
    own: Float[np.ndarray, "R"], usual: Float[np.ndarray, "R"], stated: Float64[np.ndarray, "R"]
) -> Float64[np.ndarray, "R"]:
    """Floors of the host that was measured, or of the usual one made slower where a host is
    ``stated``: a host is the same whatever GPU it has."""
    return np.where(np.isnan(stated), own, usual + stated)


def places(
    devices: Sequence[DataSheet], sheets: Sequence[DataSheet], known: Int[np.ndarray, "G"]
) -> np.ndarray:
    """Return [devices] index of the measured GPU that each one is, or `UNMEASURED`; ``known`` [G]:
    indices of those among the ``sheets`` that count."""
    numbers = {tuple(getattr(sheets[d], name) for name in SAME): int(d) for d in known}
    own = [tuple(getattr(sheet, name) for name in SAME) for sheet in devices]
    return np.array([numbers.get(each, UNMEASURED) for each in own], np.int64)


def _may_be(sheet: DataSheet, measured: Collection[int]) -> list[bool]:
    """[generations] whose kernels a device may run."""
    among = known_generations(generation_of(sheet), measured)
    return [each in among for each in range(GENERATION_COUNT)]
