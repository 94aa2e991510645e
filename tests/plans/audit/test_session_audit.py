"""One session of onnxruntime, held against a plan."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from plans.stages_here import plan_of

import go_rl
from go_rl.core import ExecutionError, ReadError

onnxruntime = pytest.importorskip("onnxruntime", reason="its profiles are read")
CPUS = {0: "CPU", 1: "CPUExecutionProvider"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A model, a plan for it, and what a session wrote."""
    path = tmp_path_factory.mktemp("session")
    text = """(float[4,8] x) => (float[4,8] y) {
        [constants] kk = Neg(k) [product] m = MatMul(x, w) [bias] a = Add(m, kk) y = Erf(a) }"""
    model = path / "m.onnx"
    onnx.save(parsed(text, *(array(n, np.ones(s)) for n, s in (("k", 8), ("w", (8, 8))))), model)
    plan = plan_of(model, {"product": 0, "bias": 0, "y": 1})
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
