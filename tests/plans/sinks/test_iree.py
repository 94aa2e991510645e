"""A JAX function with transfers between devices of IREE."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import go_rl
from go_rl.core import MissingDependencyError, PlanError, SplitError
from go_rl.graphs.readers.jax.stages import jax_program
from go_rl.plans.audit.streams import audit_streams
from go_rl.plans.run import iree_run
from go_rl.plans.sinks.iree import placed_module
from go_rl.plans.sinks.iree.stablehlo_file import placed_file
from go_rl.plans.sinks.placed import placed

FUNCTION = """
import jax
import jax.numpy as jnp

def make():
    def tower(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return {"y": x, "sum": x.sum()}
    return tower, ([jax.ShapeDtypeStruct((8, 8), "float32")] * 2,
                   jax.ShapeDtypeStruct((4, 8), "float32"))
"""


def tower(weights, x):
    for w in weights:
        x = jnp.where(x > 0, jnp.tanh(x @ w), 0)
    return {"y": x, "count": (x > 0).sum()}


def arguments():
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2)]
    return weights, rng.standard_normal((4, 8)).astype(np.float32)


def planned(graph, device):
    """The plan with nodes on devices by a function of their names."""
    names = [str(graph.names[node]) for node in np.flatnonzero(~graph.is_fed)]
    pins = {name: device(name) for name in names}
    return go_rl.optimize(
        graph, hardware="p100x2", decide="placement", samples=2, method="default", fixed=pins
    ).best


def second(name):
    """Device 1 of the second layer's nodes."""
    return int(name.endswith(".1") or name.startswith(("reduce_sum", "gt.2")))


def test_tensors_are_transferred_once_to_each_device_that_reads_them():
    args = arguments()
    program = jax_program(tower, args)
    plan = planned(program.graph, second)
    text = placed_module(placed("iree", plan, program.graph), program, args, {})
    target = r"\{target = #hal\.device\.promise<@device_(\d)>\}"
    sent = re.findall(rf'"flow\.tensor\.transfer"\(%(\w+)\) {target}', text)
    assert len(set(sent)) == len(sent)
    assert {device for _, device in sent} == {"0", "1"}
    assert [device for name, device in sent if name == "arg1"] == ["1"]
    assert "go_rl_transfer" not in text
    assert '"go_rl_node_dot_general.1"' in text
    assert "/" not in "".join(re.findall(r'loc\("([^"]*)"', text)), "no path of a machine"


def test_a_named_function_leaves_as_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "towers.py").write_text(FUNCTION)
    graph = go_rl.load("towers.py:make")
    plan = planned(graph, second)
    plan.save(tmp_path / "plan.json")
    go_rl.export_sink(tmp_path / "plan.json", "towers.py:make", "iree", tmp_path / "m.mlir")
    assert "#hal.device.promise<@device_1>" in (tmp_path / "m.mlir").read_text()
    with pytest.raises(SplitError, match=r"iree needs the JAX function .*, not a graph"):
        go_rl.export_sink(plan, graph, "iree", tmp_path / "m.mlir")
    (tmp_path / "towers.py").write_text(FUNCTION.replace("tanh", "sin"))
    with pytest.raises(PlanError, match="the plan is for another graph"):
        go_rl.export_sink(plan, "towers.py:make", "iree", tmp_path / "m.mlir")


def test_a_missing_iree_is_named_with_its_cure(monkeypatch):
    monkeypatch.setattr(iree_run.shutil, "which", lambda name, path: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[iree\]'"):
        iree_run.run_on_iree("module {}", [], [0], 0, 1.0)


@pytest.fixture
def exported(tmp_path):
    """A file of StableHLO with an unknown size, the function called ``_where`` in it twice."""
    b = jax.export.symbolic_shape("b")[0]
    shapes = [jax.ShapeDtypeStruct((8, 8), "float32")] * 2, jax.ShapeDtypeStruct((b, 8), "float32")
    text = jax.export.export(jax.jit(tower))(*shapes).mlir_module()
    (tmp_path / "tower.mlir").write_text(text)
    return tmp_path / "tower.mlir"


def halves(graph):
    """The plan with the second product, and all after it, on device 1."""
    names = list(map(str, graph.names))
    products = [i for i, kind in enumerate(graph.op_type) if kind == "dot"]
    place = {name: int(i >= products[1]) for i, name in enumerate(names)}
    return planned(graph, place.__getitem__)


def test_a_file_of_stablehlo_runs_on_two_devices(exported):
    pytest.importorskip("iree.compiler", reason="pip install 'go_rl[iree]'")
    graph = go_rl.load(exported, {"b": 4})
    what = placed("iree", halves(graph), graph)
    weights, x = arguments()
    ran = iree_run.run_on_iree(
        placed_file(what, exported, {"b": 4}), [*weights, x], [0, 1], 2, 100.0
    )
    expected = tower(weights, x)
    assert ran.outputs[0] == expected["count"]
    np.testing.assert_allclose(ran.outputs[1], expected["y"], rtol=1e-5, atol=1e-6)
    streams = audit_streams(what, ran.streams)
    assert streams.differences == ()
    assert {device for _, device in streams.kernels} == {0, 1}
