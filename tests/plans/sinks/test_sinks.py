"""A plan written in each notation, read back, and judged as it was."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import mpmd
from layered_graphs import llama, split_of

import go_rl
from go_rl.api.options import SINK_NAMES
from go_rl.core import Budget, PlanError, SplitError, Status
from go_rl.plans.sinks import SINKS, render_sink, write_sink
from go_rl.plans.splits import judge
from go_rl.plans.splits.layer_cuts import JOINED, LayerCuts

OF_ONNX = ("openvino", "onnxruntime")
"""Sinks that name operators of an ONNX file."""
TEXTS = tuple(name for name in SINKS if name not in ("onnx", "genai", "iree", *OF_ONNX))


def planned(problem, text):
    """The plan of a split that the test wrote."""
    found = judged(problem, text)
    assert found.ok
    return found.plan


def judged(problem, text, notation=None):
    return judge(split_of(problem, text, notation), problem, moves=False)


@pytest.fixture(scope="module")
def layered(problem):
    return planned(problem, "Et|tt|tL")


def test_the_command_line_knows_all_sinks():
    assert SINKS == SINK_NAMES


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_is_judged_as_the_plan_was(name, problem, layered):
    text = render_sink(name, layered, problem.graph)
    for notation in (name, None):
        back = judged(problem, text, notation)
        assert back.plan.value == layered.value
        running = ~problem.graph.is_fed
        assert np.array_equal(back.plan.device[running], layered.device[running])


@pytest.mark.parametrize("name", OF_ONNX)
def test_names_of_operators_are_those_of_an_onnx_file(name, tower, problem, layered):
    plan = planned(tower, "1,2,1")
    for notation in (name, None):
        back = judged(tower, render_sink(name, plan, tower.graph), notation)
        assert back.plan.value == plan.value
        assert np.array_equal(back.plan.device, plan.device)
    with pytest.raises(SplitError, match=f"{name} names the operators of an ONNX file, and 'tiny'"):
        render_sink(name, layered, problem.graph)


@pytest.mark.parametrize("sink", JOINED)
def test_a_plan_made_for_a_tool_can_be_told_to_it(sink, problem):
    plan = LayerCuts(sink).optimize(problem, Budget(samples=10_000), 0)
    assert judged(problem, render_sink(sink, plan, problem.graph)).plan.value == plan.value


FINER = '{"model": 0, "model.layers.2.mlp": 1, "model/layers.2/mlp_residual": 1, ' \
    '"model.layers.3": 1, "model.norm": 1, "lm_head": 1}'  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("vllm", "plan it so with go-rl optimize ... --for vllm"),
        ("megatron", "--for megatron"),
        ("torchtitan", "--for torchtitan"),
        ("llama.cpp", "--for llama.cpp"),
        ("torch", "use a sink that names nodes: json"),
    ],
)
def test_a_plan_finer_than_layers_is_refused_with_the_cure(name, cure, problem):
    plan = planned(problem, FINER)
    with pytest.raises(SplitError, match="whose parts are finer") as error:
        render_sink(name, plan, problem.graph)
    assert cure in str(error.value)


@pytest.mark.parametrize("name", ["json", "hf", "shardy"])
def test_notations_of_modules_and_nodes_say_finer_plans(name, problem):
    plan = planned(problem, FINER)
    assert judged(problem, render_sink(name, plan, problem.graph)).plan.value == plan.value


def test_what_cannot_leave_is_refused(problem, layered, tmp_path):
    graph = problem.graph
    with pytest.raises(SplitError, match="no sink 'vlm'; did you mean"):
        render_sink("vlm", layered, graph)
    with pytest.raises(SplitError, match="is made from the model's file"):
        render_sink("onnx", layered, graph)
    with pytest.raises(SplitError, match="onnx needs the ONNX file"):
        write_sink("onnx", layered, graph, tmp_path / "x.onnx")
    failure = replace(layered.evaluation, status=Status.GAVE_UP)
    with pytest.raises(PlanError, match="the plan is a failure"):
        render_sink("vllm", replace(layered, evaluation=failure), graph)
    with pytest.raises(PlanError, match="the plan is for another graph"):
        render_sink("vllm", layered, llama(tmp_path, layers=2))
    with pytest.raises(SplitError, match="has nothing to say of a plan on one device"):
        render_sink("torch", planned(problem, "4"), graph)
    (tmp_path / "folder").mkdir()
    with pytest.raises(SplitError, match="cannot be written"):
        write_sink("vllm", layered, graph, tmp_path / "folder")
    backwards = go_rl.check_split('{"model": 1, "lm_head": 0}', graph, "p100x2",
                                  objective="max-load", cost="analytical").plan  # fmt: skip
    with pytest.raises(SplitError, match="the plan goes from device 1 back to 0"):
        render_sink("megatron", backwards, graph)


def test_shardy_reads_the_topology_and_go_rl_the_assignment(problem, layered):
    topology, assignment = render_sink("shardy", layered, problem.graph).splitlines()
    context = ir.Context()
    mpmd.register_dialect(context)
    with context:
        read = ir.Attribute.parse(topology.removeprefix("topology="))
    assert str(read).count('<["x"=1]>') == 4
    assert assignment.startswith("assignment=model.embed_tokens@d0,model.layers.0@d0,")
    again = assignment.replace("@d1", "@other/1").replace("@d0", "@one#device")
    assert judged(problem, again).plan.value == layered.value  # meshes as they appear
    with pytest.raises(SplitError, match="the topology has meshes d0, d1, d2, d3"):
        split_of(problem, f"{topology}\nmodel@d9")
    with pytest.raises(SplitError, match="assigns 'model' twice"):
        split_of(problem, "model@d0,model@d1")


def test_onnxruntime_takes_the_assignment(tower, tmp_path):
    value = render_sink("onnxruntime", planned(tower, "1,2,1"), tower.graph).strip()
    assert value == ("gpu:0(/layers.0/); gpu:1(/layers.1/, /layers.2/); gpu:2(/head/, /layers.3/)")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # there are no GPUs here, which it would say
    options.add_session_config_entry("session.name_based_layer_assignment", value)
    session = onnxruntime.InferenceSession(
        str(tmp_path / "tower.onnx"), options, providers=["CPUExecutionProvider"]
    )
    x = np.eye(4, 8, dtype=np.float32)
    assert np.asarray(session.run(None, {"x": x})[0]).shape == (4, 8)
