"""Stages that ran, held against their manifest."""

import json

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from plans.stages_here import plan_of

import go_rl
from go_rl.core import ExecutionError, PlanError
from go_rl.plans.audit import audit_stages
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.processes import stage_processes
from go_rl.plans.stages.manifest import read_manifest

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")
QUICK = PipelineConfig(samples=2, warm_up=0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model in two stages: a product with its bias, and constants, in each."""
    path = tmp_path_factory.mktemp("audit")
    text = """(float[4,8] x) => (float[4,8] y) {
        [constants] kk = Neg(k)
        [product] m = MatMul(x, w) [bias] a = Add(m, kk) [first] e = Erf(a)
        [second] n = MatMul(e, w) [scale] y = Mul(n, kk) }"""
    draw = np.random.default_rng(0).standard_normal
    onnx.save(parsed(text, array("k", draw(8)), array("w", draw((8, 8)))), path / "m.onnx")
    devices = {"product": 0, "bias": 0, "first": 0, "second": 1, "scale": 1}
    plan = plan_of(path / "m.onnx", devices)
    go_rl.export_stages(plan, path / "m.onnx", path / "s")
    return path / "s"


@pytest.fixture
def folder(exported, tmp_path):
    """A copy to spoil."""
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_every_operator_ran_where_the_plan_has_it(exported):
    manifest = read_manifest(exported)
    assert [stage.operators for stage in manifest.stages] == [
        ("product", "bias", "first"), ("second", "scale"),
    ]  # fmt: skip
    assert [stage.copies for stage in manifest.stages] == [("constants",), ("constants",)]
    audit = go_rl.run_stages(exported, audit=True, config=QUICK).audit
    assert audit is not None
    assert audit.differences == ()
    audit.require()
    first, second = audit.stages
    assert first.alone == ("first",)
    assert first.joined == dict.fromkeys(("product", "bias"), ("product/MatMulAddFusion",))
    assert first.folded == second.folded == ("constants",)
    assert second.alone == ("second", "scale")
    assert first.providers == second.providers == ("CPUExecutionProvider",)
    assert first.process != second.process


@pytest.mark.slow
def test_an_operator_in_another_stage_is_named(folder):
    document = json.loads((folder / "stages.json").read_text())
    document["stages"][0]["operators"].remove("first")
    document["stages"][1]["operators"].append("first")
    (folder / "stages.json").write_text(json.dumps(document))
    audit = go_rl.run_stages(folder, audit=True, config=QUICK).audit
    assert audit is not None
    assert audit.differences == (
        "operator 'first' ran in stage 0 (device 0); the plan has it in stage 1 (device 1)",
        "stage 1 (device 1) lacks 'first', which the plan has there",
    )
    with pytest.raises(ExecutionError, match="audit: operator 'first' ran in stage 0"):
        audit.require()


@pytest.mark.slow
def test_other_providers_processes_and_counts_are_named(exported, tmp_path):
    """Records as onnxruntime would write them."""
    manifest = read_manifest(exported)
    with stage_processes(exported, manifest, QUICK, tmp_path) as running:
        running.probe({"x": np.zeros((4, 8), np.float32)})
    events = json.loads(running.records[1].profile.read_text())
    kernels = {event["name"]: event for event in events if event["cat"] == "Node"}
    kernels["second_kernel_time"]["args"]["provider"] = "CUDAExecutionProvider"
    kernels["scale_kernel_time"]["pid"] = 1
    running.records[1].profile.write_text(json.dumps(events))
    events = json.loads(running.records[0].profile.read_text())
    again = [e for e in events if not e["name"].startswith("first")]
    again += [e for e in events if e["name"].startswith("product")]
    running.records[0].profile.write_text(json.dumps(again))
    found = audit_stages(exported, manifest, running.records, running.core).differences
    process = running.records[1].process
    assert found == (
        "'first' of stage 0 (device 0) did not run",
        "'product', 'bias' of stage 0 (device 0) ran 2 times for one sample",
        "'second' of stage 1 (device 1) ran on CUDAExecutionProvider, not on CPUExecutionProvider",
        f"'scale' of stage 1 (device 1) ran in process 1, not in {process}",
    )


def test_a_missing_or_other_file_is_one_sentence(folder):
    files = sorted(folder.glob("*.onnx"))
    kept = files[1].read_bytes()
    files[1].write_bytes(files[0].read_bytes())
    with pytest.raises(ExecutionError) as error:
        go_rl.run_stages(folder, config=QUICK)
    assert str(error.value) == (
        "stage 1 (stage-01-device-1.onnx, device 1): the inputs of the file are not those of "
        "stages.json: 'e', 'x'; export the plan again"
    )
    files[1].write_bytes(kept[: len(kept) // 2])
    with pytest.raises(ExecutionError, match=r"onnxruntime does not load the file \(Load model"):
        go_rl.run_stages(folder, config=QUICK)
    files[1].unlink()
    with pytest.raises(PlanError) as missing:
        go_rl.run_stages(folder, config=QUICK)
    assert str(missing.value) == (
        f"{folder}: stage-01-device-1.onnx, stage 1 of stages.json, is not there; export the plan "
        "again"
    )
