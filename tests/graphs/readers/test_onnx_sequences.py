"""Sequences of static tensors have static sizes; one of unknown length counts as one element."""

from __future__ import annotations

import pytest
from onnx_models import read, shape_of

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


@pytest.mark.parametrize("trips", [1, 5])
def test_a_loop_that_appends(trips):
    """ONNX's own example of a list comprehension."""
    graph = read(f"""(float[5,4] x) => (y) <int64 n = {{{trips}}}> {{ e = SequenceEmpty()
        all = Loop(n, , e)<body = b (int64 i, bool go, q) => (bool go2, q2) {{ go2 = Identity(go)
        row = Mul(x, x) q2 = SequenceInsert(q, row) }}> y = ConcatFromSequence<axis = 0>(all) }}""")
    assert shape_of(graph, graph.num_nodes - 1) == [5 * trips, 4]
    assert graph.flops.sum() == 20 * trips
