"""What the ONNX reader makes of a model: nodes, edges, weights, dimensions, control flow."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, value

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx, read_onnx_model
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess
from go_rl.graphs.zoo.resnet50 import resnet50_model, write_resnet50_onnx

node = helper.make_node


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
    assert graph.output_shape[graph.index["maxpool"]].tolist()[:4] == [1, 64, 56, 56]
    assert graph.meta["format"] == "onnx"
    assert graph.meta["opset"] == 17
    assert graph.source[graph.index["conv1"]] == "Conv(conv1) at graph.node[0]"
    assert [graph.names[i] for i in np.flatnonzero(graph.is_output)] == ["fc"]


def test_resnet50_is_a_valid_model():
    built = resnet50_model(seed=3)
    onnx.checker.check_model(built)
    first = np.random.default_rng(3).standard_normal((64, 3, 7, 7), np.float32)
    stored = onnx.numpy_helper.to_array(built.graph.initializer[0])
    np.testing.assert_allclose(stored, first * np.sqrt(2 / 147), rtol=1e-6)


def test_a_bound_batch_scales_the_work(tmp_path):
    path = write_resnet50_onnx(tmp_path / "resnet50.onnx", batch=0, weights=False)
    graph = read_onnx(path, {"batch": 8})
    one = read_onnx_model(resnet50_model(weights=False), "one", {})
    assert graph.flops.sum() == pytest.approx(8 * one.flops.sum(), rel=1e-3)
    assert graph.meta["dims"] == {"batch": 8}


def test_nodes_edges_and_names():
    built = model(
        [
            node("Relu", ["x"], ["a"], name="same"),
            node("Neg", ["a"], ["b"], name="same"),
            node("Add", ["a", "b"], ["c"], name="add"),
        ],
        [value("x", [2, 3])],
        ["c"],
        shapes=[value(n, [2, 3]) for n in "abc"],
    )
    built.graph.output[0].CopyFrom(value("c", [2, 3]))
    graph = read_onnx_model(built, "m")
    assert set(graph.names) == {"x", "a", "b", "add"}
    assert edges(graph) == {("x", "a"): 24, ("a", "b"): 24, ("a", "add"): 24, ("b", "add"): 24}
    assert graph.kind[graph.index["x"]] == OpKind.INPUT
    assert graph.flops.sum() == 18


def test_two_results_travel_on_their_own_edges(in_process):
    built = model(
        [
            node("Split", ["x"], ["a", "b"], name="split", num_outputs=2, axis=0),
            node("Relu", ["a"], ["p"], name="relu"),
            node("Add", ["b", "p"], ["q"], name="add"),
        ],
        [value("x", [4, 3])],
        ["q"],
    )
    graph = read_onnx_model(built, "m")
    split = graph.index["split"]
    carried = {
        (graph.names[v], int(o))
        for u, v, o in zip(graph.senders, graph.receivers, graph.edge_output, strict=True)
        if u == split
    }
    assert carried == {("relu", 0), ("add", 1)}
    assert graph.output_bytes[split] == 48


def test_tied_weights_form_a_group_through_layout_changes(in_process):
    built = model(
        [
            node("Gather", ["table", "ids"], ["e"], name="embed"),
            node("MatMul", ["e", "own"], ["h"], name="mix"),
            node("Transpose", ["table"], ["t"], name="turn", perm=[1, 0]),
            node("MatMul", ["h", "t"], ["logits"], name="unembed"),
        ],
        [value("ids", [7], TensorProto.INT64)],
        ["logits"],
        [header("table", [1000, 16]), header("own", [16, 16])],
    )
    graph = read_onnx_model(built, "m")
    assert "turn" not in graph.names
    readers = [graph.names[n] for n in graph.tied_node]
    assert (readers, graph.tied_array.tolist()) == (["embed", "unembed"], [0, 0])
    assert graph.tied_bytes.tolist() == [64_000]
    assert graph.weight_bytes[graph.index["unembed"]] == 64_000
    assert graph.flops[graph.index["unembed"]] == 2 * 7 * 16 * 1000


def test_quantised_weights_keep_their_stored_size(in_process):
    built = model(
        [
            node("DequantizeLinear", ["w", "scale"], ["f"]),
            node("MatMul", ["x", "f"], ["y"], name="mm"),
        ],
        [value("x", [4, 64])],
        ["y"],
        [header("w", [64, 32], TensorProto.INT4), array("scale", 0.5)],
    )
    graph = read_onnx_model(built, "m")
    assert graph.weight_bytes[graph.index["mm"]] == 64 * 32 / 2 + 4
    assert "f" not in graph.names


def test_shape_arithmetic_is_folded(in_process):
    built = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Concat", ["n", "rest"], ["target"], axis=0),
            node("Reshape", ["x", "target"], ["y"], name="reshape"),
            node("Relu", ["y"], ["z"], name="relu"),
        ],
        [value("x", ["batch", 4, 5])],
        ["z"],
        [array("zero", [0], np.int64), array("rest", [-1], np.int64)],
    )
    graph = read_onnx_model(built, "m", {"batch": 3})
    assert set(graph.names) == {"x", "relu"}
    assert graph.output_shape[graph.index["relu"]].tolist()[:2] == [3, 20]
    assert graph.weight_bytes.sum() == 0


def test_missing_shapes_are_inferred_in_a_subprocess():
    built = model(
        [node("MatMul", ["x", "w"], ["h"], name="mm"), node("Relu", ["h"], ["y"], name="relu")],
        [value("x", ["x_batch", 8])],
        ["y"],
        [header("w", [8, 16])],
    )
    graph = read_onnx_model(built, "m", {"x_batch": 5})
    assert graph.flops[graph.index["mm"]] == 2 * 5 * 8 * 16
    assert built.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x_batch"


def test_functions_are_inlined():
    double = helper.make_function(
        "own",
        "Double",
        ["a"],
        ["b"],
        [node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 21)],
    )
    built = model(
        [node("Double", ["x"], ["y"], domain="own"), node("Double", ["y"], ["z"], domain="own")],
        [value("x", [2, 3])],
        [value("z", [2, 3])],
        functions=[double],
        domains=["own"],
    )
    graph = read_onnx_model(built, "m")
    assert graph.op_type == ("Input", "Add", "Add")
    assert graph.flops.sum() == 12


def _branch(name, op, count):
    chain = [node(op, ["x" if i == 0 else f"t{i}"], [f"t{i + 1}"]) for i in range(count)]
    return helper.make_graph(chain, name, [], [value(f"t{count}", [2, 3])])


def _conditional(inputs, weights):
    branches = {"then_branch": _branch("t", "Neg", 1), "else_branch": _branch("e", "Relu", 3)}
    return model(
        [node("If", ["c"], ["y"], name="if", **branches), node("Neg", ["y"], ["z"], name="last")],
        [value("x", [2, 3]), *inputs],
        ["z"],
        weights,
    )


def test_a_constant_condition_inlines_its_branch(in_process):
    graph = read_onnx_model(_conditional([], [array("c", True, bool)]), "m")
    assert graph.op_type == ("Input", "Neg", "Neg")
    assert graph.meta["notes"] == []


def test_an_unknown_condition_takes_the_dearer_branch(in_process):
    graph = read_onnx_model(_conditional([value("c", [], TensorProto.BOOL)], []), "m")
    assert sorted(graph.op_type) == ["Input", "Input", "Neg", "Relu", "Relu", "Relu"]
    assert (
        "its condition is not known (it follows from the values of input 'c'"
        in graph.meta["notes"][0]
    )
    assert ("if/t3", "last") in edges(graph)


def _loop(trips):
    body = helper.make_graph(
        [node("MatMul", ["state", "w"], ["next"]), node("Identity", ["go"], ["go_on"])],
        "body",
        [
            value("i", [], TensorProto.INT64),
            value("go", [], TensorProto.BOOL),
            value("state", [4, 16]),
        ],
        [value("go_on", [], TensorProto.BOOL), value("next", None)],
    )
    inputs = [value("x", [4, 16])] + ([] if trips else [value("m", [], TensorProto.INT64)])
    weights = [header("w", [16, 16]), *([array("m", trips, np.int64)] if trips else [])]
    return model(
        [node("Loop", ["m", "", "x"], ["y"], name="loop", body=body)], inputs, ["y"], weights
    )


@pytest.mark.parametrize(("trips", "dims"), [(7, {}), (None, {"loop.trips": 7})])
def test_a_loop_is_one_node_with_the_work_of_all_trips(in_process, trips, dims):
    graph = read_onnx_model(_loop(trips), "m", dims)
    loop = graph.index["loop"]
    assert graph.kind[loop] == OpKind.CONTROL
    assert graph.flops[loop] == 7 * 2 * 4 * 16 * 16
    assert graph.weight_bytes[loop] == 1024
    assert graph.output_shape[loop].tolist() == [4, 16]


def test_a_loop_without_a_trip_count_asks_for_it(in_process):
    with pytest.raises(ReadError, match=r"--dim 'loop\.trips=<count>'"):
        read_onnx_model(_loop(None), "m")


def test_a_scan_runs_once_a_slice(in_process):
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["o"])],
        "body",
        [value("s", [3]), value("e", [3])],
        [value("t", [3]), value("o", [3])],
    )
    built = model(
        [node("Scan", ["init", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)],
        [value("init", [3]), value("x", [6, 3])],
        ["last", "all"],
    )
    graph = read_onnx_model(built, "m")
    scan = graph.index["scan"]
    assert graph.flops[scan] == 6 * 3
    assert graph.output_bytes[scan] == 4 * (3 + 18)


def test_unordered_nodes_are_sorted_and_dead_ones_left_out(in_process):
    built = model(
        [
            node("Neg", ["a"], ["b"], name="second"),
            node("Relu", ["x"], ["a"], name="first"),
            node("Exp", ["x"], ["unused"], name="dead"),
        ],
        [value("x", [2])],
        ["b"],
    )
    assert read_onnx_model(built, "m").names == ("x", "first", "second")


def test_data_dependent_shapes_are_bounded_and_noted(in_process):
    built = model(
        [node("NonZero", ["x"], ["y"], name="nz"), node("Neg", ["y"], ["z"], name="neg")],
        [value("x", [3, 4])],
        ["z"],
    )
    graph = read_onnx_model(built, "m")
    assert graph.output_shape[graph.index["neg"]].tolist() == [2, 12]
    assert "upper bound [2, 12]" in graph.meta["notes"][0]


def test_a_hang_of_the_inference_is_an_error():
    with pytest.raises(ReadError, match=r"m\.onnx: .* did not finish in 0\.001 s"):
        complete_in_subprocess(resnet50_model(weights=False), {"task": "x"}, "m.onnx", 0.001)


def test_a_crash_of_the_inference_is_an_error():
    with pytest.raises(ReadError, match=r"m\.onnx: .* crashed"):
        complete_in_subprocess(resnet50_model(weights=False), {"task": "complete"}, "m.onnx")
