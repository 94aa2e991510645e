"""The last line of each command: the one that naturally follows, with the real names, not under
``--json``."""

import io
import json
import shlex

import numpy as np
import pytest
from profile_documents import chain_document
from rich.console import Console

from go_rl.cli.model_arguments import ModelArguments
from go_rl.cli.next_command import model_words, say_next
from go_rl.core import OpKind
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def last(text: str) -> str:
    return text.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "following"),
    [
        ("hardware list", "hardware show ring6"),
        ("hardware show p100x2", "optimize zoo:resnet50 --hardware p100x2"),
        ("hardware show ring4", "optimize zoo:resnet50 --hardware ring4"),
        ("hardware this", "hardware this --out this.json"),
        ("hardware this --out here.json", "optimize zoo:resnet50 --hardware here.json"),
        ("zoo list --split test", "zoo show unet"),
        ("zoo show vgg16", "optimize zoo:vgg16"),
        ("graph zoo:bert-tiny", "optimize zoo:bert-tiny"),
        ("graph zoo:bert-tiny --unknown bytes", "optimize zoo:bert-tiny --unknown bytes"),
        ("graph zoo:bert-tiny --save tiny.npz", "optimize tiny.npz"),
        ("graph chain.json", "optimize chain.json"),
    ],
)
def test_commands_end_with_what_comes_next(command, words, following, tmp_path):
    (tmp_path / "chain.json").write_text(json.dumps(chain_document()))
    found = command(*words.split())
    assert (found.code, last(found.out)) == (0, f"next: go-rl {following}")
    with_json = command(*words.replace("here.json", "again.json").split(), "--json")
    assert with_json.document
    assert "next:" not in with_json.out


def test_what_comes_next_can_be_run(command, tmp_path):
    """Names with blanks and brackets are quoted."""
    builder = GraphBuilder("two [ms]")
    for name in ("a [b]", "c"):
        builder.add_node(Node(name, "Mat[Mul]", OpKind.MATMUL, flops=1e6, output_bytes=8.0))
    builder.add_edge(0, 1, 8.0)
    save_graph(builder.build(), tmp_path / "two [ms].npz")
    shown = command("graph", "two [ms].npz")
    assert "graph two [ms]" in shown.out
    assert "Mat[Mul]" in shown.out
    following = shlex.split(last(shown.out).removeprefix("next: go-rl "))
    assert following == ["optimize", "two [ms].npz"]


def test_a_model_keeps_the_options_that_it_was_read_with():
    assert model_words(ModelArguments("m.onnx")) == ["m.onnx"]
    named = ModelArguments("m.onnx", dim=("batch=8", "seq=4"), unknown="bytes", training="profile")
    assert model_words(named) == [
        "m.onnx", "--dim", "batch=8", "--dim", "seq=4", "--unknown", "bytes", "--training",
        "profile",
    ]  # fmt: skip


def test_the_line_is_one_line_however_narrow_the_screen():
    out = io.StringIO()
    say_next(Console(file=out, width=40), "check", "out/" + "long/" * 30 + "plan.json", "a b.onnx")
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("plan.json 'a b.onnx'\n")


def test_totals_and_notes_of_a_graph(command, tmp_path):
    builder = GraphBuilder("tied", {"notes": ["left out: " + ", ".join(map(str, range(500)))]})
    for i in range(3):
        arrays = {"w": 16.0} if i else {}
        sizes = {"output_bytes": 8.0, "bytes_accessed": 24.0, "weight_bytes": 16.0}
        builder.add_node(Node(i, "MatMul", OpKind.MATMUL, flops=2.0, weight_arrays=arrays, **sizes))
    builder.add_edge(0, 1, 8.0)
    builder.add_edge(1, 2, 4.0)
    save_graph(builder.build(), tmp_path / "tied.npz")
    document = command("graph", "tied.npz", "--json").document
    assert document["totals"] == {
        "nodes": 3, "edges": 2, "backward_nodes": 0, "flops": 6.0, "bytes": 72.0,
        "output_bytes": 24.0, "weight_bytes": 32.0, "edge_bytes": 12.0, "seconds": {},
    }  # fmt: skip
    assert np.fromstring(document["notes"][0].removeprefix("left out: "), sep=",").size == 500
    shown = command("graph", "tied.npz").out
    assert max(map(len, shown.splitlines())) < 300
    assert "more (all with --json)" in shown
