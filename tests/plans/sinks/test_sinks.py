"""A plan written in each notation, read back, and judged as it was."""

import json
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import mpmd
from layered_graphs import llama, onnx_file, posed
from small_problems import boxes

import go_rl
from go_rl.api.options import SINK_NAMES
from go_rl.core import Budget, PlanError, SplitError, Status
from go_rl.graphs.readers import load
from go_rl.plans.sinks import SINKS, render_sink, write_sink
from go_rl.plans.splits import judge, read_split
from go_rl.plans.splits.layer_cuts import JOINED, LayerCuts

TEXTS = tuple(name for name in SINKS if name not in ("onnx", "genai", "iree"))


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return posed(llama(tmp_path_factory.mktemp("llama")), "ring4")


def planned(problem, text):
    """The plan of a split that the test wrote."""
    found = judge(read_split(text, problem.graph, problem.hardware), problem, moves=False)
    assert found.ok
    return found.plan


@pytest.fixture(scope="module")
def layered(problem):
    return planned(problem, "Et|tt|tL")


def test_the_command_line_knows_all_sinks():
    assert SINKS == SINK_NAMES


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_is_judged_as_the_plan_was(name, problem, layered):
    text = render_sink(name, layered, problem.graph)
    for notation in (name, None):
        back = judge(
            read_split(text, problem.graph, problem.hardware, notation), problem, moves=False
        )
        assert back.plan.value == layered.value
        running = ~problem.graph.is_fed
        assert np.array_equal(back.plan.device[running], layered.device[running])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vllm", "1,2,1\n"),
        ("megatron", "Et|t*2|tL\n"),
        ("llama.cpp", "-ts 1,2,2\n"),
    ],
)
def test_strings_of_launchers(name, text, problem, layered):
    assert render_sink(name, layered, problem.graph) == text


def test_documents_of_launchers(problem, layered):
    def document(name):
        return json.loads(render_sink(name, layered, problem.graph))

    assert document("torchtitan") == {
        "module_fqns_per_model_part": [
            ["tok_embeddings", "layers.0"], ["layers.1", "layers.2"],
            ["layers.3", "norm", "output"],
        ]
    }  # fmt: skip
    assert document("torch") == {"model.layers.1": "BEGINNING", "model.layers.3": "BEGINNING"}
    assert document("hf") == {
        "model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.layers.2": 1,
        "model.layers.3": 2, "model.norm": 2, "lm_head": 2,
    }  # fmt: skip
    assert document("openvino")["model/layers.2/mlp/up_proj"] == "GPU.1"
    assert document("json")["model.layers.2"] == 1


@pytest.mark.parametrize("sink", JOINED)
def test_a_plan_made_for_a_tool_can_be_told_to_it(sink, problem):
    plan = LayerCuts(sink).optimize(problem, Budget(samples=10_000), 0)
    back = read_split(render_sink(sink, plan, problem.graph), problem.graph, problem.hardware)
    assert judge(back, problem, moves=False).plan.value == plan.value


FINER = '{"model": 0, "model.layers.2.mlp": 1, "model/layers.2/mlp_residual": 1, ' \
    '"model.layers.3": 1, "model.norm": 1, "lm_head": 1}'  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("vllm", "plan it so with go-rl optimize ... --for vllm"),
        ("megatron", "--for megatron"),
        ("torchtitan", "--for torchtitan"),
        ("llama.cpp", "--for llama.cpp"),
        ("torch", "use json, onnx, onnxruntime or openvino, which name nodes"),
    ],
)
def test_a_plan_finer_than_layers_is_refused_with_the_cure(name, cure, problem):
    plan = planned(problem, FINER)
    with pytest.raises(SplitError, match="whose parts are finer") as error:
        render_sink(name, plan, problem.graph)
    assert cure in str(error.value)


@pytest.mark.parametrize("name", ["json", "hf", "openvino", "onnxruntime", "shardy"])
def test_notations_of_modules_and_nodes_say_finer_plans(name, problem):
    plan = planned(problem, FINER)
    back = read_split(render_sink(name, plan, problem.graph), problem.graph, problem.hardware)
    assert judge(back, problem, moves=False).plan.value == plan.value


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
    back = read_split(again, problem.graph, problem.hardware)  # meshes as they appear
    assert judge(back, problem, moves=False).plan.value == layered.value
    with pytest.raises(SplitError, match="the topology has meshes d0, d1, d2, d3"):
        read_split(f"{topology}\nmodel@d9", problem.graph, problem.hardware)
    with pytest.raises(SplitError, match="assigns 'model' twice"):
        read_split("model@d0,model@d1", problem.graph, problem.hardware)


def test_a_sink_is_written_whole(problem, layered, tmp_path):
    write_sink("vllm", layered, problem.graph, tmp_path / "new" / "partition.txt")
    assert (tmp_path / "new" / "partition.txt").read_text() == "1,2,1\n"


@pytest.fixture
def tower(tmp_path):
    return posed(load(onnx_file(tmp_path)), "ring4")


def test_an_annotated_model_runs_and_reads_back(tower, tmp_path):
    plan = planned(tower, "1,2,1")
    out = tmp_path / "staged.onnx"
    write_sink("onnx", plan, tower.graph, out, tmp_path / "tower.onnx")
    onnx.checker.check_model(onnx.load(out))
    back = read_split(out, tower.graph, tower.hardware)
    assert judge(back, tower, moves=False).plan.value == plan.value
    again = load(out)
    assert again.digest == tower.graph.digest
    write_sink("onnx", plan, again, tmp_path / "twice.onnx", out)  # replaces its own annotations
    assert (tmp_path / "twice.onnx").read_bytes() == out.read_bytes()


def test_an_annotated_copy_elsewhere_may_not_lose_its_weights(tower, tmp_path):
    model = onnx.load(tmp_path / "tower.onnx")
    onnx.save(model, tmp_path / "tower.onnx", save_as_external_data=True, size_threshold=0,
              location="weights.bin")  # fmt: skip
    plan = planned(tower, "1,2,1")
    write_sink("onnx", plan, tower.graph, tmp_path / "beside.onnx", tmp_path / "tower.onnx")
    with pytest.raises(SplitError, match="write it to the same folder"):
        write_sink("onnx", plan, tower.graph, tmp_path / "a" / "b.onnx", tmp_path / "tower.onnx")
    assert not (tmp_path / "a").exists()


def test_stages_of_genai_name_what_crosses(tower, tmp_path):
    out = tmp_path / "genai_config.json"
    write_sink("genai", planned(tower, "1,2,1"), tower.graph, out, tmp_path / "tower.onnx")
    stages = json.loads(out.read_text())["model"]["decoder"]["pipeline"]
    assert stages == [
        {"stage-0": {"filename": "stage-00-device-0.onnx", "inputs": ["x"], "outputs": ["r0"]}},
        {"stage-1": {"filename": "stage-01-device-1.onnx", "inputs": ["r0"], "outputs": ["r2"]}},
        {"stage-2": {"filename": "stage-02-device-2.onnx", "inputs": ["r2"], "outputs": ["y"]}},
    ]


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


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    given = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    folder = tmp_path_factory.mktemp("experts")
    return posed(llama(folder, **given), "p100x2", "max-load")


EXPERTS = "(ffn_down_exps|ffn_gate_exps|ffn_up_exps)"


@pytest.mark.parametrize(
    ("split", "text"),
    [
        (r"-ts 3,2 -ot '[0-2]\.ffn_.*_exps=CUDA1'",
         rf"-ts 3,2 -ot 'blk\.(0|1|2)\.{EXPERTS}\.=CUDA1'"),
        ("-ts 1 -ot 'output_norm=CUDA1,embd=CUDA1'",
         r"-ts 5 -ot '^(output_norm|token_embd)\.=CUDA1'"),
        (r"-ts 3,2 -ot 'blk\.1\.attn_q=CUDA1,blk\.3\.ffn_up=CUDA0'",
         r"-ts 3,2 -ot 'blk\.1\.attn_q\.=CUDA1,blk\.3\.ffn_up_exps\.=CUDA0'"),
    ],
)  # fmt: skip
def test_tensors_apart_from_their_layer_are_overridden(split, text, experts):
    plan = planned(experts, split)
    assert render_sink("llama.cpp", plan, experts.graph) == f"{text}\n"
    back = read_split(text, experts.graph, experts.hardware)
    assert judge(back, experts, moves=False).plan.value == plan.value


def test_experts_on_the_host_and_tensors_without_a_name(tmp_path):
    graph = llama(tmp_path, model_type="mixtral", num_local_experts=4, num_experts_per_tok=2)
    boxes(1, 1).save(tmp_path / "boxes.json")
    host = posed(graph, str(tmp_path / "boxes.json"), "max-load")
    plan = planned(host, r"-ts 1 -ot '\.ffn_.*_exps=CPU'")
    text = render_sink("llama.cpp", plan, graph)
    assert text == rf"-ts 5 -ot 'blk\.(0|1|2|3)\.{EXPERTS}\.=CPU'" + "\n"
    tower = posed(load(onnx_file(tmp_path)), "p100x2", "max-load")
    apart = planned(tower, '{"/layers.1/fc/*": 1, "/layers.*": 0, "/head/*": 0}')
    with pytest.raises(SplitError, match=r"llama\.cpp's name of '/layers\.1/fc/MatMul'"):
        render_sink("llama.cpp", apart, tower.graph)
