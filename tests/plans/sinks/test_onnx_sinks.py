"""Sinks that go by the operators of an ONNX file, and what no sink writes."""

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from onnx import TensorProto, helper
from plans.stages_here import plan_of

import go_rl
from go_rl.api.plans.sinks import sink_notes
from go_rl.core import PlanError, SplitError
from go_rl.costs.models.stage_times import read_times
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.splits.notations import read_split
from go_rl.plans.stages.manifest import stage_devices

NO_PLAN: Any = 3
QUANTISED = """(float[4,8] x) => (float[4,8] y) {
    [a] a = MatMul(x, w)
    [q] q = QuantizeLinear(a, scale, zero)
    [d] d = DequantizeLinear(q, scale, zero)
    [b] y = MatMul(d, w)
}"""
BRANCHED = """(float[4,8] x, bool c) => (float[4,8] y) {
    [a] a = MatMul(x, w)
    [iff] b = If(c) <then_branch = then () => (t) { [tm] m = MatMul(a, w) [tr] t = Relu(m) },
                     else_branch = other () => (e) { [em] e = Relu(a) }>
    [end] y = MatMul(b, w)
}"""


def saved(path, text, *weights):
    onnx.save(parsed(text, array("w", np.eye(8)), *weights), path)
    return path


def chain(path, count=4, name="abcd"):
    """Products in a chain; ``name``: a letter for each, blanks for none."""
    tensors = ["x", *(f"t{i}" for i in range(1, count)), "y"]
    text = " ".join(
        f"{f'[{own}] ' if own.strip() else ''}{v} = MatMul({u}, w)"
        for own, (u, v) in zip(name, pairwise(tensors), strict=True)
    )
    return saved(path, f"(float[4,8] x) => (float[4,8] y) {{ {text} }}")


def result_of(model) -> Any:
    """The result of a search in place of its best plan."""
    return go_rl.optimize(model, hardware="p100x2", samples=2)


@pytest.mark.parametrize("kind", ["in turns", "quantised", "copies"])
def test_genai_describes_the_stages_that_are_written(kind, tmp_path):
    if kind == "quantised":
        scale, zero = array("scale", 0.1), helper.make_tensor("zero", TensorProto.INT8, [], [0])
        model = saved(tmp_path / "m.onnx", QUANTISED, scale, zero)
        plan = plan_of(model, {"a": 0, "q": 1, "d": 1, "b": 1})
    else:
        model = chain(tmp_path / "m.onnx")
        plan = plan_of(model, {"a": 0, "b": 1, "c": 0, "d": 1})
    if kind == "copies":
        text = "(float[4,8] x) => (float[4,8] y) { [m] m = Sin(x) [a] a = MatMul(m, w) " \
            "[b] b = MatMul(a, w) [c] y = Add(b, m) }"  # fmt: skip
        model = saved(tmp_path / "copies.onnx", text)
        plan = go_rl.optimize(model, hardware="ring4", samples=20, objective="ring",
                              fixed={"m": 0, "a": 0, "b": 1, "c": 1}).best  # fmt: skip
    manifest = go_rl.export_stages(plan, model, tmp_path / "stages")
    go_rl.export_sink(plan, model, "genai", tmp_path / "genai.json")
    document = json.loads((tmp_path / "genai.json").read_text())
    told = [each for stage in document["model"]["decoder"]["pipeline"] for each in stage.values()]
    assert told == [
        {
            "filename": stage.file,
            "inputs": [tensor.name for tensor in stage.inputs],
            "outputs": [tensor.name for tensor in stage.outputs],
        }
        for stage in manifest.stages
    ]
    assert len(told) == (4 if kind == "in turns" else 2)


def test_an_operator_with_branches_has_one_device_under_its_own_name(tmp_path):
    model = saved(tmp_path / "m.onnx", BRANCHED)
    plan = plan_of(model, {"a": 0, "iff/*": 1, "end": 1})
    affinities = json.loads(go_rl.export_sink(plan, model, "openvino"))
    assert affinities == {"a": "GPU.0", "iff": "GPU.1", "end": "GPU.1"}
    assert go_rl.export_sink(plan, model, "onnxruntime") == "gpu:0(a); gpu:1(iff, end)\n"
    apart = plan_of(model, {"a": 0, "iff/tm": 0, "iff/tr": 1, "end": 1})
    for sink in ("openvino", "onnxruntime"):
        with pytest.raises(SplitError, match=r"the parts of .* are on devices 0 and 1"):
            go_rl.export_sink(apart, model, sink)


def test_operators_without_a_name_of_their_own_are_refused(tmp_path):
    alike, unnamed = (chain(tmp_path / f"{i}.onnx", 2, name) for i, name in enumerate(("nn", "a ")))
    plan = go_rl.optimize(alike, hardware="p100x2", samples=2).best
    for sink in ("openvino", "onnxruntime"):
        with pytest.raises(SplitError, match=r"operators 0 and 1 of .* are both called 'n'"):
            go_rl.export_sink(plan, alike, sink)
    plan = go_rl.optimize(unnamed, hardware="p100x2", samples=2).best
    with pytest.raises(SplitError, match=r"operator 1 \(MatMul, which makes 'y'\) has none"):
        go_rl.export_sink(plan, unnamed, "onnxruntime")
    assert set(json.loads(go_rl.export_sink(plan, unnamed, "openvino"))) == {"a", "y"}


def test_copies_that_a_notation_cannot_say_are_told(tmp_path):
    model = chain(tmp_path / "m.onnx")
    graph, plan = go_rl.load(model), plan_of(model, {"*": 0})
    node = graph.index["b"]
    copied = replace(plan, replicas={node: (1,)})
    (note,) = sink_notes(copied, graph, "json")
    assert "1 operator that further devices compute, such as 'b' of device 0 on 1" in note
    assert sink_notes(plan, graph, "json") == sink_notes(copied, graph, "genai") == ()


@pytest.mark.parametrize("to", ["json", "openvino", "genai", "stages"])
def test_what_the_checker_rejects_does_not_leave(to, tmp_path):
    model = chain(tmp_path / "m.onnx")
    plan = plan_of(model, {"a": 0, "b": 0, "c": 1, "d": 1}, objective="ring", hardware="ring4")
    index = go_rl.load(model).index
    backwards = plan.device.copy()
    backwards[index["b"]], backwards[index["c"]] = 1, 0
    wrong = {
        "acyclic": replace(plan, device=backwards, fixed={}),
        "fixed": replace(plan, fixed={index["a"]: 3}),
        "value": replace(plan, evaluation=replace(plan.evaluation, seconds=1e-9)),
        "rules": replace(plan, rules="bogus"),
    }
    out = tmp_path / "out"
    export = partial(go_rl.export_sink, to=to, out=out)
    if to == "stages":
        export = partial(go_rl.export_stages, to=out)
    for said, each in wrong.items():
        with pytest.raises(PlanError, match=said):
            export(each, model)
        assert not out.exists()


def test_the_arrays_of_a_model_are_not_written_over(tmp_path):
    model = chain(tmp_path / "m.onnx")
    onnx.save(onnx.load(model), model, save_as_external_data=True, location="w.data",
              size_threshold=0)  # fmt: skip
    plan, data = plan_of(model, {}), (tmp_path / "w.data").read_bytes()
    for sink in ("json", "onnx"):
        with pytest.raises(SplitError, match=r"w\.data: holds arrays of .*m\.onnx"):
            go_rl.export_sink(plan, model, sink, tmp_path / "w.data")
    assert (tmp_path / "w.data").read_bytes() == data


def test_an_onnx_file_is_known_by_its_content(tmp_path):
    model = chain(tmp_path / "model.pb")
    plan, graph = plan_of(model, {"a": 0, "b": 0, "c": 1, "d": 1}), go_rl.load(model)
    go_rl.export_sink(plan, model, "onnx", tmp_path / "annotated")
    back = read_split(tmp_path / "annotated", graph, go_rl.problem_of(plan, graph).hardware)
    assert back.notation == "onnx"
    assert np.array_equal(back.device, plan.device)


def test_stages_go_to_a_folder_of_their_own(tmp_path, monkeypatch):
    model = chain(tmp_path / "m.onnx")
    plan = plan_of(model, {})
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    monkeypatch.chdir(tmp_path / "empty")
    for folder in (".", tmp_path / "link"):
        with pytest.raises(PlanError, match="no link and not the current one"):
            go_rl.export_stages(plan, model, folder)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: go_rl.export_sink(NO_PLAN, model, "json"),
        lambda model: go_rl.export_stages(NO_PLAN, model, "out"),
        lambda model: go_rl.check(NO_PLAN, model),
        lambda model: go_rl.audit_session(NO_PLAN, model, "profile"),
        lambda model: go_rl.export_sink(result_of(model), model, "json"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked_types")
def test_a_plan_is_a_plan_or_the_path_of_one(call, tmp_path):
    with pytest.raises(PlanError, match=r"a plan is a Plan or the path of a plan\.json, not "):
        call(chain(tmp_path / "m.onnx"))


@pytest.mark.usefixtures("unchecked_types")
def test_wrong_arguments_of_stages_are_named(tmp_path):
    model = chain(tmp_path / "m.onnx")
    plan = plan_of(model, {})
    with pytest.raises(PlanError, match=r"no option 'nonsense'\. Options here: dims, "):
        go_rl.export_stages(plan, model, tmp_path / "out", nonsense=1)
    with pytest.raises(PlanError, match="args are those of a JAX function"):
        go_rl.export_stages(plan, model, tmp_path / "out", args=(1,))
    with pytest.raises(PlanError, match="must be a file, module:name or a JAX function, not "):
        go_rl.export_stages(plan, NO_PLAN, tmp_path / "out")


def test_stages_say_where_quantisers_run(tmp_path):
    """A quantiser stays with what it quantises, whatever the plan says, and times are of that."""
    scale, zero = array("scale", 0.1), helper.make_tensor("zero", TensorProto.INT8, [], [0])
    model = saved(tmp_path / "m.onnx", QUANTISED, scale, zero)
    plan = plan_of(model, {"a": 0, "q": 1, "d": 1, "b": 1})
    manifest = go_rl.export_stages(plan, model, tmp_path / "stages")
    moved = [str(plan.nodes[node]) for node in
             np.flatnonzero(stage_devices(plan, manifest) != plan.device)]  # fmt: skip
    assert moved == ["q"]
    record = tmp_path / "runs.jsonl"
    found = go_rl.run_stages(tmp_path / "stages", audit=True, record=record,
                             config=PipelineConfig(samples=2, warm_up=0))  # fmt: skip
    assert found.audit is not None
    assert (found.audit.differences, found.audit.moved) == ((), ("q",))
    (times,) = read_times(record)
    index = go_rl.load(model).index
    assert index["q"] in times.nodes[0]
    assert index["q"] not in times.nodes[1]
