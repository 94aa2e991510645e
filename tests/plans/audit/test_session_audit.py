"""What a session of onnxruntime ran: operators on their providers, and in which kernels."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from onnx import TensorProto, helper
from plans.stages_here import plan_of

import go_rl
from go_rl.core import ExecutionError, ReadError
from go_rl.plans.audit import Kernel, operator_fates, read_profile
from go_rl.plans.audit.profile import operator_runs

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


CPU = "CPUExecutionProvider"


def _graph(nodes, weights=()):
    """A graph of ``(type, name, reads, makes)``."""
    made = [helper.make_node(op, reads, makes, name=name) for op, name, reads, makes in nodes]
    held = [helper.make_tensor(name, TensorProto.FLOAT, (), [1.0]) for name in weights]
    return helper.make_graph(made, "g", [], [], held)


MODEL = _graph(
    [
        ("Conv", "conv", ["x", "w"], ["c"]),
        ("Relu", "relu", ["c"], ["r"]),
        ("Add", "constants", ["k", "w"], ["kk"]),
        ("Add", "add", ["r", "kk"], ["a"]),
        ("Identity", "same", ["a"], ["i"]),
        ("MatMul", "product", ["i", "w"], ["m"]),
        ("Add", "bias", ["m", "w"], ["y"]),
        ("Neg", "unread", ["m"], ["z"]),
    ],
    ["w", "k"],
)
OPTIMISED = _graph(
    [
        ("Conv", "r_nchwc", ["x", "packed"], ["token"]),
        ("ReorderOutput", "ReorderOutput", ["token"], ["r"]),
        ("Add", "add", ["r", "kk"], ["a"]),
        ("Gemm", "product/MatMulAddFusion", ["a", "w", "w"], ["y"]),
    ],
    ["w", "kk", "packed"],
)


def test_an_operator_is_in_the_kernel_whose_results_need_it():
    fates = operator_fates(MODEL, OPTIMISED)
    assert fates.kernels == {0: (0,), 1: (0,), 3: (2,), 4: (3,), 5: (3,), 6: (3,)}
    assert fates.joined == {0: [0, 1], 2: [3], 3: [4, 5, 6]}
    assert fates.folded == {2}
    assert fates.removed == {7}


def test_what_ran_is_found_by_name_and_type_or_by_type_and_number():
    model = _graph(
        [
            ("Relu", "", ["x"], ["a"]),
            ("Neg", "neg", ["a"], ["b"]),
            ("Relu", "", ["b"], ["c"]),
            ("Neg", "absent", ["c"], ["y"]),
        ]
    )
    profile = [
        Kernel("Relu_7", "Relu", CPU, 1, 5),
        Kernel("neg", "Neg", CPU, 2, 5),
        Kernel("Relu_2", "Relu", "CUDAExecutionProvider", 1, 5),
        Kernel("absent", "Abs", CPU, 1, 5),
    ]
    runs = operator_runs(model, model, profile)
    assert [[kernel.name for kernel in runs.of(n)] for n in range(4)] == [
        ["Relu_2"], ["neg"], ["Relu_7"], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("[{", r"is no whole profile of onnxruntime .*session.end_profiling\(\)"),
        ("{}", "is a list of events"),
        ("[]", "holds no kernel; set enable_profiling"),
    ],
)
def test_what_is_no_profile_is_said(tmp_path, text, words):
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ExecutionError, match=words):
        read_profile(path)
