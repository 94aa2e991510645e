"""``--cost auto``: what each kind of hardware and graph is priced by, and what is said of it."""

import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import load_hardware
from go_rl.core.hardware.systems import GPU_DEVICES
from go_rl.costs.models.registry import cost_identity
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats


@pytest.fixture(scope="module")
def graph():
    return trace_jax(lambda x, w: jnp.tanh(x @ w), floats(64, 128), floats(128, 128), weights=(1,))


def _problem(graph, hardware, **options):
    return problem_for(graph, OptimizeOptions(hardware=hardware, **options))


@pytest.mark.parametrize("kind", GPU_DEVICES)
def test_gpus_of_the_presets_have_learned_prices(graph, kind):
    problem = _problem(graph, f"{kind}x2")
    assert problem.cost_model == "learned:gpus"
    assert np.array_equal(
        problem.seconds, _problem(graph, f"{kind}x2", cost="learned:gpus").seconds
    )


@pytest.mark.parametrize("hardware", ["ring4", "host", "cpu-1x2", "cpu-1-ring2"])
def test_where_nothing_was_learned_prices_are_analytical(graph, hardware):
    problem = _problem(graph, hardware)
    assert problem.cost_model == "analytical"
    assert problem.notes == ()
    assert cost_identity("auto", load_hardware(hardware)) == "auto"
