"""Configurations of a single kernel beside its fusion: XLA flags, and layouts of its operands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from go_rl.core import RecordError
from go_rl.costs.kernels.measure.worker import ArrayType, KernelRequest
from go_rl.runtime.records import canonical_json

FLAGS = "flags"
LAYOUTS = "layouts"
Setting = dict[str, Any]

FLAG_SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"xla_backend_optimization_level": 0},
    {"xla_backend_optimization_level": 1},
    {"xla_cpu_prefer_vector_width": 128},
    {"xla_cpu_prefer_vector_width": 512},
    {"xla_cpu_max_isa": "SSE4_2"},
    {"xla_cpu_enable_fast_math": True},
    {"xla_llvm_disable_expensive_passes": True},
)
"""XLA options that change the code of one kernel on a CPU; the first are the defaults."""
LAYOUT_SETTINGS = 4
"""Layouts of each kernel; the first is row-major, the second all reversed."""


def flag_settings() -> list[str]:
    """Return the settings of flags, as records carry them."""
    return [canonical_json({FLAGS: flags}) for flags in FLAG_SETTINGS]


def layout_settings(request: KernelRequest, seed: int) -> list[str]:
    """Return `LAYOUT_SETTINGS` distinct layouts of a kernel's operands, as records carry them;
    none where there are fewer."""
    ranks = [_free_dims(operand) for operand in (*request.weights, *request.inputs)]
    if not any(ranks):
        return []
    rng, found = np.random.default_rng(seed), {}
    for layouts in islice(_candidates(ranks, rng), 16 * LAYOUT_SETTINGS):
        found[canonical_json({LAYOUTS: layouts})] = None
        if len(found) == LAYOUT_SETTINGS:
            return list(found)
    return []


def _free_dims(operand: ArrayType) -> int:
    """Rank of an operand whose layout matters; 0: it has one long dimension at most."""
    shape = operand[0]
    return len(shape) if sum(size > 1 for size in shape) > 1 else 0


def _candidates(ranks: Sequence[int], rng: np.random.Generator) -> Any:
    def layouts(order: Any) -> list[list[int] | None]:
        return [order(rank) if rank else None for rank in ranks]

    yield layouts(lambda rank: list(range(rank)))
    yield layouts(lambda rank: list(range(rank))[::-1])
    while True:
        yield layouts(lambda rank: rng.permutation(rank).tolist())


def with_setting(request: KernelRequest, setting: str) -> KernelRequest:
    """Return the request under a setting; "": as it comes."""
    if not setting:
        return request
    told: Setting = json.loads(setting)
    return replace(request, flags=told.get(FLAGS, {}), layouts=layouts_of(setting))


def layouts_of(setting: str) -> tuple[tuple[int, ...] | None, ...]:
    """Return the layouts of a kernel's operands that a setting tells: dimensions from the slowest
    to the fastest, None for as it comes; empty: all of them so.

    Raises:
        RecordError: the setting is malformed.
    """
    if not setting:
        return ()
    try:
        found = [None if o is None else tuple(o) for o in json.loads(setting).get(LAYOUTS, ())]
        if all(o is None or sorted(o) == list(range(len(o))) for o in found):
            return tuple(found)
    except (ValueError, TypeError, AttributeError):
        pass
    raise RecordError(
        f'setting {setting!r}: must be "" or JSON such as {{"layouts": [[1, 0], null]}}, with the '
        "dimensions of each operand from the slowest to the fastest"
    )
