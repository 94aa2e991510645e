"""Which notation a split is in, and how what is in none is refused."""

import json

import pytest
from layered_graphs import llama, posed

from go_rl.core import SplitError
from go_rl.plans.splits import NOTATION_NAMES, read_split


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return posed(llama(tmp_path_factory.mktemp("llama")), "ring4")


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
    assert read_split(text, problem.graph, problem.hardware).notation == notation
    file = tmp_path / "split.txt"
    file.write_text(f"\n{text}\n")
    assert read_split(file, problem.graph, problem.hardware).notation == notation
    named = read_split(text, problem.graph, problem.hardware, notation)
    assert named.notation == notation
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
    with pytest.raises(SplitError) as error:
        read_split(split, problem.graph, problem.hardware, notation)
    assert words in str(error.value)
