"""Files of stages, notations of splits, and devices by name."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from layered_graphs import devices_of, onnx_file, posed, split_of
from small_graphs import row_of

import go_rl
from go_rl.core import Objective, OpKind, PlanError, Problem, SplitError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import load
from go_rl.graphs.readers.graph_builder import Node
from go_rl.plans.splits import NOTATION_NAMES, judge, read_split


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ("2,2", "vllm"),
        ("'2,2'", "vllm"),
        ("Ett|ttL", "megatron"),
        ("-ts 2,2", "llama.cpp"),
        ("gpu:0(layers.0, layers.1); gpu:1(layers)", "onnxruntime"),
        ('{"model": 0, "lm_head": 1}', "json"),
        ('{"model/layers.0/*": 0}', "json"),
        ('{"model.embed_tokens": 0, "model": 1, "lm_head": 1}', "hf"),
        ('{"": 0}', "hf"),
        ('{"model/norm": "GPU.1"}', "openvino"),
        ('{"model.layers.2": "BEGINNING"}', "torch"),
        ('[["embed_tokens", "layers"], ["norm", "lm_head"]]', "torchtitan"),
        ("model@m0,lm_head@m1", "shardy"),
        ('{"fpgas": [{"nodes": ["lm_head"]}]}', "dnn-partitioning"),
    ],
)
def test_a_notation_is_told_by_its_form(text, notation, problem, tmp_path):
    file = tmp_path / "split.txt"
    file.write_text(f"\n{text}\n")
    for told in (
        split_of(problem, text),
        split_of(problem, file),
        split_of(problem, text, notation),
    ):
        assert told.notation == notation
    assert notation in NOTATION_NAMES


@pytest.mark.parametrize(
    ("split", "notation", "words"),
    [
        ("nowhere.json", None, "is no file, and is in no notation that is known: onnx (an ONNX"),
        ("2,2", "vlm", "no notation 'vlm'; did you mean 'vllm'? Notations: onnx,"),
        ("2,2", "hf", "is not in notation hf: JSON {module: device}"),
        ("2,2", "megatron", "knows E, t, m, L, |, (..)*n and commas, not"),
        ('{"model": 0', None, "is not readable JSON"),
        ('{"model": 0', "hf", "Expecting ',' delimiter"),
        ("", None, "no such file, and no text of a split"),
        (json.dumps({"": 0}), "onnx", "is not in notation onnx"),
        ("x" * 5000, None, "is in no notation that is known"),
    ],
)
def test_what_is_in_no_notation_is_refused(split, notation, words, problem):
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(problem, split, notation)


@pytest.fixture
def exported(tower, tmp_path):
    """A problem, a plan of it, and its stages."""
    plan = judge(split_of(tower, "1,2,1"), tower, moves=False).plan
    go_rl.export_stages(plan, tmp_path / "tower.onnx", tmp_path / "stages")
    return tower, plan, tmp_path / "stages"


@pytest.mark.parametrize("file", ["", "stages.json"])
def test_stages_are_judged_as_the_plan_was(file, exported):
    problem, plan, folder = exported
    split = split_of(problem, folder / file)
    assert split.notation == "stages"
    assert split.device.tolist() == plan.device.tolist()
    assert judge(split, problem, moves=False).plan.value == plan.value


def test_stages_that_do_not_fit_are_refused(exported, tmp_path):
    problem, _, folder = exported
    with pytest.raises(SplitError, match="is for device 2; devices of 'ring2' are 0"):
        read_split(folder, problem.graph, posed(problem.graph, "ring2").hardware)
    other = load(onnx_file(tmp_path, layers=1, name="other.onnx"))
    renamed = go_rl.core.OpGraph(**{**vars(other), "names": ("a", "b", "c", "d")})
    with pytest.raises(SplitError, match="is of another model: its plan has node"):
        read_split(folder, renamed, problem.hardware)
    (folder / "plan.json").unlink()
    with pytest.raises(PlanError, match=r"plan\.json"):
        split_of(problem, folder)


@pytest.fixture
def pair() -> Problem:
    """Operators 1 and 2 on two devices."""
    node = Node(1, "Op", OpKind.ELEMENTWISE, flops=1.0, output_bytes=4.0)
    graph = row_of([node, replace(node, name=2)], 4.0, "pair")
    options = ProblemOptions(objective=Objective.MAX_LOAD)
    return make_problem(graph, load_hardware("p100x2"), options)


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_both_forms_are_read(pair, tmp_path):
    file = tmp_path / "split.json"
    assert devices_of(pair, written(file, {"1": 0, "2": "cuda:1"})) == {1: 0, 2: 1}
    both = {"fpgas": [{"nodes": [2]}, {"nodes": [1]}], "cpus": []}
    assert devices_of(pair, written(file, both)) == {1: 1, 2: 0}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"1": 0, "1": 1}', "field '1' is there twice"),
        ("[" * 9999, "nest deeper"),
        ([1], "is in no notation that is known: onnx"),
        ({"3": 0}, "'3' matches no node, and no module, of 'pair'"),
        ({"1": 2}, "device of '1' is 2; devices of 'p100x2' are 0..1"),
        ({"1": 2**63}, "devices of 'p100x2' are 0..1"),
        (
            {"1": "one"},
            "device of '1' must be an index or a name such as 'cuda:1' or 'GPU.1', not 'one'",
        ),
        ({"1": True}, "device of '1' must be an index or a name such as 'cuda:1'"),
        ({"1": "cuda:7"}, "is 7; devices of 'p100x2' are 0..1"),
        ({"1": "cpu"}, "'p100x2' has no CPU among its devices, which are p100"),
        ({"1": "disk"}, "nothing runs there, weights only wait"),
        ({"*": 0, "?": 1}, "'*' puts node 1 on device 0, and '?', which is as long, on 1"),
        ({"fpgas": [1]}, "lists of objects that list their nodes"),
        ({"fpgas": [{}]}, "lists of objects that list their nodes"),
        ({"fpgas": None}, "lists of objects that list their nodes"),
        ({"fpgas": [], "cpus": [{"nodes": 1}]}, "lists of objects that list their nodes"),
        ({"format": "go_rl-plan-1"}, "is a plan of go_rl already; go-rl check PLAN MODEL"),
    ],
)
def test_what_is_no_split_is_refused(document, words, pair, tmp_path):
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(pair, written(tmp_path / "split.json", document))


def test_the_longest_pattern_wins_and_a_name_before_all(problem, tmp_path):
    document = {"model": 0, "model/layers.[23]/*": 1, "model.layers.3.mlp": 2, "model/norm": 3}
    at = devices_of(problem, written(tmp_path / "s.json", document), "json")
    assert at["model/layers.1/mlp/up_proj"] == 0
    assert at["model/layers.2/mlp/up_proj"] == 1
    assert at["model/layers.3/self_attn/q_proj"] == 1
    assert at["model/layers.3/mlp/up_proj"] == 1  # 18 letters against 19
    assert (at["model/norm"], at["lm_head"], at["input_ids"]) == (3, 3, 0)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"model": 0, "lm_head": "cpu"}, "has no CPU among its devices"),
        ({"model": 0, "lm_head": "disk"}, "nothing runs there"),
        ({"model.layers": 0, "lm_head": 1}, "gives no device to the weights of 'model/embed"),
        ({"model.layers.9": 0, "": 1}, "'model.layers.9' matches no module of"),
    ],
)
def test_a_device_map_that_accelerate_would_refuse_is_refused(document, words, problem, tmp_path):
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(problem, written(tmp_path / "map.json", document), "hf")
