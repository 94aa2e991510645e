"""Sequences of static tensors have static sizes; one of unknown length counts as one element."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, model, read, shape_of

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load

pytestmark = pytest.mark.usefixtures("in_process")
CONSTRUCT = "q = SequenceConstruct(x, x2, x) y = ConcatFromSequence<axis = 0>(q)"
OPERATORS = {
    "construct and concatenate": (CONSTRUCT, [17, 4]),
    "stack": (
        "q = SequenceConstruct(x, x, x) y = ConcatFromSequence<axis = -1, new_axis = 1>(q)",
        [5, 4, 3],
    ),
    "split by sizes": ("q = SplitToSequence<axis = 0>(x3, parts) y = SequenceAt(q, two)", [6, 4]),
    "split evenly, with a rest": (
        "q = SplitToSequence<axis = 0>(x3, five) y = SequenceAt(q, two)", [2, 4],
    ),
    "split into rows": (
        "q = SplitToSequence<axis = 0, keepdims = 0>(x3) y = SequenceAt(q, n)", [4],
    ),
    "insert": (
        "e = SequenceEmpty() q = SequenceInsert(e, x) r = SequenceInsert(q, x2, zero) "
        "y = SequenceAt(r, zero)", [7, 4],
    ),
    "erase": ("q = SequenceConstruct(x, x2) r = SequenceErase(q) y = SequenceAt(r, last)", [5, 4]),
    "length": (
        "q = SequenceConstruct(x, x2, x) l = SequenceLength(q) t = Unsqueeze(l, zero1) "
        "y = Expand(one, t)", [3],
    ),
    "optional": (
        "q = SequenceConstruct(x, x2) o = Optional(q) r = OptionalGetElement(o) "
        "y = ConcatFromSequence<axis = 0>(r)", [12, 4],
    ),
}  # fmt: skip
MODEL = """(float[5,4] x, float[7,4] x2, float[12,4] x3, int64 n, float[1] one) => (z) <
    int64[3] parts = {2, 4, 6}, int64 zero = {0}, int64 two = {2}, int64 five = {5},
    int64 last = {-1}, int64[1] zero1 = {0}> { %s z = Relu(y) }"""


@pytest.mark.parametrize("what", OPERATORS)
def test_a_sequence_of_static_tensors(what):
    nodes, shape = OPERATORS[what]
    graph = read(MODEL % nodes)
    assert shape_of(graph, graph.op_type.index("Relu")) == shape


def test_a_sequence_weighs_what_all_its_elements_weigh():
    graph = read(MODEL % CONSTRUCT)
    assert graph.output_bytes[graph.op_type.index("SequenceConstruct")] == 17 * 4 * 4


def test_an_element_that_is_not_there():
    with pytest.raises(ReadError, match="the sequence has 2 elements, and none at 2"):
        read(MODEL % "q = SequenceConstruct(x, x) y = SequenceAt(q, two)")


@pytest.mark.parametrize("trips", [1, 5])
def test_a_loop_that_appends(trips):
    """ONNX's own example of a list comprehension."""
    graph = read(f"""(float[5,4] x) => (y) <int64 n = {{{trips}}}> {{ e = SequenceEmpty()
        all = Loop(n, , e)<body = b (int64 i, bool go, q) => (bool go2, q2) {{ go2 = Identity(go)
        row = Mul(x, x) q2 = SequenceInsert(q, row) }}> y = ConcatFromSequence<axis = 0>(all) }}""")
    assert shape_of(graph, graph.num_nodes - 1) == [5 * trips, 4]
    assert graph.flops.sum() == 20 * trips


def mapped(operands, more="", added="p", results="r"):
    """A model that multiplies each element by a weight, and joins all rows."""
    return read(
        f"""(float[5,4] x, float[7,4] x2, float[1,4] one) => (y) {{
        q = SequenceConstruct(x, x2, x) short = SequenceConstruct(x, x)
        [map] m = SequenceMap({operands})<body = b (e{more}) => ({results})
        {{ p = MatMul(e, w) r = Add(p, {added}) }}> y = ConcatFromSequence<axis = 0>(m) }}""",
        array("w", np.eye(4)),
    )


def test_a_map_over_a_sequence_runs_its_body_for_each_element():
    graph, rows = mapped("q"), 5 + 7 + 5
    assert shape_of(graph, graph.num_nodes - 1) == [rows, 4]
    place = graph.op_type.index("SequenceMap")
    assert graph.flops[place] == rows * (2 * 4 * 4 + 4)
    # Each row is read, multiplied, read twice and written; the weight of 64 bytes is read once.
    assert graph.bytes_accessed[place] == rows * 5 * 16 + 64
    assert graph.weight_bytes[place] == 64
    beside = mapped("q, one", ", f", "f")
    assert shape_of(beside, beside.num_nodes - 1) == [rows, 4]


def test_maps_that_do_not_fit():
    said = r"SequenceMap 'map' .*'short' has 2 elements, and 'q' has 3"
    with pytest.raises(ReadError, match=said):
        mapped("q, short", ", f", "f")
    with pytest.raises(ReadError, match="results of its body: 2; the operator's own make it 1"):
        mapped("q", results="r, p")


@pytest.mark.parametrize("kind", ["sequence", "optional", "optional sequence"])
def test_an_input_that_is_a_sequence_or_an_optional(kind, tmp_path):
    typed = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    if kind != "optional":
        typed = helper.make_sequence_type_proto(typed)
    if kind != "sequence":
        typed = helper.make_optional_type_proto(typed)
    nodes = []
    if kind != "sequence":
        nodes.append(helper.make_node("OptionalGetElement", ["q"], ["o"]))
    if kind != "optional":
        nodes.append(helper.make_node("SequenceAt", ["o" if nodes else "q", "zero"], ["y"]))
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["z"]))
    stored = [array("zero", 0, np.int64)]
    onnx.save(
        model(nodes, [helper.make_value_info("q", typed)], ["z"], stored), tmp_path / "m.onnx"
    )
    with pytest.raises(ReadError, match=r"give it with --input 'q=<size>x<size>'"):
        load(tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx", inputs={"q": (3, 4)}).flops.sum() == 12
