"""The cost of a rare primitive by XLA: lower it alone, read the cost analysis, cache it.

Composite lowerings (erf_inv, threefry2x32, cumsum, gather modes, scatters, …) change from one JAX
release to the next; asking keeps the counts right. Nothing is compiled or run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.cost import Cost
from go_rl.graphs.readers.jax.values import Value

_SKIPPED = frozenset({"update_jaxpr", "update_consts", "jvp_jaxpr_fun", "jvp", "fwd", "bwd"})
"""Parameters that never change the cost but are slow to print or print differently each time."""
_CACHE: dict[tuple[Any, ...], Cost | None] = {}
_TUPLE_BYTES = 16.0
"""XLA's cost of returning two results."""


def cost_key(primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a primitive's cost depends on."""
    operands = tuple((v.shape, str(v.dtype)) for v in inputs)
    settings = tuple((k, str(v)) for k, v in sorted(params.items()) if k not in _SKIPPED)
    return primitive.name, operands, settings


def xla_cost(primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any]) -> Cost | None:
    """Return XLA's cost of one primitive on these operands, or None when XLA has none."""
    return _cached(primitive, inputs, params, 1)


def xla_saving(primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any]) -> Cost:
    """Return what a second use in the same function spares: the constants that both share."""
    once, twice = (_cached(primitive, inputs, params, times) for times in (1, 2))
    if once is None or twice is None:
        return Cost()
    return Cost(0.0, twice.num_bytes - _TUPLE_BYTES - 2 * once.num_bytes)


def _cached(
    primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any], times: int
) -> Cost | None:
    key = (*cost_key(primitive, inputs, params), times)
    if key not in _CACHE:
        _CACHE[key] = _ask(primitive, inputs, params, times)
    return _CACHE[key]


def _ask(
    primitive: Any, inputs: Sequence[Value], params: Mapping[str, Any], times: int
) -> Cost | None:
    avals = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in inputs]

    def repeated(*rows: Any) -> list[Any]:
        return [primitive.bind(*row, **params) for row in rows]

    processor = _processor()
    try:
        # Accelerators' clients analyse no program that is not compiled.
        with jax.default_device(processor):
            traced = jax.jit(repeated).trace(*[avals] * times)
            analysis = traced.lower(lowering_platforms=("cpu",)).cost_analysis()
    except Exception:  # any failure to lower means that XLA cannot price it here
        return None
    if not analysis:
        return None
    # -1 stands for a library call's FLOP.
    flops, num_bytes = (
        max(float(analysis.get(name, 0.0)), 0.0) for name in ("flops", "bytes accessed")
    )
    return Cost(flops, num_bytes)


def _processor() -> jax.Device:
    try:
        return jax.devices("cpu")[0]
    except RuntimeError as error:
        raise ReadError(
            f"XLA prices operators on the CPU, and JAX shows none ({error}); add cpu to "
            "JAX_PLATFORMS"
        ) from error
