"""Plans cut, compiled and judged by their compiled memory; random plans that are legal."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.partition.random_partitions import CUTS, EVERY, UNIFORM, random_partitions
from experiments.partition.stage_measurements import (
    CompiledPricer,
    CpuRates,
    StageBench,
    cpu_ring,
    failure_share,
)
from go_rl.core import Status, rule_set
from go_rl.core.evaluation import STATUS_CODES
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.jax.stages import jax_program
from go_rl.graphs.zoo.models.building import floats
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.verify.rules import legal

LAYERS, WIDTH = 4, 64
LAYER_BYTES = 4 * WIDTH * WIDTH


def layered(params, x):
    for weight in params:
        x = jnp.tanh(x @ weight)
    return x


@pytest.fixture(scope="module")
def program():
    args = ([floats(WIDTH, WIDTH)] * LAYERS, floats(1, WIDTH))
    return jax_program(layered, args, weights=(0,))


@pytest.fixture
def bench(program, tmp_path):
    given = ([jnp.eye(WIDTH)] * LAYERS, jnp.ones((1, WIDTH)))
    return StageBench(program, given, tmp_path / "stages.csv")


def problem_of(program, chips):
    hardware = cpu_ring(chips, CpuRates(1e11, 1e10), 1e9)
    return make_problem(
        program.graph, hardware, ProblemOptions(rules=rule_set("strict"), memory=False)
    )


def split(program, layers_on_first):
    """Node 0 is the input, then a product and a tanh for each layer."""
    return (np.arange(program.graph.num_nodes) > 2 * layers_on_first).astype(np.int16)


def test_equal_stages_are_compiled_once_and_found_in_the_file_again(program, bench, tmp_path):
    first, second = bench.rows(split(program, 2), timed=True)
    assert first.text_hash == second.text_hash
    assert first.megabytes * 1e6 == pytest.approx(2 * LAYER_BYTES, rel=0.1)
    assert first.milliseconds > 0
    text = (tmp_path / "stages.csv").read_text()
    assert text.count("\n") == 2
    again = StageBench(program, ([jnp.eye(WIDTH)] * LAYERS, jnp.ones((1, WIDTH))),
                       tmp_path / "stages.csv")  # fmt: skip
    assert again.rows(split(program, 2), timed=True) == [first, second]
    assert (tmp_path / "stages.csv").read_text() == text


def test_a_row_without_a_time_is_measured_when_one_is_asked_for(program, bench):
    (untimed, _) = bench.rows(split(program, 1), timed=False)
    assert np.isnan(untimed.milliseconds)
    (timed, _) = bench.rows(split(program, 1), timed=True)
    assert timed.milliseconds > 0
    assert timed.megabytes == untimed.megabytes


@pytest.mark.parametrize("punish", [True, False])
def test_a_plan_fails_when_a_compiled_stage_is_too_large(program, bench, punish):
    limit = 2.5 * LAYER_BYTES
    pricer = CompiledPricer(problem_of(program, 2), bench, limit, punish)
    plans = np.stack([split(program, 2), split(program, 1)])
    seconds, codes = pricer.price(plans)
    fits = [True, not punish]
    assert np.isfinite(seconds).tolist() == fits
    wanted = [Status.OK if f else Status.OUT_OF_MEMORY for f in fits]
    assert [STATUS_CODES[int(c)] for c in codes] == wanted
    assert [pricer.evaluate(plan).status for plan in plans] == wanted
    assert failure_share(pricer.seen, limit) == 0.5
    assert np.isfinite([plan.analytical_seconds for plan in pricer.seen]).all()


def test_random_partitions_are_legal_and_repeatable(program):
    workspace = RingWorkspace(problem_of(program, 3))
    plans, origin = random_partitions(workspace, 9, seed=3)
    assert [legal(workspace.problem, plan, {}) for plan in plans] == [()] * 9
    assert origin == [UNIFORM if i % EVERY == 0 else CUTS for i in range(9)]
    assert len({tuple(plan) for plan in plans.tolist()}) > 1
    np.testing.assert_array_equal(random_partitions(workspace, 9, seed=3)[0], plans)
