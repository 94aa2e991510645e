"""Parameters of networks under test, where only their shapes matter."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def random_variables(init: Callable[..., Any], *inputs: Any, seed: int = 0) -> Any:
    """Return variables shaped as ``init`` would make them for ``inputs``, drawn by NumPy.

    Nothing is compiled, and every processor draws the same. Parameters are normal numbers, over
    the root of their inputs where they are matrices; variables of other collections are 1.
    """
    rng = np.random.default_rng(seed)

    def draw(path: tuple[Any, ...], shape: jax.ShapeDtypeStruct) -> np.ndarray:
        if path[0].key != "params":
            return np.ones(shape.shape, shape.dtype)
        inputs = np.prod(shape.shape[:-1], initial=1.0) if len(shape.shape) > 1 else 1.0
        return (rng.standard_normal(shape.shape) / np.sqrt(inputs)).astype(shape.dtype)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(init, jax.random.key(0), *inputs))
