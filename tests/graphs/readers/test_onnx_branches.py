"""Branches of ONNX: the one that fits, of two the dearer one; and sequences of static tensors."""

import numpy as np
import onnx
import pytest
from onnx_models import array, parsed, read, shape_of

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.model_options import ModelOptions

pytestmark = pytest.mark.usefixtures("in_process")
RATES = """(float[batch,samples] x, int64 rate) => (y) <int64 k16 = {16000}> { c = Equal(rate, k16)
    [if] y = If(c)<then_branch = a () => (ra) { ra = MatMul(x, wa) },
                   else_branch = b () => (rb) { rb = MatMul(x, wb) }> }"""
WIDE = [array("wa", np.ones((576, 1))), array("wb", np.ones((288, 1)))]
"""Of samples at 16 kHz a row has 576, at 8 kHz 288."""


@pytest.mark.parametrize(("samples", "flops"), [(576, 1152), (288, 576)])
def test_the_branch_that_fits_the_sizes_is_counted(samples, flops):
    graph = read(RATES, *WIDE, batch=1, samples=samples)
    assert graph.flops[graph.op_type.index("MatMul")] == flops
    (note,) = graph.meta["notes"]
    assert "cannot be at these sizes (" in note


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    path = tmp_path_factory.mktemp("rates") / "rates.onnx"
    onnx.save(parsed(RATES, *WIDE), path)
    return path


@pytest.mark.parametrize("rate", [16000, (16000,)])
def test_a_scalar_input_can_be_given_its_value(rates, rate):
    graph = load(rates, inputs={"x": (1, 576), "rate": rate})
    assert list(graph.op_type) == ["Input", "MatMul"]
    assert graph.flops.sum() == 1152
    assert not graph.meta["notes"]
    assert graph.meta["dims"] == {"batch": 1, "samples": 576, "rate.value": 16000}
    assert load(rates, graph.meta["dims"]).digest == graph.digest


def flagged(path, element, rank):
    """A model whose branch a flag of rank 0 or 1 decides: one operator, or two."""
    shape, first = ("[1]", "Reshape(flag, none)") if rank else ("", "Identity(flag)")
    text = f"""(float[4] x, {element}{shape} flag) => (y) {{ f = {first} c = Cast<to = 9>(f)
        y = If(c)<then_branch = one () => (p) {{ p = Relu(x) }},
                  else_branch = two () => (r) {{ q = Relu(x) r = Neg(q) }}> }}"""
    onnx.save(parsed(text, array("none", [], np.int64)), path)
    return path


@pytest.mark.parametrize(("element", "rank"), [("bool", 0), ("float", 1), ("int32", 0)])
@pytest.mark.parametrize(("given", "flops"), [(0, 8), (1, 4)])
def test_a_flag_decides_a_branch(element, rank, given, flops, tmp_path):
    path = flagged(tmp_path / "m.onnx", element, rank)
    assert load(path, inputs={"flag": bool(given)}).flops.sum() == flops
    assert load(path, {"flag.value": given}).flops.sum() == flops


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"flag": 2}, "input 'flag' of type bool cannot hold 2"),
        ({"x": 2}, "input 'x', which does not have exactly one element"),
        ({"flag": -1}, "the value of 'flag' must be at least 0"),
    ],
)
def test_values_that_cannot_be(given, said, tmp_path):
    with pytest.raises(ReadError, match=said):
        load(flagged(tmp_path / "m.onnx", "bool", 0), inputs=given)
    with pytest.raises(ReadError, match="whole number as its value, such as"):
        ModelOptions.of(inputs={"flag": 0.5})


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
