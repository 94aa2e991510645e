"""Arithmetic on stored arrays alone is done once, when a model is loaded; idle casts are free."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, value

from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
pytestmark = pytest.mark.usefixtures("in_process")


def test_gates_in_another_order_are_the_stored_gates():
    nodes = [
        node("Split", ["w"], ["i", "f", "o"], axis=1, num_outputs=3),
        node("Concat", ["o", "i", "f"], ["ordered"], axis=1),
        node("MatMul", ["x", "ordered"], ["y"]),
    ]
    made = model(nodes, [value("x", [2, 64])], ["y"], [header("w", [64, 96])])
    graph = read_onnx_model(made, "m")
    assert graph.op_type == ("Input", "MatMul")
    assert graph.weight_bytes.sum() == 4 * 64 * 96
    assert graph.flops.sum() == 2 * 2 * 64 * 96


def test_a_scale_of_a_weight_is_no_work_of_an_iteration():
    nodes = [node("Sqrt", ["s"], ["root"]), node("Mul", ["w", "root"], ["v"])]
    nodes.append(node("Add", ["x", "v"], ["y"]))
    stored = [header("w", [2, 5000]), header("s", [5000])]
    graph = read_onnx_model(model(nodes, [value("x", [2, 5000])], ["y"], stored), "m")
    assert graph.op_type == ("Input", "Add")
    assert graph.weight_bytes.sum() == 4 * (10_000 + 5000)


def test_what_a_table_is_asked_for_stays_with_the_table():
    nodes = [node("Gather", ["table", "rows"], ["r"]), node("Add", ["x", "r"], ["y"])]
    stored = [header("table", [1000, 8]), array("rows", np.arange(4), np.int64)]
    graph = read_onnx_model(model(nodes, [value("x", [4, 8])], ["y"], stored), "m")
    assert graph.op_type == ("Input", "Gather", "Add")
    assert graph.weight_bytes.sum() == 4 * 8000 + 4 * 8


def test_what_is_larger_than_what_it_is_made_of_is_work():
    nodes = [node("Mul", ["row", "column"], ["both"]), node("Add", ["x", "both"], ["y"])]
    stored = [header("row", [1, 5000]), header("column", [5000, 1])]
    graph = read_onnx_model(model(nodes, [value("x", [5000, 5000])], ["y"], stored), "m")
    assert "Mul" in graph.op_type


@pytest.mark.parametrize(
    ("cast", "element", "costs"),
    [
        (node("Cast", ["x"], ["h"], to=TensorProto.FLOAT), 1, False),
        (node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), 10, True),
        (node("CastLike", ["x", "w"], ["h"]), 1, False),
        (node("Identity", ["x"], ["h"]), 1, False),
    ],
)
def test_a_cast_to_the_same_type_is_no_operator(cast, element, costs):
    made = model(
        [cast, node("Relu", ["h"], ["y"])],
        [value("x", [3, 4])],
        [value("y", [3, 4], element)],
        [header("w", [2])],
    )
    graph = read_onnx_model(made, "m")
    assert graph.op_type == ("Input", *["Cast"] * costs, "Relu")
    assert graph.flops.sum() == 12 * (1 + costs)


def test_of_a_tensor_whose_type_is_asked_for_nothing_is_read():
    nodes = [node("CastLike", ["w", "x"], ["s"]), node("CastLike", ["x", "n"], ["h"], name="cast"),
             node("Mul", ["h", "h"], ["i"]), node("Mul", ["x", "s"], ["y"])]  # fmt: skip
    inputs = [value("x", [3, 4]), value("n", [500], TensorProto.INT32)]
    stored = [array("w", 2, np.int64)]
    graph = read_onnx_model(model(nodes, inputs, ["y", "i"], stored), "m")
    assert graph.op_type == ("Input", "Input", "Cast", "Mul", "Mul")
    assert graph.bytes_accessed[graph.index["cast"]] == 2 * 48


def test_one_number_many_times_is_stored_as_one():
    nodes = [node("Expand", ["one", "to"], ["ones"]), node("Mul", ["x", "ones"], ["y"])]
    stored = [array("one", 1), array("to", [300], np.int64)]
    graph = read_onnx_model(model(nodes, [value("x", [2, 300])], ["y"], stored), "m")
    assert graph.op_type == ("Input", "Mul")
    assert graph.weight_bytes.sum() == 4
    assert graph.bytes_accessed.sum() == 4 * (600 + 300 + 600)
