"""Splits that count layers, against devices written by hand."""

import pytest
from layered_graphs import llama, posed

from go_rl.core import SplitError
from go_rl.graphs.cutting.layer_blocks import layer_blocks
from go_rl.plans.splits import read_split


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return posed(llama(tmp_path_factory.mktemp("llama")), "ring4")


def chain_of(text, problem, hardware=None):
    """Devices of embedding, four layers, norm and head; every node of a layer has one."""
    split = read_split(text, problem.graph, hardware or problem.hardware)
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
    split = read_split(text, problem.graph, problem.hardware)
    at = dict(zip(problem.graph.names, split.device.tolist(), strict=True))
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
    ],
)
def test_a_string_that_does_not_fit_is_refused(text, words, problem):
    with pytest.raises(SplitError) as error:
        read_split(text, problem.graph, problem.hardware)
    assert words in str(error.value)


def test_a_graph_without_layers_says_so(tmp_path):
    from small_problems import build_problem, ring_of

    problem = build_problem("ab", [("a", "b")], ring_of(2))
    with pytest.raises(SplitError, match="the node names of 'small' state none"):
        read_split("1,1", problem.graph, problem.hardware)
