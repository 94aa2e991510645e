"""Splits that are JSON objects of devices, and what such a file may not say."""

import json
from pathlib import Path
from typing import Any

import pytest
from layered_graphs import llama, posed

from go_rl.core import Objective, OpKind, Problem, SplitError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.plans.splits import read_split


@pytest.fixture
def problem() -> Problem:
    """Operators 1 and 2 on two devices."""
    builder = GraphBuilder("pair")
    for name in (1, 2):
        builder.add_node(Node(name, "Op", OpKind.ELEMENTWISE, flops=1.0, output_bytes=4.0))
    builder.add_edge(0, 1, 4.0)
    options = ProblemOptions(objective=Objective.MAX_LOAD)
    return make_problem(builder.build(), load_hardware("p100x2"), options)


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def devices(file: Path, problem: Problem, notation: str | None = None) -> list[int]:
    return read_split(file, problem.graph, problem.hardware, notation).device.tolist()


def test_both_forms_are_read(problem, tmp_path):
    file = tmp_path / "split.json"
    assert devices(written(file, {"1": 0, "2": "cuda:1"}), problem) == [0, 1]
    both = {"fpgas": [{"nodes": [2]}, {"nodes": [1]}], "cpus": []}
    assert devices(written(file, both), problem) == [1, 0]


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
def test_what_is_no_split_is_refused(document, words, problem, tmp_path):
    with pytest.raises(SplitError) as error:
        devices(written(tmp_path / "split.json", document), problem)
    assert words in str(error.value)


def test_the_longest_pattern_wins_and_a_name_before_all(tmp_path):
    problem = posed(llama(tmp_path), "ring4")
    document = {"model": 0, "model/layers.[23]/*": 1, "model.layers.3.mlp": 2, "model/norm": 3}
    found = read_split(
        written(tmp_path / "s.json", document), problem.graph, problem.hardware, "json"
    )
    at = dict(zip(problem.graph.names, found.device.tolist(), strict=True))
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
def test_a_device_map_that_accelerate_would_refuse_is_refused(document, words, tmp_path):
    problem = posed(llama(tmp_path), "ring4")
    with pytest.raises(SplitError) as error:
        devices(written(tmp_path / "map.json", document), problem, "hf")
    assert words in str(error.value)
