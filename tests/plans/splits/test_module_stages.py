"""Splits that list modules: torchtitan and torch."""

import json

import pytest
from layered_graphs import llama, posed

from go_rl.core import SplitError
from go_rl.plans.splits import read_split

PARTS = [["tok_embeddings", "layers.0"], ["layers.1", "layers.2"], ["layers.3", "norm", "output"]]


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return posed(llama(tmp_path_factory.mktemp("llama")), "ring4")


def devices(text, problem):
    split = read_split(text, problem.graph, problem.hardware)
    names = ["model/embed_tokens", *(f"model/layers.{i}/mlp/up_proj" for i in range(4)), "lm_head"]
    return split.notation, [int(split.device[problem.graph.index[name]]) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PARTS),
        json.dumps({"module_fqns_per_model_part": PARTS}),
        f"[parallelism]\nmodule_fqns_per_model_part = {json.dumps(PARTS)}\n",
        f"module_fqns_per_model_part = {json.dumps(PARTS)}",
    ],
)
def test_parts_of_torchtitan_in_json_and_toml(text, problem):
    assert devices(text, problem) == ("torchtitan", [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"model.layers.2": "BEGINNING"}, [0, 0, 0, 1, 1, 1]),
        ({"layers.1": "END"}, [0, 0, 0, 1, 1, 1]),
        ({"layers.1": "SplitPoint.BEGINNING", "layers.3": "BEGINNING"}, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_split_points_of_torch(document, found, problem):
    assert devices(json.dumps(document), problem) == ("torch", found)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([["layers.7"]], "'layers.7' is no module of 'tiny'"),
        ([["layers.0"], ["layers.0"]], "lists module 'layers.0' twice"),
        ([["norm"]] * 5, "has 5 parts, which is no multiple of the 4 devices"),
        ({"layers.8": "END"}, "'layers.8' is no module of 'tiny'"),
        ({"layers.0": "END", "layers.1": "BEGINNING"}, "'layers.1': splits twice at one place"),
        ({f"layers.{i}": "BEGINNING" for i in range(4)}, "makes 5 stages, and 'ring4' has 4"),
    ],
)
def test_modules_that_do_not_fit_are_refused(document, words, problem):
    with pytest.raises(SplitError) as error:
        read_split(json.dumps(document), problem.graph, problem.hardware)
    assert words in str(error.value)
