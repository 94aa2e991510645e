"""One session of onnxruntime, held against a plan."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import go_rl
from go_rl.core import ExecutionError, ReadError

onnxruntime = pytest.importorskip("onnxruntime", reason="its profiles are read")
CPUS = {0: "CPU", 1: "CPUExecutionProvider"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A model, a plan for it, and what a session wrote."""
    path = tmp_path_factory.mktemp("session")
    nodes = [
        helper.make_node("Neg", ["k"], ["kk"], name="constants"),
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Add", ["m", "kk"], ["a"], name="bias"),
        helper.make_node("Erf", ["a"], ["y"]),
    ]
    weights = [numpy_helper.from_array(np.ones(shape, np.float32), name)
               for name, shape in (("k", (8,)), ("w", (8, 8)))]  # fmt: skip
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    model = path / "m.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model
    )
    plan = go_rl.optimize(
        model, hardware="p100x2", decide="placement", samples=2, method="default",
        fixed={"product": 0, "bias": 0, "y": 1},
    ).best  # fmt: skip
    plan.save(path / "plan.json")
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(path / "profile")
    options.optimized_model_filepath = str(path / "optimised.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.zeros((4, 8), np.float32)})
    return SimpleNamespace(
        plan=path / "plan.json", model=model, profile=session.end_profiling(),
        optimised=path / "optimised.onnx",
    )  # fmt: skip


def test_operators_on_their_providers(ran):
    found = go_rl.audit_session(
        ran.plan, ran.model, ran.profile, optimised=ran.optimised, providers=CPUS
    )
    assert found.differences == found.unseen == ()
    found.require()
    assert found.providers == {"CPUExecutionProvider": 3}
    assert found.joined == {"product/MatMulAddFusion": ("product", "bias")}
    assert found.folded == ("constants",)
    assert found.notes == (
        "devices 0, 1 of the plan are one to a session, CPUExecutionProvider: it cannot tell them "
        "apart",
    )


def test_records_of_another_model_are_refused(ran, tmp_path):
    events = json.loads(Path(ran.profile).read_text())
    for event in events:
        event["name"] = f"other/{event['name']}"
    other = tmp_path / "p.json"
    other.write_text(json.dumps(events))
    with pytest.raises(ExecutionError, match="profile is of another model: none of its 2 kernels"):
        go_rl.audit_session(ran.plan, ran.model, other)
    events[-1] |= {"name": "product/MatMulAddFusion_kernel_time", "cat": "Node"}
    events[-1]["args"] = {"provider": "CPUExecutionProvider", "op_name": "Gemm"}
    other.write_text(json.dumps(events))
    with pytest.raises(ExecutionError, match=r"of another session than .*has no node 'other/"):
        go_rl.audit_session(ran.plan, ran.model, other, optimised=ran.optimised)
    with pytest.raises(ReadError, match="cannot be read"):
        go_rl.audit_session(ran.plan, ran.model, ran.profile, optimised=tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("providers", "words"),
    [({0: "CUDDA"}, "no execution provider 'CUDDA'; did you mean 'CUDA'"),
     ({5: "CPU"}, r"devices of 'p100x2' are 0\.\.1")],
)  # fmt: skip
def test_wrong_providers_are_named(ran, providers, words):
    with pytest.raises(ExecutionError, match=words):
        go_rl.audit_session(ran.plan, ran.model, ran.profile, providers=providers)
