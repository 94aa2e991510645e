"""Stages of JAX functions: programs of `jax.export`, and what they compute."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plans.stages_here import plan_of

import go_rl
from go_rl.cli.main import main
from go_rl.core import ExecutionError, PlanError, ReadError
from go_rl.core.graph.op_kind import IS_FREE
from go_rl.plans.pipeline.model_inputs import model_inputs
from go_rl.plans.pipeline.whole_model import WholeModel
from go_rl.plans.stages.manifest import read_manifest

WIDTH = 8
LAYERS = 4
TARGET = """
import jax, jax.numpy as jnp

def net(batch=4):
    def forward(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return x
    shapes = [jax.ShapeDtypeStruct((8, 8), jnp.float32)] * 4
    return forward, (shapes, jax.ShapeDtypeStruct((batch, 8), jnp.float32))

def loss():
    forward, args = net()
    return lambda weights, x: (forward(weights, x) ** 2).mean(), args
"""


def _weights():
    keys = np.random.default_rng(0)
    return [keys.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)]


def _forward(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return x


def _alternating(graph, step):
    """Devices of the nodes with work, in runs of ``step``."""
    worked = [name for name, kind in zip(graph.names, graph.kind, strict=True)
              if not IS_FREE[kind]]  # fmt: skip
    return {str(name): (i // step) % 2 for i, name in enumerate(worked)}


ARGS = (_weights(), np.ones((2, WIDTH), np.float32))


@pytest.mark.parametrize(("step", "devices"), [(4, [0, 1]), (100, [0])])
def test_a_device_has_one_stage_where_devices_take_turns(tmp_path, step, devices):
    graph = go_rl.trace(_forward, *ARGS)
    plan = plan_of(graph, _alternating(graph, step))
    manifest = go_rl.export_stages(plan, _forward, tmp_path / "s", args=ARGS)
    assert [stage.device for stage in manifest.stages] == devices


def test_another_program_is_no_whole_model(tmp_path):
    graph = go_rl.trace(_forward, *ARGS)
    manifest = go_rl.export_stages(
        plan_of(graph, _alternating(graph, 4)), _forward, tmp_path / "s", args=ARGS
    )
    arrays = model_inputs(manifest, tmp_path / "s", None, {}, seed=0)
    for whole, said in (
        (lambda given: {"other": given["x"]}, "has no output '.*', which the stages make"),
        (lambda given: given["x"], "has no output"),
        (lambda given: given, "has no output"),
    ):
        shapes = {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in arrays.items()}
        program = jax.export.export(jax.jit(whole, keep_unused=True))(shapes)
        (tmp_path / "other.jax").write_bytes(program.serialize())
        with pytest.raises(ExecutionError, match=rf"other\.jax: {said}"):
            WholeModel(tmp_path / "other.jax", manifest, arrays, 1, as_written=False)


def test_a_ring_with_copies_has_seconds_by_stage(tmp_path):
    def forward(weights, x):
        scale = jnp.exp(x.mean())
        for weight in weights:
            x = jnp.tanh(x @ weight) * scale
        return x

    graph = go_rl.trace(forward, *ARGS)
    half = graph.num_nodes // 2
    fixed = {str(name): int(i > half) for i, name in enumerate(graph.names)}
    plan = plan_of(graph, fixed, "ring", "ring2")
    manifest = go_rl.export_stages(plan, forward, tmp_path / "s", args=ARGS)
    assert [stage.predicted_seconds for stage in manifest.stages] == pytest.approx(
        plan.evaluation.device_seconds.tolist()
    )


@pytest.mark.slow
def test_a_function_by_name_its_training_iteration_and_drawn_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(TARGET)
    for number, words in enumerate((["nets.py:net", "--dim", "batch=6"],
                                    ["nets.py:loss", "--training", "sgd"])):  # fmt: skip
        out, stages = f"out{number}", f"stages{number}"
        options = ["--hardware", "p100x2", "--method", "default", "--decide", "placement",
                   "--fixed", "tanh.2=1", "dot_general.1=0"]  # fmt: skip
        assert main(["optimize", *words, *options, "--out", out]) == 0
        named = words if "--training" in words else words[:1]  # sizes are those of the plan
        assert main(["export", f"{out}/plan.json", *named, "--to", stages, "--json"]) == 0
        assert not (tmp_path / stages / "arrays.npz").exists()
        if "--training" in words:
            assert len(read_manifest(stages).stages) > 1
            continue
        capsys.readouterr()
        assert main(["run", stages, "--check", "--samples", "2", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["max_relative_error"] < 1e-5
        assert len(found["stages"]) > 1


def test_what_cannot_be_cut_is_refused_and_nothing_is_written(tmp_path):
    graph = go_rl.trace(_forward, *ARGS)
    plan = plan_of(graph, _alternating(graph, 4))
    with pytest.raises(PlanError, match="the plan is for another graph"):
        go_rl.export_stages(plan, lambda w, x: _forward(w, x) + 1, tmp_path / "s", args=ARGS)

    def noisy(key, x):
        return jnp.tanh(x + jax.random.normal(key, x.shape))

    args = (jax.random.key(0), np.ones(4, np.float32))
    graph = go_rl.trace(noisy, *args)
    plan = plan_of(graph, {str(graph.names[-1]): 1})
    with pytest.raises(ReadError, match=r"a random key, which is no plain array; .*key_data"):
        go_rl.export_stages(plan, noisy, tmp_path / "s", args=args)
    assert not list(tmp_path.iterdir())
