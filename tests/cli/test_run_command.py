"""``go-rl run --check`` and ``--record``, as a user types them."""

import json

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from plans.stages_here import plan_of

import go_rl

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")
QUICK = "--samples", "2", "--warm-up", "0"


@pytest.fixture
def exported(tmp_path, in_process):
    """A model of two results in one stage, exported into ``stages``."""
    text = "(float[4,8] x) => (float[4,8] a, float[4,8] c) { [a] a = Relu(x) [c] c = Mul(a, k) }"
    onnx.save(parsed(text, array("k", np.ones(8))), tmp_path / "m.onnx")
    plan = plan_of(tmp_path / "m.onnx", {"a": 0, "c": 0})
    go_rl.export_stages(plan, tmp_path / "m.onnx", tmp_path / "stages")
    return tmp_path / "stages"


def test_a_check_ends_with_its_verdict(command, exported):
    found = command("run", "stages", "--check", *QUICK)
    assert found.code == 0, found
    assert found.out.endswith("accepted: 2 outputs within --tolerance 0.0001\n")
    (file,) = exported.glob("*.onnx")
    stage = onnx.load(file)
    stage.graph.initializer[0].CopyFrom(array("k", np.full(8, np.nan)))
    onnx.save(stage, file)
    found = command("run", "stages", "--check", *QUICK)
    assert found.code == 1
    assert found.out.endswith("rejected: output c is off by inf, more than --tolerance 0.0001\n")
    found = command("run", "stages", "--check", "--json", *QUICK)
    assert (found.code, found.document["accepted"]) == (1, False)
    assert [each["max_relative"] for each in found.document["outputs"]] == [0, None]
    (exported / "plan.json").unlink()
    found = command("run", "stages", "--json", *QUICK)
    assert (found.code, found.document["accepted"]) == (0, None)


def test_a_record_without_a_plan_is_refused_before_anything_runs(refused, exported, monkeypatch):
    monkeypatch.setattr("go_rl.plans.pipeline.pipeline.run_stages", None)
    plan = exported / "plan.json"
    document = json.loads(plan.read_text())
    plan.write_text(json.dumps({**document, "graph_hash": 1}))
    refused("run", "stages", "--record", "runs.jsonl", said="stages/plan.json: ")
    plan.unlink()
    refused("run", "stages", "--record", "runs.jsonl", said="stages/plan.json: ")
    refused("run", "nowhere", "--record", "runs.jsonl", said="nowhere/plan.json: ")
    assert not (exported.parent / "runs.jsonl").exists()
