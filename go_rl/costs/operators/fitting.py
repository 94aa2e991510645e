"""Learning the parameters of all models of operators from the measurements of all GPUs.

Any of the GPUs can be left out: their rows then weigh nothing, so that one compiled program serves
all fits of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from go_rl.core import TrainingError
from go_rl.costs.operators import attention_model, product_model, stream_model
from go_rl.costs.operators.conv_residuals import fit_residuals
from go_rl.costs.operators.examples import GROUPS, OperatorExamples, OperatorGroup, OperatorInputs
from go_rl.costs.operators.launches.launch_floor import (
    PRODUCT_SHARPNESS,
    STREAM_SHARPNESS,
    with_floor,
)
from go_rl.costs.operators.launches.launch_replay import BETWEEN_KERNELS
from go_rl.costs.operators.pooled_params import SPLITS, Arrays, initial_params, of_measured

Loss = Callable[[Mapping[str, Any], Any], Any]
"""Loss of parameters on data."""
UNKNOWN_TILE = -1
OF_TILES = ("share", "prologue", "loop", "resident", *SPLITS)
CHOICE_WEIGHT = 0.03
"""Weight of the likelihood of the tile that the library chose, beside errors of seconds."""
PRIOR, ALIKE, OWN_LIKING = 3e-4, 1e-3, 1e-2
"""Weights of squares: of distances from the initial parameters, between tiles and between
generations, and of what one GPU
likes beyond its generation."""
MORE_PRIOR = {"floor": 2e-2, "throttle": 1e-2}
"""Further weights of distances from the initial parameters. The floor of convolutions, hardly any
of which the host bounds, would else take the place of their latency; what power allows is known
from two small boards only, one for each generation of kernels."""
STREAM_PRIORS = {"length": 1e-4, "wider": 1e-2, "cycles": 1e-4, "cached": 1e-3, "start": 1e-5,
                 "ragged": 1e-4, "row": 1e-4, "flop": 1e-4}  # fmt: skip
"""Weights of squares: of distances of streams' parameters from the initial ones."""
RATE = 0.06
LEAST_WORK = 0.1
"""Share of a convolution's time that counts as the GPU's, at least."""


class FitData(NamedTuple):
    """``R`` measured rows of one group."""

    x: Any
    """`ProductInputs`, `AttentionInputs` or `StreamInputs`."""
    place: Any
    """[R] index of the GPU."""
    generation: Any
    """[R] of its library."""
    tile: Any
    """[R] index in `TILES`, or `UNKNOWN_TILE`."""
    target: Any
    """[R] logarithms of seconds."""
    in_graph: Any
    """[R] logarithms of seconds in a CUDA graph; 0 where they are not known."""
    has_graph: Any
    """[R] 1 where they are, else 0."""
    weight: Any
    """[R] that add up to 1; 0: the GPU is left out."""
    start: Any
    """Initial parameters."""
    graph_share: Any
    """Weight of seconds in a CUDA graph, where they are known: half, or 1 of a group whose host
    another one tells."""


def fit_pooled(
    examples: OperatorExamples, group: str, updates: int, left_out: Collection[int] = ()
) -> Arrays:
    """Return parameters of `pooled_params.initial_params`.

    Args:
        examples: rows of the group.
        group: of `GROUPS`.
        updates: of the parameters.
        left_out: indices of GPUs whose rows teach nothing.
    """
    own, inputs = GROUPS[group], examples.inputs
    x = _model_inputs(own, inputs)
    whole = [np.issubdtype(each.dtype, np.integer) for each in x]
    numbers = [
        jnp.asarray(each, jnp.int32 if is_whole else jnp.float32)
        for each, is_whole in zip(x, whole, strict=True)
    ]
    start = initial_params(group, len(inputs.devices))
    has_graph = np.isfinite(examples.in_graph)
    data = FitData(
        type(x)(*numbers), jnp.asarray(inputs.device, jnp.int32),
        jnp.asarray(inputs.generations(), jnp.int32),
        jnp.asarray(examples.tile, jnp.int32), jnp.asarray(np.log(examples.seconds), jnp.float32),
        jnp.asarray(np.log(np.where(has_graph, examples.in_graph, 1.0)), jnp.float32),
        jnp.asarray(has_graph, jnp.float32),
        jnp.asarray(_weights(inputs.device, len(inputs.devices), left_out), jnp.float32),
        {name: jnp.asarray(each) for name, each in start.items()},
        jnp.asarray(0.5 if own.host == group else 1.0, jnp.float32),
    )  # fmt: skip
    params, last = _run(data, _loss_of(own), updates)
    if not np.isfinite(float(last)):
        raise TrainingError(
            f"operators: the loss of {group} became {float(last)}: sizes or seconds of some rows "
            "are too large or too small to learn from"
        )
    found = {name: np.asarray(value) for name, value in params.items()}
    return _with_residuals(found, examples, data) if "residuals" in found else found


def _model_inputs(group: OperatorGroup, inputs: OperatorInputs) -> Any:
    if group.is_stream:
        return inputs.stream_inputs()
    return inputs.attention_inputs() if group.is_attention else inputs.product_inputs()


def _loss_of(group: OperatorGroup) -> Loss:
    if group.is_stream:
        return _stream_loss
    return _attention_loss if group.is_attention else _product_loss


def _with_residuals(params: Arrays, examples: OperatorExamples, data: FitData) -> Arrays:
    """Parameters with what they leave of convolutions, of libraries without and with Winograd's."""
    x, rows = examples.inputs.product_inputs(), examples.inputs.rows
    place, generation = np.asarray(data.place), np.asarray(data.generation)
    own = of_measured(params, place, generation, None, np)
    start, seconds = np.exp(own["floor"] + own["start"]), examples.seconds
    took = np.where(np.isnan(examples.in_graph), seconds - start, examples.in_graph)
    rest = np.log(np.maximum(took, LEAST_WORK * seconds)) - product_model.log_gpu_seconds(own, x)
    weight, winograd = np.asarray(data.weight, np.float64), examples.inputs.with_winograd()
    found = [fit_residuals(rows, rest, weight * (winograd == each)) for each in (0, 1)]
    return params | {"residuals": np.stack(found).astype(np.float32)}


def _weights(device: np.ndarray, count: int, left_out: Collection[int]) -> np.ndarray:
    """Equal weights of all GPUs that are not left out."""
    counts = np.bincount(device, minlength=count).astype(np.float64)
    counts[list(left_out)] = np.inf
    weights = 1 / counts[device]
    return weights / weights.sum()


def _product_loss(p: Mapping[str, Any], data: FitData) -> Any:
    own = of_measured(p, data.place, data.generation, None, jnp)
    per_tile, padding = product_model.tile_log_seconds(own, data.x, jnp)
    choice = product_model.log_choice(own, per_tile, padding, jnp)
    known = (data.tile != UNKNOWN_TILE).astype(jnp.float32)
    column = jnp.maximum(data.tile, 0)[:, None]

    def seconds(alone: Any) -> Any:
        body = product_model.with_launch(own, alone, jnp)
        return with_floor(body, own["floor"], PRODUCT_SHARPNESS, jnp)

    alone = (jnp.exp(choice) * per_tile).sum(1)
    alone = product_model.with_conversion(own, data.x, alone, jnp)
    expected = seconds(alone)
    told = seconds(jnp.take_along_axis(per_tile, column, 1)[:, 0])
    surprise = -jnp.take_along_axis(choice, column, 1)[:, 0]
    errors = _errors(expected, alone, data)
    errors = errors + known * (jnp.abs(told - data.target) + CHOICE_WEIGHT * surprise)
    prior = sum(jnp.square(p[name] - at).mean() for name, at in data.start.items())
    alike = sum(jnp.square(p[name] - p[name].mean()).mean() for name in OF_TILES)
    own_liking = jnp.square(p["liked_here"]).mean()
    more = sum(
        weight * jnp.square(p[name] - data.start[name]).mean()
        for name, weight in MORE_PRIOR.items()
    )
    prior = PRIOR * prior + more
    return (errors * data.weight).sum() + prior + ALIKE * alike + OWN_LIKING * own_liking


def _attention_loss(p: Mapping[str, Any], data: FitData) -> Any:
    own = of_measured(p, data.place, data.generation, None, jnp)
    alone = attention_model.log_gpu_seconds(own, data.x, jnp)
    body = product_model.with_launch(own, alone, jnp)
    expected = with_floor(body, own["floor"], PRODUCT_SHARPNESS, jnp)
    prior = sum(jnp.square(p[name] - at).mean() for name, at in data.start.items())
    of_floor = jnp.square(p["floor"] - data.start["floor"]).mean()
    errors = (_errors(expected, alone, data) * data.weight).sum()
    return errors + PRIOR * prior + MORE_PRIOR["floor"] * of_floor


def _stream_loss(p: Mapping[str, Any], data: FitData) -> Any:
    own = of_measured(p, data.place, data.generation, data.x.op, jnp)
    alone = jnp.log(stream_model.gpu_seconds(own, data.x, jnp))
    body = jnp.logaddexp(own["start"] + own["floor"], alone)
    expected = with_floor(body, own["floor"], STREAM_SHARPNESS, jnp)
    errors = _errors(expected, alone, data)
    prior = sum(
        weight * jnp.square(p[name] - data.start[name]).sum()
        for name, weight in STREAM_PRIORS.items()
    )
    return (errors * data.weight).sum() + prior


def _errors(expected: Any, alone: Any, data: FitData) -> Any:
    """[R] errors of logarithms; of a row that was measured in a graph too, a mean of both.

    Args:
        expected: [R] logarithms of seconds with the host.
        alone: [R] logarithms of the seconds for which the GPU works.
    """
    in_graph = jnp.logaddexp(alone, jnp.log(BETWEEN_KERNELS))
    both = jnp.abs(expected - data.target), jnp.abs(in_graph - data.in_graph)
    return both[0] + data.graph_share * data.has_graph * (both[1] - both[0])


@partial(jax.jit, static_argnames=("loss", "updates"))
def _run(data: FitData, loss: Loss, updates: int) -> Any:
    """Parameters after Adam on clipped gradients with a cosine rate, and the last loss."""
    rule = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(RATE, updates))
    )

    def update(state: Any, _: Any) -> Any:
        params, moments = state
        value, slope = jax.value_and_grad(loss)(params, data)
        change, moments = rule.update(slope, moments, params)
        return (optax.apply_updates(params, change), moments), value

    start = (data.start, rule.init(data.start))
    (params, _), losses = jax.lax.scan(update, start, None, length=updates)
    return params, losses[-1]
