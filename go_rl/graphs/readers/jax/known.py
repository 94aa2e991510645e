"""Integers that do not depend on a model's inputs, followed so that loop bounds stay known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from go_rl.graphs.readers.jax.values import Value

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "sub": np.subtract,
}


def known_scalar(array: Any) -> Any:
    """Return a closed-over scalar as NumPy's, or None for anything else (a random key)."""
    try:
        return np.asarray(array)
    except (TypeError, ValueError):
        return None


def known_result(name: str, inputs: Sequence[Value], out: Value) -> Any:
    """Return the integer that a primitive makes of known scalars, or None."""
    if out.shape != () or any(v.known is None for v in inputs):
        return None
    if not isinstance(out.dtype, np.dtype) or not np.issubdtype(out.dtype, np.integer):
        return None
    if name == "convert_element_type":
        return np.asarray(inputs[0].known).astype(out.dtype)
    if name in _ARITHMETIC:
        return np.asarray(_ARITHMETIC[name](*(v.known for v in inputs)), out.dtype)
    return None
