"""Cuts between layers, stages of layers and of modules."""

import json
import re
from itertools import combinations, pairwise

import pytest
from layered_graphs import devices_of, llama, posed, small_ring, split_of
from small_problems import build_problem, ring_of

import go_rl
from go_rl.core import Budget, SearchError, SplitError
from go_rl.graphs.cutting.layer_blocks import layer_blocks
from go_rl.plans.splits import judge, layer_cuts
from go_rl.plans.splits.layer_cuts import LayerCuts

BUDGET = Budget(samples=100_000)


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    return llama(tmp_path_factory.mktemp("llama"), layers=6)


def every_partition(layers, stages):
    """Strings of vLLM for every way to cut so many layers into at most so many stages."""
    for several in range(1, stages + 1):
        for cuts in combinations(range(1, layers), several - 1):
            ends = (0, *cuts, layers)
            yield ",".join(str(b - a) for a, b in pairwise(ends))


@pytest.mark.parametrize(("hardware", "objective"), [("ring4", "ring"), ("p100x2", "latency")])
def test_the_best_partition_of_layers_is_found(hardware, objective, deep):
    problem = posed(deep, hardware, objective)
    found = LayerCuts("vllm").optimize(problem, BUDGET, 0)
    values = [
        judge(split_of(problem, text), problem, moves=False).plan.value
        for text in every_partition(6, problem.hardware.num_devices)
    ]
    assert found.value == pytest.approx(min(values))


def test_moving_cuts_finds_it_too_where_not_all_are_tried(deep, monkeypatch):
    problem = posed(deep, "ring4")
    best = LayerCuts("megatron").optimize(problem, BUDGET, 0).value
    monkeypatch.setattr(layer_cuts, "ALL_CUTS", 1)
    assert LayerCuts("megatron").optimize(problem, BUDGET, 0).value == pytest.approx(best)


def test_the_user_asks_for_layers_by_name(deep):
    for tool, objective in (("torchtitan", "max-load"), ("hf", "makespan")):  # no pipeline
        found = go_rl.optimize(deep, "p100x2", for_=tool, samples=1000, cost="analytical")
        assert found.best.optimizer == f"for {tool}"
        assert str(found.problem.objective) == objective
    with pytest.raises(SearchError, match="no tool 'vlm'; did you mean 'vllm'"):
        go_rl.optimize(deep, "p100x2", for_="vlm")
    with pytest.raises(SearchError, match="--for vllm has a search of its own; leave out method"):
        go_rl.optimize(deep, "p100x2", for_="vllm", method="metis")


def test_a_graph_without_layers_is_refused():
    problem = build_problem("ab", [("a", "b")], ring_of(2))
    with pytest.raises(SplitError, match="--for vllm counts layers, and the node names of 'small'"):
        LayerCuts("vllm").optimize(problem, BUDGET, 0)
    with pytest.raises(SplitError, match="the node names of 'small' state none"):
        split_of(problem, "1,1")


def test_a_ring_whose_memory_no_partition_fits_is_a_failure_with_a_sentence(deep):
    found = go_rl.optimize(deep, small_ring(10e3), for_="vllm", samples=10, cost="analytical")
    assert not found.best.evaluation.status.ok
    assert "no split into whole layers" in found.best.evaluation.detail


def chain_of(text, problem):
    """Devices of embedding, four layers, norm and head; every node of a layer has one."""
    split = split_of(problem, text)
    at = layer_blocks(problem.graph).position
    layers = [set(split.device[at == i + 1].tolist()) for i in range(4)]
    assert all(len(devices) == 1 for devices in layers)
    names = problem.graph.index
    ends = [int(split.device[names[n]]) for n in ("model/embed_tokens", "model/norm", "lm_head")]
    return split.notation, [ends[0], *(devices.pop() for devices in layers), *ends[1:]]


@pytest.mark.parametrize(
    ("text", "notation", "chain"),
    [
        ("2,2", "vllm", [0, 0, 0, 1, 1, 1, 1]),
        ("1,1,1,1", "vllm", [0, 0, 1, 2, 3, 3, 3]),
        ("export VLLM_PP_LAYER_PARTITION=1,3", "vllm", [0, 0, 1, 1, 1, 1, 1]),
        ("4", "vllm", [0, 0, 0, 0, 0, 0, 0]),
        ("Et|tt|t|L", "megatron", [0, 0, 1, 1, 2, 3, 3]),
        ("E(t|)*2,tt|L", "megatron", [0, 0, 1, 2, 2, 3, 3]),
        ("Et*2|t*2L", "megatron", [0, 0, 0, 1, 1, 1, 1]),
        ("E||t*4|L", "megatron", [0, 2, 2, 2, 2, 3, 3]),
        ("Et|t|t|t||||L", "megatron", [0, 0, 1, 2, 3, 3, 3]),  # virtual stages go round
        ("-ts 3,1", "llama.cpp", [0, 0, 0, 0, 0, 1, 1]),  # (0, 1, 2, 3, 4) / 5 against 0.75
        ("--tensor-split 1,1,1,2", "llama.cpp", [0, 0, 1, 2, 3, 3, 3]),
        ("-ts 0,1", "llama.cpp", [0, 1, 1, 1, 1, 1, 1]),
    ],
)  # fmt: skip
def test_a_string_is_what_a_hand_count_says(text, notation, chain, problem):
    assert chain_of(text, problem) == (notation, chain)


def test_overrides_go_before_shares_and_the_first_that_matches_counts(problem):
    text = r"-ts 1,1 -ot 'blk\.[01]\.ffn_up=CUDA3,output\.weight=CUDA2' -ot blk.0.ffn=CUDA1"
    at = devices_of(problem, text)
    assert at["model/layers.0/mlp/up_proj"] == at["model/layers.1/mlp/up_proj"] == 3
    assert at["model/layers.0/mlp/down_proj"] == 1
    assert at["model/layers.1/mlp/down_proj"] == 0
    assert at["lm_head"] == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2,1", "splits 3 layers, and 'tiny' has 4 (model.layers.0 .. model.layers.3)"),
        ("9,9,9,9", "splits 36 layers"),
        ("1,1,1,1,0", "has 5 stages, and 'ring4' has 4 devices"),
        ("E|(t|)*2,tt|L", "has 5 stages, which is no multiple of the 4 devices"),
        ("t|ttt|L", "must begin with one E and end with one L"),
        ("Ett|ttL|E", "must begin with one E and end with one L"),
        ("Etttm|tL", "has a multi-token-prediction layer, m"),
        ("E(t*99999)*99999L", "more than 100,000 letters"),
        ("-ts 0,0", "-ts must be shares such as 3,1"),
        ("-ts 1,1,1,1,1", "has 5 stages"),
        ("-ot nothing=CUDA0", "-ot 'nothing=CUDA0' matches no tensor, such as 'blk.0.attn_norm"),
        ("-ot '[=CUDA0'", "is no regular expression"),
        ("-ot output=CUDA9", "device is 9; devices of 'ring4' are 0..3"),
        ([["layers.7"]], "'layers.7' is no module of 'tiny'"),
        ([["layers.0"], ["layers.0"]], "lists module 'layers.0' twice"),
        ([["norm"]] * 5, "has 5 parts, which is no multiple of the 4 devices"),
        ({"layers.8": "END"}, "'layers.8' is no module of 'tiny'"),
        ({"layers.0": "END", "layers.1": "BEGINNING"}, "'layers.1': splits twice at one place"),
        ({f"layers.{i}": "BEGINNING" for i in range(4)}, "makes 5 stages, and 'ring4' has 4"),
    ],
)
def test_stages_that_do_not_fit_are_refused(text, words, problem):
    """Of layers in the strings of tools, and of modules in JSON."""
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(problem, text if isinstance(text, str) else json.dumps(text))


PARTS = [["tok_embeddings", "layers.0"], ["layers.1", "layers.2"], ["layers.3", "norm", "output"]]


def devices(text, problem):
    split = split_of(problem, text)
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
