"""Parameters that GPUs share, and the few that are of a generation or of one GPU and its host.

Of a GPU that was not measured nothing of its own is known: its host is the usual one
(`pricing.usual_floors`); its library likes the tiles that its generation likes; a generation that
was never measured takes the answers of the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from go_rl.costs.operators import attention_model, product_model, stream_model
from go_rl.costs.operators.architectures import GENERATION_COUNT, PASCAL
from go_rl.costs.operators.conv_residuals import TERMS
from go_rl.costs.operators.examples import GROUPS
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables.operator_rows import CONVOLUTIONS, MOVES, ONE_READ, STREAMED

Arrays = dict[str, np.ndarray]
SPLITS = ("splits", "split_from", "split_launch", "few", "idle")
STARTS = {"products": -1.7, "streams": -0.6}
"""Logarithms of the part of the floor that adds to what the GPU takes, from which learning
starts."""
UNMEASURED = -1
"""Place of a GPU without measurements."""
FLOORS = {"linear": -9.8, "conv": -9.7, "grouped": -9.7}
"""Logarithms of the seconds of a launch from which learning starts, by operator: what few elements
take."""
USUAL_FLOOR = -10.3
"""The same of all others."""


class UsualHost(NamedTuple):
    """Needs of launches on the usual host."""

    floor: Float[np.ndarray, "R"]
    """[R] logarithms of seconds."""
    start: Float[np.ndarray, "R"]
    """[R] logarithms of shares of the floor."""


def initial_params(group: str, count: int) -> Arrays:
    """Return the parameters of one of `GROUPS` from which learning starts, of this many GPUs;
    scalars are [1].

    Not shared by all GPUs are ``floor`` and ``liked_here`` [GPUs …]; ``liked_by``, ``start`` (the
    logarithm of a share of the floor) and `SPLITS` [generations …]; the strides [2] (Pascal and
    before, later); the residuals [2] (library without and with Winograd's convolutions).
    """
    own = GROUPS[group]
    if own.is_stream:
        floors = np.full((count, len(STREAMED)), USUAL_FLOOR, np.float32)
        starts = np.full((GENERATION_COUNT, len(STREAMED)), STARTS["streams"], np.float32)
        return {**_vectors(stream_model.initial_params()), "floor": floors, "start": starts}
    found = {
        "floor": np.full(count, FLOORS.get(own.ops[0], USUAL_FLOOR), np.float32),
        "start": np.full(GENERATION_COUNT, STARTS["products"], np.float32),
    }
    if own.is_attention:
        found |= attention_model.initial_params()
    else:
        shared = product_model.initial_params()
        found |= {
            **shared,
            **{name: np.full(GENERATION_COUNT, shared[name]) for name in SPLITS},
            "liked": np.zeros(len(TILES), np.float32),
            "liked_by": np.zeros((GENERATION_COUNT, len(TILES)), np.float32),
            "liked_here": np.zeros((count, len(TILES)), np.float32),
            "stride": np.full(2, -3.0, np.float32),
            "stride_from": np.full(2, 5.0, np.float32),
        }
        if own.ops[0] in CONVOLUTIONS:
            found["residuals"] = np.zeros((2, TERMS), np.float32)
            found |= {name: np.float32(at) for name, at in product_model.CONVERSION.items()}
    return _vectors(found)


def _vectors(found: Arrays) -> Arrays:
    return {name: np.atleast_1d(each) for name, each in found.items()}


def on_hosts(params: Mapping[str, Arrays]) -> dict[str, Arrays]:
    """Return parameters of groups with the floors and starts of those that tell their hosts, as far
    as those were learned; a stream that only other groups have needs what a copy needs."""
    found = {}
    for name, own in params.items():
        host = params.get(GROUPS[name].host, own)
        needs = {each: host[each] for each in ("floor", "start")}
        if GROUPS[name].is_stream:
            copied = np.isin(STREAMED, MOVES)
            usual = STREAMED.index(ONE_READ)
            needs = {each: np.where(copied, at[:, [usual]], at) for each, at in needs.items()}
        found[name] = own | needs
    return found


def of_measured(
    p: Mapping[str, Any], place: Int[Any, "R"], generation: Int[Any, "R"], op: Any, xp: Any
) -> dict[str, Any]:
    """Return parameters of rows on GPUs that were measured.

    Args:
        p: of `initial_params`.
        place: [R] index of the GPU.
        generation: [R] of its library.
        op: [R] index in `STREAMED`; None: of a group without streams.
        xp: array module.
    """
    if op is not None:
        return {**p, "floor": p["floor"][place, op], "start": p["start"][generation, op]}
    if "liked_by" not in p:
        return {**p, "floor": p["floor"][place], "start": p["start"][generation]}
    liked = p["liked"] + p["liked_by"][generation] + p["liked_here"][place]
    return {**p, "floor": p["floor"][place], "liked": liked, **_of_generation(p, generation, xp)}


def of_unmeasured(
    p: Mapping[str, Any], usual: UsualHost, place: Int[np.ndarray, "R"],
    generation: Int[np.ndarray, "R"], op: Any,
) -> Arrays:  # fmt: skip
    """Return parameters of rows on GPUs of which some were not measured.

    Args:
        p: of `initial_params`.
        usual: host of a GPU that was not measured.
        place: [R] index of the GPU, or `UNMEASURED`.
        generation: [R] whose kernels its library runs.
        op: see `of_measured`.
    """
    own = place != UNMEASURED
    if op is not None:
        floor = np.where(own, p["floor"][place, op], usual.floor)
        start = np.where(own, p["start"][generation, op], usual.start)
        return {**p, "floor": floor, "start": start}
    floor = np.where(own, p["floor"][place], usual.floor)
    start = np.where(own, p["start"][generation], usual.start)
    if "liked_by" not in p:
        return {**p, "floor": floor, "start": start}
    liked = p["liked"] + p["liked_by"][generation]
    liked = liked + np.where(own[:, None], p["liked_here"][place], 0.0)
    of_row = {"floor": floor, "start": start, "liked": liked}
    return {**p, **_of_generation(p, generation, np), **of_row}


def _of_generation(p: Mapping[str, Any], generation: Any, xp: Any) -> dict[str, Any]:
    later = xp.where(generation == PASCAL, 0, 1)
    strides = {name: p[name][later] for name in ("stride", "stride_from")}
    splits = {name: p[name][generation][:, None] for name in SPLITS}
    return {"start": p["start"][generation], **strides, **splits}
