"""``go-rl check --split`` and ``go-rl optimize --for``, as a user types them."""

import pytest
from layered_graphs import llama_file

FAST = ("--dim", "sequence=16", "--cost", "analytical")


@pytest.fixture
def model(tmp_path):
    return llama_file(tmp_path)


def test_a_split_is_judged_in_sentences(command, model):
    found = command("check", "--split", "3,1", model, "--hardware", "ring4", *FAST)
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].startswith("legal: split in notation vllm, tiny on ring4, objective ring")
    assert any(line.startswith("busiest: chip 0") for line in lines)
    assert any(line.startswith("best single move: model.layers.2 from chip 0") for line in lines)
    assert lines[-1].startswith("next: go-rl optimize ")
    assert lines[-1].endswith("--for vllm")


def test_a_move_is_said_in_the_notation_itself(command, model):
    for split, after in (("3,1", "2,2"), ("Et*3|tL", "Et*2|t*2L"), ("-ts 3,2", "-ts 2,3")):
        found = command("check", f"--split={split}", model, "--hardware", "ring4", *FAST, "--json")
        assert found.document["move"]["split"] == after
    found = command("check", "--split", '{"": 0}', model, "--hardware", "ring4", *FAST, "--json")
    assert (found.document["move"] or {"split": None})["split"] is None


def test_an_illegal_split_ends_with_one(command, model):
    split = '{"model": 1, "lm_head": 0}'
    found = command("check", "--split", split, model, "--hardware", "ring4", *FAST, "--json")
    assert found.code == 1
    assert found.document["violations"][0]["rule"] == "acyclic"
    assert found.document["value"] is None
    assert found.document["repaired"]["moved"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--split", "2,1"), "splits 3 layers, and 'tiny' has 4"),
        (("--split", "absent.json"), "is no file, and is in no notation"),
        (("--split", "2,2", "--notation", "vlm"), "did you mean 'vllm'"),
        (("--split", "2,2", "--objective", "makespan"), "choose p100x4"),
    ],
)
def test_bad_input_is_one_line(arguments, words, refused, model):
    refused("check", *arguments, model, "--hardware", "ring4", *FAST, said=words)


@pytest.fixture
def planned(command, model):
    made = command("optimize", model, "--hardware", "ring4", *FAST, "--for", "vllm",
                   "--samples", "500", "--out", "here")  # fmt: skip
    assert made.code == 0
    return "here/plan.json"


def test_a_plan_leaves_in_a_notation_and_is_judged_as_it_was(command, model, planned):
    text = command("export", planned, model, "--to", "vllm")
    assert text.code == 0
    assert sum(map(int, text.out.split(","))) == 4
    document = command("export", planned, model, "--to=vllm", "--json").document
    assert document == {"to": "vllm", "text": text.out, "file": None, "notes": []}
    written = command("export", planned, model, "--to", "hf", "--out", "map.json")
    assert written.out == "written to map.json\n"
    values = [
        command("check", "--split", split, model, "--hardware", "ring4", *FAST, "--json").document
        for split in (text.out.strip(), "map.json")
    ]
    assert values[0]["value"] == values[1]["value"] is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--to", "vlm"), "--to vlm: no notation; did you mean 'vllm'? For a folder of that name"),
        (("--to", "onnx"), "onnx is made from the model's file; name a file to write"),
        (("--to", "onnx", "--out", "x.onnx"), "onnx needs the ONNX file that the plan is for"),
    ],
)
def test_what_cannot_be_exported_is_one_line(arguments, words, refused, model, planned):
    refused("export", planned, model, *arguments, said=words)
