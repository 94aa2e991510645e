"""What the ONNX reader makes of a model: nodes, edges, weights, dimensions, control flow."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import header, model, parsed, read, shape_of, value

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx, read_onnx_model
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess
from go_rl.graphs.zoo.resnet50 import resnet50_model, write_resnet50_onnx


def edges(graph):
    ends = zip(graph.senders, graph.receivers, graph.edge_bytes, strict=True)
    return {(graph.names[u], graph.names[v]): float(b) for u, v, b in ends}


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


def test_resnet50_is_a_valid_model():
    built = resnet50_model(seed=3)
    onnx.checker.check_model(built)
    first = np.random.default_rng(3).standard_normal((64, 3, 7, 7), np.float32)
    stored = onnx.numpy_helper.to_array(built.graph.initializer[0])
    np.testing.assert_allclose(stored, first * np.sqrt(2 / 147), rtol=1e-6)


def test_a_bound_batch_scales_the_work(tmp_path, in_process):
    path = write_resnet50_onnx(tmp_path / "resnet50.onnx", batch=0, weights=False)
    graph = read_onnx(path, {"batch": 8})
    one = read_onnx_model(resnet50_model(weights=False), "one", {})
    assert graph.flops.sum() == pytest.approx(8 * one.flops.sum(), rel=1e-3)
    assert graph.meta["dims"] == {"batch": 8}


def test_nodes_edges_and_names():
    graph = read("""(float[2,3] x) => (float[2,3] c) <float[2,3] a, float[2,3] b>
        { [same] a = Relu(x) [same] b = Neg(a) [add] c = Add(a, b) }""")
    assert set(graph.names) == {"x", "a", "b", "add"}
    assert edges(graph) == {("x", "a"): 24, ("a", "b"): 24, ("a", "add"): 24, ("b", "add"): 24}
    assert graph.kind[graph.index["x"]] == OpKind.INPUT
    assert graph.flops.sum() == 18


def test_two_results_travel_on_their_own_edges(in_process):
    graph = read("""(float[4,3] x) => (q)
        { [split] a, b = Split<num_outputs = 2, axis = 0>(x)
          [relu] p = Relu(a) [add] q = Add(b, p) }""")
    split = graph.index["split"]
    ends = zip(graph.senders, graph.receivers, graph.edge_output, strict=True)
    carried = {(graph.names[v], int(o)) for u, v, o in ends if u == split}
    assert carried == {("relu", 0), ("add", 1)}
    assert graph.output_bytes[split] == 48


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


def test_quantised_weights_keep_their_stored_size(in_process):
    graph = read(
        """(float[4,64] x) => (y) <float scale = {0.5}>
        { f = DequantizeLinear(w, scale) [mm] y = MatMul(x, f) }""",
        header("w", [64, 32], TensorProto.INT4),
    )
    assert graph.weight_bytes[graph.index["mm"]] == 64 * 32 / 2 + 4
    assert "f" not in graph.names


def test_shape_arithmetic_is_folded(in_process):
    graph = read(
        """(float[batch,4,5] x) => (z) <int64[1] zero = {0}, int64[1] rest = {-1}> {
        s = Shape(x) n = Gather(s, zero) target = Concat<axis = 0>(n, rest)
        [reshape] y = Reshape(x, target) [relu] z = Relu(y) }""",
        batch=3,
    )
    assert set(graph.names) == {"x", "relu"}
    assert shape_of(graph, "relu") == [3, 20]
    assert graph.weight_bytes.sum() == 0


def test_missing_shapes_are_inferred_in_a_subprocess():
    text = "(float[x_batch,8] x) => (y) { [mm] h = MatMul(x, w) [relu] y = Relu(h) }"
    built = parsed(text, header("w", [8, 16]))
    graph = read_onnx_model(built, "m", {"x_batch": 5})
    assert graph.flops[graph.index["mm"]] == 2 * 5 * 8 * 16
    assert built.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x_batch"


def test_functions_are_inlined(in_process):
    built = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x) => (float[2,3] z) { y = own.Double(x) z = own.Double(y) }
        <domain: "own", opset_import: ["" : 21]> Double (a) => (b) { b = Add(a, a) }""")
    graph = read_onnx_model(built, "m")
    assert graph.op_type == ("Input", "Add", "Add")
    assert graph.flops.sum() == 12


CONDITIONAL = """(float[2,3] x%s) => (z) {
    [if] y = If(c)<then_branch = t () => (float[2,3] p) { p = Neg(x) },
                   else_branch = e () => (float[2,3] t3)
                   { t1 = Relu(x) t2 = Relu(t1) t3 = Relu(t2) }>
    [last] z = Neg(y) }"""


def test_a_constant_condition_inlines_its_branch(in_process):
    graph = read((CONDITIONAL % "").replace("{", "<bool c = {1}> {", 1))
    assert graph.op_type == ("Input", "Neg", "Neg")
    assert graph.meta["notes"] == []


def test_an_unknown_condition_takes_the_dearer_branch(in_process):
    graph = read(CONDITIONAL % ", bool c")
    assert sorted(graph.op_type) == ["Input", "Input", "Neg", "Relu", "Relu", "Relu"]
    said = "its condition is not known (it follows from the values of input 'c'"
    assert said in graph.meta["notes"][0]
    assert ("if/t3", "last") in edges(graph)


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


def test_a_scan_runs_once_a_slice(in_process):
    graph = read("""(float[3] init, float[6,3] x) => (last, all) {
        [scan] last, all = Scan(init, x)<num_scan_inputs = 1, body = b (float[3] s, float[3] e) =>
        (float[3] t, float[3] o) { t = Add(s, e) o = Identity(t) }> }""")
    assert graph.flops[graph.index["scan"]] == 6 * 3
    assert graph.output_bytes[graph.index["scan"]] == 4 * (3 + 18)


def test_unordered_nodes_are_sorted_and_dead_ones_left_out(in_process):
    node = helper.make_node
    nodes = [node("Neg", ["a"], ["b"], "second"), node("Relu", ["x"], ["a"], "first"),
             node("Exp", ["x"], ["unused"], "dead")]  # fmt: skip
    assert read_onnx_model(model(nodes, [value("x", [2])], ["b"]), "m").names == (
        "x", "first", "second",
    )  # fmt: skip


def test_data_dependent_shapes_are_bounded_and_noted(in_process):
    graph = read("(float[3,4] x) => (z) { [nz] y = NonZero(x) [neg] z = Neg(y) }")
    assert shape_of(graph, "neg") == [2, 12]
    assert "upper bound [2, 12]" in graph.meta["notes"][0]


@pytest.mark.parametrize(
    ("task", "seconds", "said"),
    [("x", 0.001, r"did not finish in 0\.001 s"), ("complete", None, "crashed")],
)
def test_a_hang_or_a_crash_of_the_inference_is_an_error(task, seconds, said):
    with pytest.raises(ReadError, match=rf"m\.onnx: .* {said}"):
        complete_in_subprocess(resnet50_model(weights=False), {"task": task}, "m.onnx", seconds)
