"""``go-rl run --audit`` and ``go-rl check --ran``, as a user types them."""

import json

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
