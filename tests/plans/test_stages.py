"""Stages of a plan as ONNX files: where they are cut, what they hold, and what they compute."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from plans.stages_here import output_errors, plan_of

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import (
    ExecutionError,
    MissingDependencyError,
    Plan,
    PlanError,
    ReadError,
    RecordError,
)
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.stages.manifest import read_manifest

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")
QUICK = PipelineConfig(samples=2, warm_up=0)
_plan = partial(plan_of, dims={"batch": 4})


def _chain(path):
    """x → a → b → c → y, each a product."""
    products = [f"[{v}] {v} = MatMul({u}, w{v})" for u, v in pairwise("xabcy")]
    weights = [
        array(f"w{v}", np.random.default_rng(ord(v)).standard_normal((8, 8))) for v in "abcy"
    ]
    text = f"(float[batch,8] x) => (float[batch,8] y) {{ {' '.join(products)} }}"
    onnx.save(parsed(text, *weights), path)
    return path


def test_weights_that_cannot_be_read_are_named(tmp_path):
    model = _chain(tmp_path / "m.onnx")
    plan, beside = _plan(model, {}), tmp_path / "w.bin"
    whole = onnx.load(model)
    onnx.save(whole, model, save_as_external_data=True, location=beside.name, size_threshold=0)
    beside.unlink()
    for prepare, why in ((lambda: None, "No such file"), (beside.mkdir, "Is a directory")):
        prepare()
        said = rf"w\.bin: the model's arrays lie in it, and it cannot be read \({why}"
        with pytest.raises(ReadError, match=said):
            go_rl.export_stages(plan, model, tmp_path / "stages")
        assert not (tmp_path / "stages").exists()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "location",
            "{}/secret",
            r"m\.onnx: array 'wa' is stored in '.*secret'; it must be a file",
        ),
        ("location", "../secret", r"'\.\./secret'; it must be a file in the model's folder"),
        ("location", "", "is stored in ''; it must be a file"),
        ("offset", "-8", "is stored at offset '-8'; it must be a whole number"),
        ("offset", str(1 << 20), r"w\.bin: ends 256 bytes before an array"),
    ],
)
def test_a_model_brings_no_file_from_outside_its_folder(tmp_path, key, value, said):
    (tmp_path / "secret").write_bytes(bytes(1000))
    (tmp_path / "given").mkdir()
    model = _chain(tmp_path / "given" / "m.onnx")
    plan, whole = _plan(model, {}), onnx.load(model)
    onnx.save(whole, model, save_as_external_data=True, location="w.bin", size_threshold=0)
    whole = onnx.load(model, load_external_data=False)
    stored = {entry.key: entry for entry in whole.graph.initializer[0].external_data}
    stored[key].value = value.format(tmp_path)
    model.write_bytes(whole.SerializeToString())
    with pytest.raises(ReadError, match=said):
        go_rl.export_stages(plan, model, tmp_path / "stages")
    assert not (tmp_path / "stages").exists()


def _agrees(plan, model, folder, stages, inputs=None):
    """Export, run here, compare; the devices of the stages in order."""
    manifest = go_rl.export_stages(plan, model, folder)
    assert [stage.device for stage in manifest.stages] == stages
    for stage in manifest.stages:
        onnx.checker.check_model(str(folder / stage.file), full_check=True)
    assert read_manifest(folder) == manifest
    found = output_errors(folder, manifest, inputs)
    assert all(output.max_relative < 1e-5 for output in found)
    return manifest


@pytest.mark.parametrize(
    ("devices", "stages"),
    [
        ({"a": 0, "b": 0, "c": 1, "y": 1}, [0, 1]),
        ({"a": 1, "b": 1, "c": 0, "y": 0}, [1, 0]),
        ({"a": 0, "b": 1, "c": 0, "y": 1}, [0, 1, 0, 1]),
        ({"a": 1, "b": 1, "c": 1, "y": 1}, [1]),
    ],
)
def test_a_device_has_one_stage_where_devices_take_turns(tmp_path, devices, stages):
    model = _chain(tmp_path / "m.onnx")
    manifest = _agrees(_plan(model, devices), model, tmp_path / "s", stages)
    assert sum(stage.nodes for stage in manifest.stages) == 4
    assert [stage.weight_bytes for stage in manifest.stages] == [
        256.0 * stage.nodes for stage in manifest.stages
    ]
    assert manifest.stages[0].inputs[0].shape == ("batch", 8)


def test_a_ring_has_seconds_by_stage_and_a_throughput(tmp_path):
    model = _chain(tmp_path / "m.onnx")
    plan = _plan(model, {"a": 0, "b": 0, "c": 1, "y": 1}, "ring", "ring2")
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    found = go_rl.run_stages(tmp_path / "s", check=True, config=QUICK)
    assert [each.device for each in found.stages] == [0, 1]
    assert found.max_relative_error is not None
    assert found.max_relative_error < 1e-5
    assert found.throughput > 0
    assert manifest.predicted_throughput == pytest.approx(1 / plan.value)
    predicted = [stage.predicted_seconds for stage in found.stages]
    assert predicted == pytest.approx(plan.evaluation.device_seconds.tolist())


@pytest.fixture
def exported(tmp_path) -> tuple[Path, Plan, Path]:
    """A model, a plan in two stages, and the folder of these."""
    model = _chain(tmp_path / "m.onnx")
    plan = _plan(model, {"a": 0, "b": 0, "c": 1, "y": 1})
    go_rl.export_stages(plan, model, tmp_path / "s")
    return model, plan, tmp_path / "s"


@pytest.fixture
def folder(exported) -> Path:
    return exported[2]


def test_inputs_come_from_a_file(folder, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones((3, 8), np.float32))
    found = go_rl.run_stages(folder, inputs=tmp_path / "in.npz", check=True, config=QUICK)
    assert found.max_relative_error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "has no array 'x', an input of the model"),
        ({"x": np.ones((3, 8))}, "'x' is of type float64; the model wants float32"),
        ({"x": np.ones((3, 8), np.float32), "xx": np.ones(1)}, "has no input 'xx'; did you mean"),
        ({"x": np.ones((3, 9), np.float32)}, r"shape \(3, 9\); the model wants \(batch, 8\)"),
    ],
)
def test_wrong_inputs_are_named(folder, tmp_path, arrays, words):
    np.savez(tmp_path / "in.npz", **arrays)
    with pytest.raises(ExecutionError, match=words):
        go_rl.run_stages(folder, inputs=tmp_path / "in.npz", config=QUICK)


def test_sizes_of_no_dimension_are_refused(folder):
    with pytest.raises(ExecutionError, match="--dim M: the model has no such dimension"):
        go_rl.run_stages(folder, dims={"M": 4}, config=QUICK)


def test_a_plan_beyond_its_hardware_is_neither_exported_nor_shown(exported, tmp_path):
    model, plan, _ = exported
    beyond = replace(plan, device=np.where(plan.device == 1, 99, plan.device))
    said = "node .c. is on device 99; the hardware has 0"
    with pytest.raises(PlanError, match=said):
        go_rl.export_stages(beyond, model, tmp_path / "t")
    with pytest.raises(PlanError, match=said):
        go_rl.export_sink(beyond, model, "json")
    with pytest.raises(PlanError, match=r"on device 99; the devices of .* are 0"):
        go_rl.view(beyond, tmp_path / "page.html", model)


def test_times_are_recorded_in_a_file_of_times_only(folder, tmp_path):
    record = tmp_path / "runs.jsonl"
    for lines in (1, 2):
        go_rl.run_stages(folder, config=QUICK, record=record)
        assert len(record.read_text().splitlines()) == lines
    for content in (b"my notes\n", b"\x08\x0a\xff"):
        record.write_bytes(content)
        with pytest.raises(RecordError, match=r"runs\.jsonl"):
            go_rl.run_stages(folder, config=QUICK, record=record)
        assert record.read_bytes() == content


def _graph_file(path):
    save_graph(go_rl.load("zoo:resnet18"), path)
    return path


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(exported, tmp_path):
    model, plan, folder = exported
    with pytest.raises(PlanError, match="is there already; name a new or empty folder"):
        go_rl.export_stages(plan, model, folder)
    other = tmp_path / "o.onnx"
    onnx.save(parsed("(float[batch,8] x) => (float[batch,8] y) { y = Relu(x) }"), other)
    with pytest.raises(PlanError, match="the plan is for another graph"):
        go_rl.export_stages(plan, other, tmp_path / "t")
    with pytest.raises(PlanError, match="stages are written of ONNX files"):
        go_rl.export_stages(plan, _graph_file(tmp_path / "g.npz"), tmp_path / "t")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["g.npz", "m.onnx", "o.onnx", "s"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="x"), "this version reads 'go_rl-stages-2'"),
        (lambda d: d.pop("stages"), "field 'stages' is missing"),
        (lambda d: d["stages"][0].update(file="../x.onnx"), "is no name of a file"),
        (lambda d: d["stages"][1]["inputs"][0].update(sender=7), "comes from stage 7"),
        (lambda d: d["stages"][1]["inputs"][0].update(name="elsewhere"),
         "reads 'elsewhere', which stage 0 does not send"),
    ],
)  # fmt: skip
def test_a_wrong_manifest_is_refused(folder, change, words):
    document = json.loads((folder / "stages.json").read_text())
    change(document)
    (folder / "stages.json").write_text(json.dumps(document))
    with pytest.raises(PlanError, match=words):
        go_rl.run_stages(folder, config=QUICK)


def test_a_missing_onnxruntime_is_named_with_its_cure(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[onnxruntime\]'"):
        go_rl.run_stages(folder, config=QUICK)


def _started(folder, program):
    """A script without ``if __name__``, and the processes of its stages once all of them load."""
    script = folder.parent / "script.py"
    script.write_text(program)
    started = subprocess.Popen(
        [sys.executable, str(script)], start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and started.poll() is None:
        stages = [
            int(each) for each in children.read_text().split()
            if "spawn_main" in Path(f"/proc/{each}/cmdline").read_text()
        ]  # fmt: skip
        if len(stages) == 2 and all(_maps_onnxruntime(each) for each in stages):
            return started, stages
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGKILL)  # else it would run its millions of samples
    raise AssertionError(started.communicate())


def _maps_onnxruntime(process):
    return "onnxruntime" in Path(f"/proc/{process}/maps").read_text()


def _gone(process):
    try:
        return "State:\tZ" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["stage", "parent", "interrupt"])
def test_nothing_stays_behind_a_run_that_is_ended(folder, victim):
    started, stages = _started(
        folder,
        f"""
import signal
import go_rl
from go_rl.plans.pipeline.config import PipelineConfig
# Who starts the tests in the background has interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    go_rl.run_stages({str(folder)!r}, config=PipelineConfig(samples=10_000_000))
except KeyboardInterrupt:
    print("stopped")
except go_rl.core.ExecutionError as error:
    print(error)
""",
    )
    if victim == "stage":
        os.kill(stages[1], signal.SIGKILL)
    elif victim == "parent":
        started.kill()
    else:
        os.killpg(started.pid, signal.SIGINT)
    said, errors = started.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while not all(map(_gone, stages)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(_gone, stages))
    expected = {
        "stage": "stage 1 (stage-01-device-1.onnx, device 1) died (killed by SIGKILL); the run "
        "was ended\n",
        "parent": "",
        "interrupt": "stopped\n",
    }  # fmt: skip
    assert said == expected[victim]
    assert not errors or victim == "parent"  # multiprocessing's tracker says that it cleans up
