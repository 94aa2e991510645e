"""Stages of a plan compute, one after the other, what the function computes."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounding import assert_rounded_alike

from go_rl.core import PlanError, ReadError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.stages import JaxProgram, JaxStage, jax_program
from go_rl.graphs.zoo.bert import BertConfig, bert
from go_rl.graphs.zoo.models.building import flax_model, floats
from go_rl.graphs.zoo.models.vision import networks as vision

TABLE = np.arange(12.0, dtype=np.float32).reshape(3, 4)
PARAMS = {"kernel": floats(4, 6), "bias": floats(6)}


def run_stages(program: JaxProgram, stages: Sequence[JaxStage], args: Sequence[Any]) -> Any:
    """Return ``function(*args)``, computed stage by stage on this machine."""
    values = program.inputs(args)
    for stage in stages:
        weights = tuple(values[n] for n in stage.weights)
        made = jax.jit(stage.function)(weights, tuple(values[n] for n in stage.inputs))
        values.update(zip(stage.outputs, made, strict=True))
    return program.result(values)


def network(params, x, scale):
    hidden = jnp.tanh(x @ params["kernel"] + params["bias"])
    low, high = jnp.split(hidden, 2, axis=1)
    return {"product": low @ TABLE * scale, "tail": high @ params["kernel"][:3].astype(jnp.float32)}


def network_arguments():
    return (PARAMS, floats(2, 4), floats())


def small_bert():
    config = BertConfig(layers=2, hidden=32, heads=2, feed_forward=64, vocabulary=50, positions=16)
    function, args, _ = bert(config, batch=2, sequence=8, masked=True)
    return function, args


def small_resnet():
    function, args, _ = flax_model(vision.ResNet(), floats(1, 32, 32, 3))
    return function, args


def numbers(args, seed=0):
    """Positive, so that variances are; small, so that nothing overflows."""
    rng = np.random.default_rng(seed)

    def fill(kind):
        if jnp.issubdtype(kind.dtype, jnp.integer):
            return jnp.asarray(rng.integers(0, 2, kind.shape), kind.dtype)
        return jnp.asarray(0.01 + 0.1 * rng.random(kind.shape), kind.dtype)

    return jax.tree.map(fill, args)


def random_cuts(nodes, chips, rng):
    """The graph's own order is topological: any ascending chips are a legal pipeline."""
    return np.sort(rng.integers(0, chips, nodes)).astype(np.int16)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        pytest.param(network, network_arguments(), id="mlp"),
        pytest.param(*small_bert(), id="bert"),
        pytest.param(*small_resnet(), id="resnet", marks=pytest.mark.slow),
    ],
)
def test_stages_in_turn_give_the_function_s_numbers(function, args):
    program = jax_program(function, args)
    given = numbers(args)
    wanted = jax.jit(function)(*given)
    for chips in (1, 3):
        device = random_cuts(program.graph.num_nodes, chips, np.random.default_rng(chips))
        stages = program.stages(device)
        assert [n for s in stages for n in s.nodes] == list(range(program.graph.num_nodes))
        made = run_stages(program, stages, given)
        assert jax.tree.structure(made) == jax.tree.structure(wanted)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), made, wanted
        )


def scanned(weights, x, reverse=False):
    def step(carry, row):
        weight, item = row
        carry = jnp.tanh(carry @ weight + item)
        return carry, carry.sum()

    return jax.lax.scan(step, jnp.ones(3), (weights["rows"], x), reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [0, 1000])
def test_scans_run_folded_and_unrolled(reverse, limit):
    function = functools.partial(scanned, reverse=reverse)
    args = ({"rows": floats(4, 3, 3), "unread": floats(2)}, floats(4, 3))
    program = jax_program(function, args, options=JaxOptions(unroll_limit=limit))
    assert ("scan" in program.graph.op_type) == (limit == 0)
    device = random_cuts(program.graph.num_nodes, 2, np.random.default_rng(0))
    given = numbers(args)
    made = run_stages(program, program.stages(device), given)
    jax.tree.map(assert_rounded_alike, made, function(*given))


def branching(x):
    return jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)


def counted(x):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (branching, None, "cond at .* cannot be cut into stages"),
        (counted, JaxOptions(trip_count=3), "while at .* cannot be cut into stages"),
    ],
)
def test_what_cannot_be_cut_is_refused(function, options, message):
    with pytest.raises(ReadError, match=message):
        jax_program(function, (floats(4),),
                    options=options)  # fmt: skip


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ([0, 0], "device has 2 entries"),
        ([0, 0, -1], "is on device -1"),
        ([0, 0, 1, 0], "devices .* need each other's results"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(device, message):
    def function(x):
        return jnp.cos(jnp.sin(jnp.exp(x))) if len(device) > 3 else jnp.sin(jnp.exp(x))

    program = jax_program(function, (floats(3),))
    with pytest.raises(PlanError, match=message):
        program.stages(np.array(device, np.int16))


def test_other_arguments_than_traced_are_refused():
    program = jax_program(network, network_arguments())
    with pytest.raises(PlanError, match="traced with 4 arrays in its arguments, given 1"):
        program.inputs((jnp.zeros(3),))
