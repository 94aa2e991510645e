"""Plans at work: the user's function on several devices computes what it computes on one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounding import assert_rounded_alike
from small_graphs import graph_of

import go_rl
from go_rl.core import (
    ExecutionError,
    Objective,
    OpGraph,
    OpKind,
    Plan,
    PlanError,
    ReadError,
    Status,
    load_hardware,
    plan_for,
)
from go_rl.core.decisions import Decisions
from go_rl.core.evaluation import failed
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.readers.graph_builder import Node
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.plans.run import cut_segments

PARAMS = {"first": jnp.ones((3, 4)) / 7, "second": jnp.ones((4, 2)) / 3}
X = jnp.arange(6.0).reshape(2, 3) / 5


def mlp(params, x):
    hidden = jnp.tanh(x @ params["first"])
    return {"y": hidden @ params["second"], "mean": hidden.mean(), "x": x}


def train_step(params, x):
    """A step of gradient descent, with a constant (iota) that both passes read."""

    def loss(params):
        y = mlp(params, x)["y"] * jnp.arange(2.0)
        return jnp.square(y - 0.5).sum()

    value, gradients = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def random_plan(graph: OpGraph, hardware: str = "p100x3", seed: int = 0, fused: bool = False):
    """Nodes in runs of random length on random devices."""
    problem = make_problem(graph, load_hardware(hardware), ProblemOptions(Objective.MAKESPAN))
    rng, devices = np.random.default_rng(seed), problem.hardware.num_devices
    runs = np.cumsum(rng.random(graph.num_nodes) < 0.4)
    device = rng.integers(0, devices, runs[-1] + 1)[runs][None].astype(np.int16)
    ranks = rng.integers(0, 3, (1, graph.num_nodes))
    leader = Fuser(graph).leaders(ranks, device) if fused else None
    seconds, _ = MakespanPricer(problem).price(Decisions(device, ranks, leader))
    nothing = failed(Status.OK, devices, "")
    return plan_for(
        problem, device=device[0], replicas={}, bound=0.0, optimizer="random", seed=seed,
        samples=1, wall_seconds=0.0, priority=ranks[0],
        fusion_group=None if leader is None else leader[0],
        evaluation=replace(nothing, seconds=float(seconds[0])),
    )  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return random_plan(go_rl.trace(mlp, PARAMS, X))


def assert_equal(made, wanted):
    assert jax.tree.structure(made) == jax.tree.structure(wanted)
    jax.tree.map(assert_rounded_alike, made, wanted)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("function", [mlp, train_step])
def test_shared_devices_give_the_function_s_numbers(function, fused):
    plan = random_plan(go_rl.trace(function, PARAMS, X), fused=fused)
    done = go_rl.execute(plan, function, (PARAMS, X), share=True, repeats=1)
    assert_equal(done.outputs, function(PARAMS, X))
    assert done.seconds > 0
    assert set(done.devices) <= {0, 1, 2}
    assert done.segments >= len(done.devices)
    assert "stand in for p100: times measured here say nothing" in done.note


def test_a_saved_plan_and_keyword_arguments(tmp_path):
    def scaled(params, x, *, scale):
        return mlp(params, x)["y"] * scale

    graph = go_rl.trace(scaled, PARAMS, X, scale=2.0)
    random_plan(graph).save(tmp_path / "plan.json")
    done = go_rl.execute(
        tmp_path / "plan.json", scaled, (PARAMS, X), {"scale": 2.0}, share=True, repeats=1
    )
    assert_equal(done.outputs, scaled(PARAMS, X, scale=2.0))


def test_plans_for_something_else_are_refused(plan):
    def refused(plan, match, function=mlp, x=X, error=PlanError):
        with pytest.raises(error, match=match):
            go_rl.execute(plan, function, (PARAMS, x), share=True, repeats=1)

    refused(plan, r"its node \d+ is .* trace the function with the same", train_step)
    refused(plan, "same nodes, other costs or edges", x=jnp.ones((5, 3)))
    short = replace(
        plan, nodes=plan.nodes[:-1], device=plan.device[:-1], priority=None, fusion_group=None
    )
    refused(short, "nodes has 5 entries, 'mlp' has 6 nodes")
    refused(
        replace(plan, device=plan.device + 9), r"on device 10; the devices of 'p100x3' are 0..2"
    )
    refused(replace(plan, hardware={}), "devices")
    lost = failed(Status.OUT_OF_MEMORY, 3, "too large")
    refused(replace(plan, evaluation=lost), "failure, not one to follow: out-of-memory")
    halves = replace(plan, device=np.array([0, 0, 0, 1, 1, 1], np.int16))
    refused(replace(halves, fusion_group=np.array([0, 1, 2, 2, 4, 5])), "its kernel on device 0")
    refused(replace(halves, device=halves.device * 0, fusion_group=np.array([0, 1, 2, 3, 1, 5])),
            "kernels wait for each other")  # fmt: skip
    with pytest.raises(ExecutionError, match="repeats must be at least 1"):
        go_rl.execute(plan, mlp, (PARAMS, X), share=True, repeats=0)


def test_too_few_devices_name_the_flag(plan):
    wide = replace(plan, device=np.arange(6).astype(np.int16) % 3)
    with pytest.raises(ExecutionError, match=r"JAX shows 1 CPU device: .*device_count=3 before"):
        go_rl.execute(wide, mlp, (PARAMS, X))


def test_a_function_with_branches_is_refused(plan):
    def branching(params, x):
        return jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)

    with pytest.raises(ReadError, match="cannot be cut"):
        go_rl.execute(plan, branching, (PARAMS, X))


def diamond() -> OpGraph:
    """x and k feed a; a feeds b and c; d takes both, and k."""
    kinds = {"x": OpKind.INPUT, "k": OpKind.CONSTANT}
    nodes = (
        Node(name, "op", kinds.get(name, OpKind.ELEMENTWISE), output_bytes=4.0,
             is_output=name == "d") for name in "xkabcd"
    )  # fmt: skip
    pairs = ("xa", "ka", "ab", "ac", "bd", "cd", "kd")
    return graph_of(nodes, [("xkabcd".index(u), "xkabcd".index(v), 4.0) for u, v in pairs])


def test_segments_by_hand():
    cut = cut_segments(diamond(), np.array([2, 2, 0, 1, 0, 0]))
    # a and c on device 0 need nothing from elsewhere; d waits for b on device 1.
    assert cut.segment.tolist() == [0, 0, 0, 1, 0, 2]
    assert cut.device.tolist() == [0, 1, 0]
    assert cut.copies == {1: (2,)}


def test_a_kernel_stays_in_one_segment():
    cut = cut_segments(diamond(), np.array([2, 2, 0, 1, 0, 0]), np.array([0, 1, 2, 3, 4, 4]))
    assert cut.segment.tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_segments_have_one_device_and_wait_for_lower_ones_only(seed):
    rng = np.random.default_rng(seed)
    nodes = (Node(str(n), "op", OpKind.ELEMENTWISE, output_bytes=1.0) for n in range(60))
    edges = [
        (u, n, 1.0) for n in range(1, 60) for u in set(rng.integers(max(n - 8, 0), n, 2).tolist())
    ]
    graph, device = graph_of(nodes, edges), rng.integers(0, 3, 60)
    cut = cut_segments(graph, device)
    assert (cut.device[cut.segment] == device).all()
    before, after = cut.segment[graph.senders], cut.segment[graph.receivers]
    assert (before <= after).all()
    crossing = device[graph.senders] != device[graph.receivers]
    assert (before[crossing] < after[crossing]).all()


PROGRAM = """
import json, sys
import flax.linen as nn
import jax, jax.numpy as jnp, numpy as np
import go_rl
from parameters import random_variables
from plans.test_execute import PARAMS, X, mlp, random_plan

class Small(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = nn.LayerNorm()(x.reshape(len(x), -1))
        return nn.Dense(3)(nn.gelu(nn.Dense(8)(x)))

model, rng = Small(), np.random.default_rng(0)
image = jnp.asarray(rng.random((2, 5, 5, 2)), jnp.float32)
params = random_variables(model.init, image)

def step(params, image, label):
    def loss(params):
        logits = jax.nn.log_softmax(model.apply(params, image))
        return -jnp.take_along_axis(logits, label[:, None], axis=1).mean()
    value, gradients = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

answer = []
for function, args in ((mlp, (PARAMS, X)), (step, (params, image, jnp.array([0, 2])))):
    plan = random_plan(go_rl.trace(function, *args), "p100x2", seed=1, fused=function is step)
    for _ in range(2):
        done = go_rl.execute(plan, function, args, repeats=3)
        wanted = jax.jit(function)(*args)
        assert jax.tree.structure(done.outputs) == jax.tree.structure(wanted)
        worst = max(float(np.abs(np.asarray(a) - np.asarray(b)).max())
                    for a, b in zip(jax.tree.leaves(done.outputs), jax.tree.leaves(wanted)))
        held = [d for y in jax.tree.leaves(done.outputs) for d in y.devices()]
        answer.append([worst, done.seconds, done.segments,
                       {d: x.id for d, x in done.devices.items()}, [d.id for d in held]])
json.dump(answer, sys.stdout)
"""


@pytest.mark.slow
def test_two_devices_of_the_host_give_the_function_s_numbers():
    """In a process of its own, as JAX counts its devices once."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu",
                          "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for worst, seconds, segments, devices, held in json.loads(done.stdout):
        assert worst <= 1e-5
        assert seconds > 0
        assert segments > 2
        assert devices == {"0": 0, "1": 1}
        assert set(held) == {0, 1}
