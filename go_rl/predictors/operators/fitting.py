"""Learning the parameters of `product_model` and `stream_model` from one GPU's measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float64, Int

from go_rl.core import TrainingError
from go_rl.predictors.operators import product_model, stream_model
from go_rl.predictors.operators.product_model import PEAK_SHARES, ProductInputs
from go_rl.predictors.operators.stream_model import StreamInputs

Arrays = dict[str, np.ndarray]
Loss = Callable[[Mapping[str, Any], Any], Any]
"""Of parameters on data."""
UNKNOWN_TILE = -1
OF_TILES = ("share", "prologue", "loop", "resident", "liked")
CHOICE_WEIGHT = 0.03
"""Of the likelihood of the tile that the library chose, beside errors of seconds."""
PRIOR, ALIKE = 3e-4, 1e-3
"""Weights of squares: of distances from the initial parameters, and between tiles."""
LENGTH_PRIOR = 1e-4


def fit_products(
    x: ProductInputs, tile: Int[np.ndarray, "R"], seconds: Float64[np.ndarray, "R"],
    group: str, updates: int,
) -> Arrays:  # fmt: skip
    """Return parameters of `product_model` for one GPU.

    Args:
        x: inputs.
        tile: [R] index in `TILES` that the library chose, or `UNKNOWN_TILE`.
        seconds: [R] measured.
        group: of `PRODUCTS`.
        updates: number of gradient steps.
    """
    inputs = ProductInputs(*(jnp.asarray(each, jnp.float32) for each in x))
    target = jnp.asarray(np.log(seconds), jnp.float32)
    peak_share = jnp.asarray(PEAK_SHARES[group], jnp.float32)
    data = (inputs, jnp.asarray(tile, jnp.int32), target, peak_share)
    return _descend(_product_loss, product_model.initial_params(), data, updates)


def fit_streams(x: StreamInputs, seconds: Float64[np.ndarray, "R"], updates: int) -> Arrays:
    """Return parameters of `stream_model` for one GPU."""
    numbers = [jnp.asarray(each, jnp.float32) for each in x[1:]]
    inputs = StreamInputs(jnp.asarray(x.op, jnp.int32), *numbers)
    target = jnp.asarray(np.log(seconds), jnp.float32)
    return _descend(_stream_loss, stream_model.initial_params(), (inputs, target), updates)


def _product_loss(p: Mapping[str, Any], data: Any) -> Any:
    x, tile, target, peak_share = data
    per_tile, padding = product_model.tile_log_seconds(p, x, peak_share, jnp)
    choice = product_model.log_choice(p, per_tile, padding, jnp)
    known = (tile != UNKNOWN_TILE).astype(jnp.float32)
    column = jnp.maximum(tile, 0)[:, None]
    expected = product_model.with_floor(p, (jnp.exp(choice) * per_tile).sum(1), jnp)
    told = product_model.with_floor(p, jnp.take_along_axis(per_tile, column, 1)[:, 0], jnp)
    surprise = -jnp.take_along_axis(choice, column, 1)[:, 0]
    errors = jnp.abs(expected - target)
    errors = errors + known * (jnp.abs(told - target) + CHOICE_WEIGHT * surprise)
    start = product_model.initial_params()
    prior = sum(jnp.square(p[name] - at).mean() for name, at in start.items())
    alike = sum(jnp.square(p[name] - p[name].mean()).mean() for name in OF_TILES)
    return errors.mean() + PRIOR * prior + ALIKE * alike


def _stream_loss(p: Mapping[str, Any], data: Any) -> Any:
    x, target = data
    errors = jnp.abs(stream_model.log_seconds(p, x, jnp) - target)
    return errors.mean() + LENGTH_PRIOR * jnp.square(p["length"]).sum()


def _descend(loss: Loss, start: Arrays, data: Any, updates: int) -> Arrays:
    """Adam on clipped gradients with a cosine rate."""
    params, last = _run({name: jnp.asarray(each) for name, each in start.items()}, data, loss,
                        updates)  # fmt: skip
    if not np.isfinite(float(last)):
        raise TrainingError("operators: the loss became NaN; are all seconds positive?")
    return {name: np.asarray(value) for name, value in params.items()}


@partial(jax.jit, static_argnames=("loss", "updates"))
def _run(params: Any, data: Any, loss: Loss, updates: int) -> Any:
    """Parameters after all updates, and the last loss."""
    rule = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.06, updates))
    )

    def update(state: Any, _: Any) -> Any:
        params, moments = state
        value, slope = jax.value_and_grad(loss)(params, data)
        change, moments = rule.update(slope, moments, params)
        return (optax.apply_updates(params, change), moments), value

    (params, _), losses = jax.lax.scan(update, (params, rule.init(params)), None, length=updates)
    return params, losses[-1]
