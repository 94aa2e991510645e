"""Stages of a plan as ONNX files: where they are cut, what they hold, and what they compute."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from plans.stages_here import output_errors

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import ExecutionError, MissingDependencyError, Plan, PlanError, ReadError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.stages.manifest import read_manifest

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")
QUICK = PipelineConfig(samples=2, warm_up=0)
OPSET = helper.make_opsetid("", 21)


def _value(name, shape=("batch", 8), element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def _weight(name, *shape):
    numbers = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(numbers, name)


def _saved(path, nodes, weights=(), inputs=("x",), outputs=("y",)):
    graph = helper.make_graph(
        nodes, "g", [_value(n) if isinstance(n, str) else n for n in inputs],
        [_value(n) if isinstance(n, str) else n for n in outputs], list(weights),
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[OPSET], ir_version=10), path)
    return path


def _node(op, reads, makes, name=None, **attributes):
    makes = [makes] if isinstance(makes, str) else makes
    return helper.make_node(op, reads, makes, name=name or makes[0], **attributes)


def _chain(path):
    """x → a → b → c → y, each a product."""
    names = ["x", "a", "b", "c", "y"]
    nodes = [
        _node("MatMul", [u, f"w{v}"], v) for u, v in pairwise(names)
    ]  # fmt: skip
    return _saved(path, nodes, [_weight(f"w{v}", 8, 8) for v in names[1:]])


def _plan(model, devices, objective="makespan", hardware="p100x2", **options):
    """A plan with nodes on devices of their own."""
    decide = {"decide": "placement"} if objective == "makespan" else {}
    return go_rl.optimize(
        model, hardware=hardware, objective=objective, dims={"batch": 4}, samples=2, fixed=devices,
        method="default" if objective == "makespan" else "greedy", **decide, **options,
    ).best  # fmt: skip


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


def test_constants_go_into_each_stage_and_views_with_what_they_show(tmp_path):
    shape = helper.make_tensor("shape", TensorProto.INT64, (2,), [-1, 8])
    nodes = [
        _node("Constant", [], "k", value=_weight("k", 8)),
        _node("Neg", ["k"], "minus"),
        _node("Reshape", ["x", "shape"], "seen"),
        _node("MatMul", ["seen", "w"], "a"),
        _node("Add", ["a", "minus"], "b"),
        _node("Relu", ["b"], "r"),
        _node("Reshape", ["r", "shape"], "view"),
        _node("Mul", ["view", "minus"], "y"),
    ]
    model = _saved(tmp_path / "m.onnx", nodes, [shape, _weight("w", 8, 8)])
    plan = _plan(model, {"a": 0, "b": 0, "r": 0, "y": 1})
    manifest = _agrees(plan, model, tmp_path / "s", [0, 1])
    assert [t.name for t in manifest.stages[1].inputs] == ["view"]


def _block(*nodes, opset=21):
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_function("own", "Block", ["a", "b"], ["c"], nodes, opsets)


@pytest.mark.parametrize("opset", [21, 12])
def test_local_functions_are_inlined_and_cut(tmp_path, opset):
    inside = [_node("MatMul", ["a", "b"], "m", "inner"), _node("Softmax", ["m"], "c")]
    calls = [
        helper.make_node("Block", ["x", "w"], ["h"], domain="own"),
        helper.make_node("Block", ["h", "w"], ["y"], domain="own"),
    ]
    path = _saved(tmp_path / "m.onnx", calls, [_weight("w", 8, 8)])
    model = onnx.load(path)
    model.functions.append(_block(*inside, opset=opset))
    model.opset_import.append(helper.make_opsetid("own", 1))
    onnx.save(model, path)
    names = ["inner__1", "c__1", "inner__2", "c__2"]
    assert list(go_rl.load(path, {"batch": 4}).names) == ["x", *names]
    plan = _plan(path, dict(zip(names, (0, 1, 1, 0), strict=True)))
    _agrees(plan, path, tmp_path / "s", [0, 1, 0])


def test_operators_that_onnx_does_not_know_are_cut(tmp_path):
    nodes = [
        _node("MatMul", ["x", "w"], "a"),
        _node("BiasGelu", ["a", "b"], "g", domain="com.microsoft"),
        _node("MatMul", ["g", "w"], "y"),
    ]
    path = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8), _weight("b", 8)])
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, path)
    plan = _plan(path, {"a": 0, "g": 0, "y": 1})
    manifest = go_rl.export_stages(plan, path, tmp_path / "s")
    assert manifest.stages[1].inputs[0].shape == (None, None)
    assert go_rl.run_stages(tmp_path / "s", check=True, config=QUICK).max_relative_error == 0.0


def test_what_no_output_needs_is_left_out(tmp_path):
    nodes = [
        _node("MatMul", ["x", "w"], "a"), _node("MatMul", ["x", "w"], "unread", name="y"),
        _node("Tanh", ["a"], "y"),
    ]  # fmt: skip
    model = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8)])
    plan = _plan(model, {"a": 0, "y": 1})
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    assert [stage.nodes for stage in manifest.stages] == [1, 1]


def test_the_arrays_of_a_large_file_are_copied_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr("go_rl.graphs.readers.onnx.load.WHOLE_BYTES", 0)
    nodes = [_node("MatMul", ["x", "w"], "a"), _node("MatMul", ["a", "v"], "y")]
    inner = _weight("w", 8, 128), _weight("v", 128, 8)
    model = _saved(tmp_path / "m.onnx", nodes, inner)
    plan = _plan(model, {"a": 0, "y": 1})
    _agrees(plan, model, tmp_path / "small", [0, 1])
    monkeypatch.setattr("go_rl.graphs.readers.onnx.by_reference.SMALL_BYTES", 0)
    _agrees(plan, model, tmp_path / "s", [0, 1])
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "s").glob("*.data")}
    assert sizes == {f"stage-0{i}-device-{i}.onnx.data": 4096 for i in (0, 1)}
    whole = onnx.load(model)
    whole.graph.initializer[0].raw_data = whole.graph.initializer[0].raw_data[4:]
    onnx.save(whole, model)
    with pytest.raises(ReadError, match="array 'w' has 4092 bytes; its shape wants 4,096"):
        go_rl.export_stages(
            plan, model, tmp_path / "t", go_rl.load(tmp_path / "m.onnx", {"batch": 4})
        )


def test_control_flow_stays_whole_with_what_it_captures(tmp_path):
    def branch(name, op):
        made = f"{name}_out"
        inner = [_node(op, ["a"], f"{name}_mid"), _node("Mul", [f"{name}_mid", "scale"], made)]
        return helper.make_graph(inner, name, [], [_value(made)])

    nodes = [
        _node("MatMul", ["x", "w"], "a"),
        _node("If", ["flag"], "picked", then_branch=branch("then", "Relu"),
              else_branch=branch("other", "Neg")),
        _node("Tanh", ["picked"], "y"),
    ]  # fmt: skip
    flag = numpy_helper.from_array(np.array(True), "flag")
    model = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8), _weight("scale", 8), flag])
    plan = _plan(model, {"a": 0, "picked/*": 1, "y": 0})
    _agrees(plan, model, tmp_path / "s", [0, 1, 0])


def _lstm(path):
    nodes = [
        _node("Unsqueeze", ["x", "zero"], "seq"),
        _node("LSTM", ["seq", "W", "R"], ["hs", "h", "c"], name="lstm", hidden_size=8),
        _node("Squeeze", ["h", "zero"], "last"),
        _node("Tanh", ["last"], "y"),
    ]
    zero = numpy_helper.from_array(np.array([0]), "zero")
    return _saved(path, nodes, [zero, _weight("W", 1, 32, 8), _weight("R", 1, 32, 8)])


def test_a_recurrent_layer_is_one_operator(tmp_path):
    model = _lstm(tmp_path / "m.onnx")
    _agrees(_plan(model, {"lstm/*": 0, "y": 1}), model, tmp_path / "s", [0, 1])
    graph = go_rl.load(model, {"batch": 4})
    parts = [name for name in map(str, graph.names) if name.startswith("lstm/")]
    split = {name: i % 2 for i, name in enumerate(parts)}
    with pytest.raises(PlanError, match=r"operator 'lstm' is one in the file.*--fixed 'lstm\*="):
        go_rl.export_stages(_plan(model, {**split, "y": 1}), model, tmp_path / "t")
    assert not (tmp_path / "t").exists()
    together = _plan(model, {parts[0]: 1, "y": 0}, colocate="operators")
    assert len({int(together.device[together.nodes.index(name)]) for name in parts}) == 1
    _agrees(together, model, tmp_path / "t", [1, 0])


def test_quantised_models_are_cut_at_the_quantised_tensor(tmp_path):
    scale = helper.make_tensor("s", TensorProto.FLOAT, (), [0.05])
    zero = helper.make_tensor("z", TensorProto.INT8, (), [0])
    nodes = [
        _node("MatMul", ["x", "w"], "a"),
        _node("QuantizeLinear", ["a", "s", "z"], "q"),
        _node("DequantizeLinear", ["q", "s", "z"], "d"),
        _node("MatMul", ["d", "v"], "y"),
    ]
    model = _saved(
        tmp_path / "m.onnx", nodes, [scale, zero, _weight("w", 8, 8), _weight("v", 8, 8)]
    )
    plan = _plan(model, {"a": 0, "q": 1, "d": 1, "y": 1})
    manifest = _agrees(plan, model, tmp_path / "s", [0, 1])
    assert [(t.name, t.element_type) for t in manifest.stages[1].inputs] == [("q", "INT8")]


def test_names_are_made_unique_and_arrays_in_other_files_are_brought(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="same"),
        helper.make_node("Relu", ["a"], ["b"], name="same"),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    path = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8)])
    whole = onnx.load(path)
    onnx.save(whole, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    plan = _plan(path, {"a": 0, "b": 0, "y": 1})
    manifest = go_rl.export_stages(plan, path, tmp_path / "s")
    assert go_rl.run_stages(tmp_path / "s", config=QUICK).throughput > 0
    with pytest.raises(ExecutionError, match="onnxruntime refuses the model"):  # the names
        go_rl.run_stages(tmp_path / "s", check=True, config=QUICK)
    assert (tmp_path / "s" / (manifest.stages[1].file + ".data")).stat().st_size == 256
    stage = onnx.load(tmp_path / "s" / manifest.stages[0].file, load_external_data=False)
    assert len({node.name for node in stage.graph.node}) == 2
    assert all(stage.weight_bytes == 256.0 for stage in manifest.stages), "once a device"


def test_a_model_of_one_operator_and_outputs_that_several_read(tmp_path):
    one = _saved(tmp_path / "one.onnx", [_node("Relu", ["x"], "y")])
    _agrees(_plan(one, {"y": 0}), one, tmp_path / "s", [0])
    nodes = [
        _node("MatMul", ["x", "w"], "a"), _node("Relu", ["a"], "y"), _node("Neg", ["a"], "z"),
    ]  # fmt: skip
    both = _saved(tmp_path / "both.onnx", nodes, [_weight("w", 8, 8)], outputs=("a", "y", "z"))
    manifest = _agrees(_plan(both, {"a": 0, "y": 1, "z": 1}), both, tmp_path / "t", [0, 1])
    assert [(t.name, t.sender) for t in manifest.outputs] == [("a", 0), ("y", 1), ("z", 1)]


def test_numbers_without_dimensions_go_between_stages(tmp_path):
    nodes = [
        _node("ReduceMax", ["x"], "top", keepdims=0), _node("MatMul", ["x", "w"], "a"),
        _node("Div", ["a", "top"], "y"),
    ]  # fmt: skip
    model = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8)])
    manifest = _agrees(_plan(model, {"top": 0, "a": 0, "y": 1}), model, tmp_path / "s", [0, 1])
    assert manifest.stages[1].inputs[0].shape == ()


def test_inputs_come_from_a_file(tmp_path):
    model = _chain(tmp_path / "m.onnx")
    go_rl.export_stages(_plan(model, {"a": 0, "y": 1}), model, tmp_path / "s")
    np.savez(tmp_path / "in.npz", x=np.ones((3, 8), np.float32))
    found = go_rl.run_stages(tmp_path / "s", inputs=tmp_path / "in.npz", check=True, config=QUICK)
    assert found.max_relative_error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "has no array 'x', an input of the model"),
        ({"x": np.ones((3, 8))}, "'x' is of type float64; the model wants float32"),
        ({"x": np.ones((3, 8), np.float32), "xx": np.ones(1)}, "has no input 'xx'; did you mean"),
        ({"x": np.ones((3, 9), np.float32)}, "stage 0"),
    ],
)
def test_wrong_inputs_are_named(tmp_path, arrays, words):
    model = _chain(tmp_path / "m.onnx")
    go_rl.export_stages(_plan(model, {"a": 0, "y": 1}), model, tmp_path / "s")
    np.savez(tmp_path / "in.npz", **arrays)
    with pytest.raises(ExecutionError, match=words):
        go_rl.run_stages(tmp_path / "s", inputs=tmp_path / "in.npz", config=QUICK)


def _exported(tmp_path) -> tuple[Path, Plan, Path]:
    model = _chain(tmp_path / "m.onnx")
    plan = _plan(model, {"a": 0, "b": 0, "c": 1, "y": 1})
    go_rl.export_stages(plan, model, tmp_path / "s")
    return model, plan, tmp_path / "s"


def _graph_file(path):
    save_graph(go_rl.load("zoo:resnet18"), path)
    return path


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(tmp_path):
    model, plan, folder = _exported(tmp_path)
    with pytest.raises(PlanError, match="is there already; name a new or empty folder"):
        go_rl.export_stages(plan, model, folder)
    other = _saved(tmp_path / "o.onnx", [_node("Relu", ["x"], "y")])
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
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path, change, words):
    _, _, folder = _exported(tmp_path)
    document = json.loads((folder / "stages.json").read_text())
    change(document)
    (folder / "stages.json").write_text(json.dumps(document))
    with pytest.raises(PlanError, match=words):
        go_rl.run_stages(folder, config=QUICK)


def test_a_stage_that_cannot_be_loaded_or_dies_ends_the_run(tmp_path):
    _, _, folder = _exported(tmp_path)
    files = sorted(folder.glob("*.onnx"))
    kept = files[1].read_bytes()
    files[1].write_bytes(b"no model")
    with pytest.raises(ExecutionError, match=r"stage 1 \(stage-01-device-1.onnx, device 1\)"):
        go_rl.run_stages(folder, config=QUICK)
    files[1].write_bytes(kept)
    document = json.loads((folder / "stages.json").read_text())
    document["stages"][1]["inputs"][0]["name"] = "elsewhere"
    (folder / "stages.json").write_text(json.dumps(document))
    with pytest.raises(PlanError, match="reads 'elsewhere', which stage 0 does not send"):
        go_rl.run_stages(folder, config=QUICK)


def test_a_missing_onnxruntime_is_named_with_its_cure(tmp_path, monkeypatch):
    _, _, folder = _exported(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[onnxruntime\]'"):
        go_rl.run_stages(folder, config=QUICK)


def test_an_input_that_nothing_reads_is_no_matter(tmp_path):
    nodes = [_node("MatMul", ["x", "w"], "a"), _node("Tanh", ["a"], "y")]
    inputs = ["x", _value("ignored", ("batch", 3)), _value("count", (), TensorProto.INT64)]
    model = _saved(tmp_path / "m.onnx", nodes, [_weight("w", 8, 8)], inputs)
    _agrees(_plan(model, {"a": 0, "y": 1}), model, tmp_path / "s", [0, 1])


def test_text_comes_from_a_file_and_goes_to_no_other_stage(tmp_path):
    text = [_value(name, (4,), TensorProto.STRING) for name in ("t", "lower", "said")]
    nodes = [
        _node("StringNormalizer", ["t"], "lower", case_change_action="LOWER", locale="C"),
        _node("StringNormalizer", ["lower"], "said", case_change_action="UPPER", locale="C"),
        _node("Tanh", ["x"], "y"),
    ]
    model = _saved(tmp_path / "m.onnx", nodes, [], ["x", text[0]], ["y", text[2]])
    given = tmp_path / "given.npz"
    np.savez(given, x=np.zeros((4, 8), np.float32), t=np.array(["A", "Bc", "d", ""]))
    together = {"lower": 0, "said": 0, "y": 1}
    _agrees(_plan(model, together), model, tmp_path / "s", [0, 1], inputs=given)
    go_rl.export_stages(_plan(model, together | {"said": 1}), model, tmp_path / "apart")
    with pytest.raises(ExecutionError, match="tensor 'lower' is text"):
        go_rl.run_stages(tmp_path / "apart", inputs=given, config=QUICK)


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


@pytest.mark.parametrize("victim", ["stage", "parent", "interrupt"])
def test_nothing_stays_behind_a_run_that_is_ended(tmp_path, victim):
    _, _, folder = _exported(tmp_path)
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


@pytest.mark.parametrize(
    ("field", "value"), [("samples", 1), ("warm_up", -1), ("slots", 0), ("timeout", 0.0)]
)
def test_wrong_configurations_are_refused(field, value):
    with pytest.raises(ExecutionError, match="run: "):
        PipelineConfig(**{field: value})
