"""What the ONNX reader makes of a model: nodes, edges, weights, dimensions, control flow."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import header, parsed, read, shape_of
from small_graphs import edges_of

from experiments.readers.resnet50 import resnet50_model, write_resnet50_onnx
from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx, read_onnx_model
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess


def test_resnet50_without_its_weights(tmp_path):
    path = write_resnet50_onnx(tmp_path / "resnet50.onnx", weights=False)
    graph = read_onnx(path)
    assert graph.num_nodes == 175  # 174 operators and the image; the flattening is none
    assert graph.op_type.count("Conv") == 53
    assert graph.weight_bytes.sum() / 4 == 25_557_032 + 2 * 26_560  # and running statistics
    # 4.089 G multiply-adds with padding; XLA's count leaves the padding out.
    assert graph.flops.sum() == pytest.approx(2 * 4.089e9, rel=0.03)
    assert shape_of(graph, "maxpool") == [1, 64, 56, 56]
    assert (graph.meta["format"], graph.meta["opset"]) == ("onnx", 17)
    assert graph.source[graph.index["conv1"]] == "Conv(conv1) at graph.node[0]"
    assert [graph.names[i] for i in np.flatnonzero(graph.is_output)] == ["fc"]


def test_nodes_edges_and_names():
    graph = read("""(float[2,3] x) => (float[2,3] c) <float[2,3] a, float[2,3] b>
        { [same] a = Relu(x) [same] b = Neg(a) [add] c = Add(a, b) }""")
    assert set(graph.names) == {"x", "a", "b", "add"}
    pairs = (("x", "a"), ("a", "b"), ("a", "add"), ("b", "add"))
    assert edges_of(graph) == dict.fromkeys(pairs, (24, 0))
    assert graph.kind[graph.index["x"]] == OpKind.INPUT
    assert graph.flops.sum() == 18


def test_tied_weights_form_a_group_through_layout_changes(in_process):
    graph = read(
        """(int64[7] ids) => (logits) {
        [embed] e = Gather(table, ids) [mix] h = MatMul(e, own)
        [turn] t = Transpose<perm = [1, 0]>(table) [unembed] logits = MatMul(h, t) }""",
        header("table", [1000, 16]),
        header("own", [16, 16]),
    )
    assert "turn" not in graph.names
    readers = [graph.names[n] for n in graph.tied_node]
    assert (readers, graph.tied_array.tolist()) == (["embed", "unembed"], [0, 0])
    assert graph.tied_bytes.tolist() == [64_000]
    assert graph.weight_bytes[graph.index["unembed"]] == 64_000
    assert graph.flops[graph.index["unembed"]] == 2 * 7 * 16 * 1000


def test_missing_shapes_are_inferred_in_a_subprocess():
    text = "(float[x_batch,8] x) => (y) { [mm] h = MatMul(x, w) [relu] y = Relu(h) }"
    built = parsed(text, header("w", [8, 16]))
    graph = read_onnx_model(built, "m", {"x_batch": 5})
    assert graph.flops[graph.index["mm"]] == 2 * 5 * 8 * 16
    assert built.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x_batch"


LOOP = """(float[4,16] x%s) => (y) {
    [loop] y = Loop(m, , x)<body = b (int64 i, bool go, float[4,16] state) => (bool go_on, next)
    { next = MatMul(state, w) go_on = Identity(go) }> }"""


@pytest.mark.parametrize("given", [True, False])
def test_a_loop_is_one_node_with_the_work_of_all_trips(in_process, given):
    text = LOOP % ", int64 m" if given else (LOOP % "").replace("{", "<int64 m = {7}> {", 1)
    dims = {"loop.trips": 7} if given else {}
    graph = read(text, header("w", [16, 16]), **dims)
    loop = graph.index["loop"]
    assert graph.kind[loop] == OpKind.CONTROL
    assert graph.flops[loop] == 7 * 2 * 4 * 16 * 16
    assert graph.weight_bytes[loop] == 1024
    assert shape_of(graph, "loop") == [4, 16]


@pytest.mark.parametrize(
    ("task", "seconds", "said"),
    [
        ("inline", 0.001, r"inlining of local functions was stopped, not done after 0\.001 s of"),
        ("complete", None, "shape inference crashed"),
    ],
)
def test_a_hang_or_a_crash_of_the_inference_is_an_error(task, seconds, said, monkeypatch):
    monkeypatch.setattr("go_rl.graphs.readers.guarded.PATIENCE", 100 / (seconds or 1.0))
    with pytest.raises(ReadError, match=rf"m\.onnx: ONNX's {said}"):
        complete_in_subprocess(resnet50_model(weights=False), {"task": task}, "m.onnx", seconds)
