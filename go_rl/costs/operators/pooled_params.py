"""Parameters that GPUs share, and the few that are of a generation or of one GPU and its host.

Of a GPU that was not measured nothing of its own is known: its floor is the lower median of the
measured hosts, of which most are alike and few are slower; its library likes the tiles that its
generation likes; a generation that was never measured takes the mean of the answers of those that
were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from go_rl.costs.operators import product_model, stream_model
from go_rl.costs.operators.architectures import GENERATION_COUNT, PASCAL
from go_rl.costs.operators.conv_residuals import TERMS
from go_rl.costs.operators.examples import STREAM_GROUP
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables import STREAMS

Arrays = dict[str, np.ndarray]
OF_PLACE = ("floor", "liked_here", "liked_by", "stride", "stride_from")
"""Names of the parameters that are not shared: [GPUs …] the first two, [generations …] ``liked_by``
(both beside ``liked``, which is), [2] (Pascal and before, later) the last two."""
UNMEASURED = -1
"""Place of a GPU without measurements."""
FLOORS = {"bmm": -10.3, "linear": -9.8, "conv": -9.7, STREAM_GROUP: -10.3}
"""Logarithms of the seconds of a launch from which learning starts, by group: what few elements
take."""


def initial_params(group: str, count: int) -> Arrays:
    """Return the parameters of a group from which learning starts, of so many GPUs; scalars are
    [1]."""
    if group == STREAM_GROUP:
        floors = np.full((count, len(STREAMS)), FLOORS[group], np.float32)
        found = {**stream_model.initial_params(), "floor": floors}
    else:
        found = {
            **product_model.initial_params(),
            "floor": np.full(count, FLOORS[group], np.float32),
            "liked": np.zeros(len(TILES), np.float32),
            "liked_by": np.zeros((GENERATION_COUNT, len(TILES)), np.float32),
            "liked_here": np.zeros((count, len(TILES)), np.float32),
            "stride": np.full(2, -3.0, np.float32),
            "stride_from": np.full(2, 5.0, np.float32),
        }
        if group == "conv":
            found["residuals"] = np.zeros(TERMS, np.float32)
    return {name: np.atleast_1d(each) for name, each in found.items()}


def of_measured(
    p: Mapping[str, Any], place: Int[Any, "R"], generation: Int[Any, "R"], op: Any, xp: Any
) -> dict[str, Any]:
    """Return parameters of rows on GPUs that were measured.

    Args:
        p: of `initial_params`.
        place: [R] index of the GPU.
        generation: [R] of its library.
        op: [R] index in `STREAMS`; None: of a group of products.
        xp: array module.
    """
    if op is not None:
        return {**p, "floor": p["floor"][place, op]}
    liked = p["liked"] + p["liked_by"][generation] + p["liked_here"][place]
    return {**p, "floor": p["floor"][place], "liked": liked, **_strides(p, generation, xp)}


def of_unmeasured(
    p: Mapping[str, Any], known: Int[np.ndarray, "G"], place: Int[np.ndarray, "R"],
    generation: Int[np.ndarray, "R"], op: Any,
) -> Arrays:  # fmt: skip
    """Return parameters of rows on GPUs of which some were not measured.

    Args:
        p: of `initial_params`.
        known: indices of the GPUs from which was learned.
        place: [R] index of the GPU, or `UNMEASURED`.
        generation: [R] whose kernels its library runs.
        op: see `of_measured`.
    """
    own = place != UNMEASURED
    usual = usual_floor(p["floor"], known)
    floor = p["floor"][place] if op is None else p["floor"][place, op]
    floor = np.where(own, floor, usual if op is None else usual[op])
    if op is not None:
        return {**p, "floor": floor}
    liked = p["liked"] + p["liked_by"][generation]
    liked = liked + np.where(own[:, None], p["liked_here"][place], 0.0)
    return {**p, "floor": floor, "liked": liked, **_strides(p, generation, np)}


def usual_floor(floor: np.ndarray, known: Int[np.ndarray, "G"]) -> np.ndarray:
    """Return the lower median over measured hosts of logarithms [GPUs, …]."""
    return np.asarray(np.sort(floor[known], axis=0)[(len(known) - 1) // 2])


def _strides(p: Mapping[str, Any], generation: Any, xp: Any) -> dict[str, Any]:
    later = xp.where(generation == PASCAL, 0, 1)
    return {name: p[name][later] for name in ("stride", "stride_from")}
