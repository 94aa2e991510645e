"""``go-rl run --audit`` and ``go-rl check --ran``, as a user types them."""

import json

import onnx
import pytest
from layered_graphs import onnx_file

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")


@pytest.fixture
def planned(command, tmp_path):
    """A model and the folder of a plan for it."""
    model = onnx_file(tmp_path)
    command("optimize", model, "--hardware", "p100x2", "--decide", "placement", "--samples", "2",
            "--method", "default", "--out", "out")  # fmt: skip
    return model


@pytest.mark.slow
def test_an_audited_run_lists_operators_and_what_differs(command, planned, tmp_path):
    command("export", "out/plan.json", planned, "--to", "stages")
    found = command("run", "stages", "--audit", "--samples", "2")
    assert found.code == 0, found
    assert "every operator ran where the plan puts it, once a sample" in found.out
    manifest = tmp_path / "stages" / "stages.json"
    document = json.loads(manifest.read_text())
    lost = document["stages"][0]["operators"].pop()
    manifest.write_text(json.dumps(document))
    found = command("run", "stages", "--audit", "--samples", "2", "--json")
    assert found.code == 1
    (difference,) = found.document["audit"]["differences"]
    assert f"operator {lost!r} ran in stage 0 (device" in difference


def test_a_profile_is_held_against_a_plan(command, planned, tmp_path):
    names = [node.name for node in onnx.load(planned).graph.node]
    events = [
        {"cat": "Node", "name": f"{node.name}_kernel_time", "pid": 1,
         "args": {"op_name": node.op_type, "provider": "CUDAExecutionProvider"}}
        for node in onnx.load(planned).graph.node
    ]  # fmt: skip
    (tmp_path / "profile.json").write_text(json.dumps(events))
    found = command("check", "out/plan.json", planned, "--ran", "profile.json")
    assert found.code == 0, found
    assert "as planned" in found.out
    events[0]["args"]["provider"] = "CPUExecutionProvider"
    (tmp_path / "profile.json").write_text(json.dumps(events))
    found = command("check", "out/plan.json", planned, "--ran", "profile.json")
    assert found.code == 1
    assert f"operator {names[0]!r} ran on CPUExecutionProvider" in found.out
    found = command("check", "out/plan.json", planned, "--ran", "profile.json", "--provider", "0")
    assert found.code == 2
    assert "--provider must be DEVICE=NAME" in found.err
