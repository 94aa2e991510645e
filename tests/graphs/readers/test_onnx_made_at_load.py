"""Arithmetic on stored arrays alone is done once, when a model is loaded; idle casts are free."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import array, header, read

pytestmark = pytest.mark.usefixtures("in_process")


def test_gates_in_another_order_are_the_stored_gates():
    graph = read(
        """(float[2,64] x) => (y) { i, f, o = Split<axis = 1, num_outputs = 3>(w)
        ordered = Concat<axis = 1>(o, i, f) y = MatMul(x, ordered) }""",
        header("w", [64, 96]),
    )
    assert graph.op_type == ("Input", "MatMul")
    assert graph.weight_bytes.sum() == 4 * 64 * 96
    assert graph.flops.sum() == 2 * 2 * 64 * 96


def test_a_scale_of_a_weight_is_no_work_of_an_iteration():
    text = "(float[2,5000] x) => (y) { root = Sqrt(s) v = Mul(w, root) y = Add(x, v) }"
    graph = read(text, header("w", [2, 5000]), header("s", [5000]))
    assert graph.op_type == ("Input", "Add")
    assert graph.weight_bytes.sum() == 4 * (10_000 + 5000)


def test_what_a_table_is_asked_for_stays_with_the_table():
    stored = [header("table", [1000, 8]), array("rows", np.arange(4), np.int64)]
    graph = read("(float[4,8] x) => (y) { r = Gather(table, rows) y = Add(x, r) }", *stored)
    assert graph.op_type == ("Input", "Gather", "Add")
    assert graph.weight_bytes.sum() == 4 * 8000 + 4 * 8


def test_what_is_larger_than_what_it_is_made_of_is_work():
    stored = [header("row", [1, 5000]), header("column", [5000, 1])]
    graph = read("(float[5000,5000] x) => (y) { b = Mul(row, column) y = Add(x, b) }", *stored)
    assert "Mul" in graph.op_type


@pytest.mark.parametrize(
    ("cast", "element", "costs"),
    [
        ("Cast<to = 1>(x)", "float", False),
        ("Cast<to = 10>(x)", "float16", True),
        ("CastLike(x, w)", "float", False),
        ("Identity(x)", "float", False),
    ],
)
def test_a_cast_to_the_same_type_is_no_operator(cast, element, costs):
    text = f"(float[3,4] x) => ({element}[3,4] y) {{ h = {cast} y = Relu(h) }}"
    graph = read(text, header("w", [2]))
    assert graph.op_type == ("Input", *["Cast"] * costs, "Relu")
    assert graph.flops.sum() == 12 * (1 + costs)


def test_of_a_tensor_whose_type_is_asked_for_nothing_is_read():
    graph = read("""(float[3,4] x, int32[500] n) => (y, i) <int64 w = {2}> { s = CastLike(w, x)
        [cast] h = CastLike(x, n) i = Mul(h, h) y = Mul(x, s) }""")
    assert graph.op_type == ("Input", "Input", "Cast", "Mul", "Mul")
    assert graph.bytes_accessed[graph.index["cast"]] == 2 * 48


def test_one_number_many_times_is_stored_as_one():
    graph = read("""(float[2,300] x) => (y) <float one = {1}, int64[1] to = {300}>
        { ones = Expand(one, to) y = Mul(x, ones) }""")
    assert graph.op_type == ("Input", "Mul")
    assert graph.weight_bytes.sum() == 4
    assert graph.bytes_accessed.sum() == 4 * (600 + 300 + 600)
