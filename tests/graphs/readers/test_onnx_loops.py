"""Loops of ONNX cost their trips, and recurrent layers their steps."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import array, header, model, parsed, read, value

from go_rl.graphs.readers.onnx.reader import read_onnx_model

pytestmark = pytest.mark.usefixtures("in_process")

STEPS, WIDTH = 14, 1024
GO = "int64 i, bool go"
"""First inputs of a loop's body; ``go2 = Identity(go)`` lets it go on."""
CELL = f"""cell ({GO}, float[1,{WIDTH}] h, float[1,{WIDTH}] c) =>
    (bool go2, float[1,{WIDTH}] h2, float[1,{WIDTH}] c2, float[1,{WIDTH}] row) {{
    go2 = Identity(go) xt = Gather<axis = 0>(x, i)
    gx = Gemm<transB = 1>(xt, w, bw) gh = Gemm<transB = 1>(h, r, br) gates = Add(gx, gh)
    gi, gf, gc, gy = Split<axis = 1, num_outputs = 4>(gates)
    si = Sigmoid(gi) sf = Sigmoid(gf) tc = Tanh(gc) sy = Sigmoid(gy)
    kept = Mul(sf, c) new = Mul(si, tc) c2 = Add(kept, new) tc2 = Tanh(c2) h2 = Mul(sy, tc2)
    row = Identity(h2) }}"""
"""One step of an LSTM as exporters write it into a loop."""


def lstm_loop():
    return read(
        f"""(float[{STEPS},1,{WIDTH}] x, float[1,{WIDTH}] h0, float[1,{WIDTH}] c0) => (y)
        <bool yes = {{1}}> {{ [loop] h, c, y = Loop(n, yes, h0, c0)<body = {CELL}> }}""",
        header("w", [4 * WIDTH, WIDTH]),
        header("r", [4 * WIDTH, WIDTH]),
        header("bw", [4 * WIDTH]),
        header("br", [4 * WIDTH]),
        array("n", STEPS, np.int64),
    )


def work(graph):
    """FLOP, bytes and weights of the only node that computes."""
    (place,) = np.flatnonzero(graph.flops)
    return graph.flops[place], graph.bytes_accessed[place], graph.weight_bytes[place]


def test_an_lstm_costs_the_same_as_a_loop_and_as_an_operator():
    operator = read(
        f"""(float[{STEPS},1,{WIDTH}] x) => (float[{STEPS},1,1,{WIDTH}] y)
        {{ y = LSTM<hidden_size = {WIDTH}>(x, w, r, b) }}""",
        header("w", [1, 4 * WIDTH, WIDTH]),
        header("r", [1, 4 * WIDTH, WIDTH]),
        header("b", [1, 8 * WIDTH]),
    )
    loop_flops, loop_bytes, loop_weights = work(lstm_loop())
    assert operator.flops.sum() == loop_flops
    assert loop_weights == 4 * (8 * WIDTH * WIDTH + 8 * WIDTH)
    # The loop's weights stay in place; each step of the operator reads the recurrent ones again.
    again = (STEPS - 1) * 4 * (4 * WIDTH * WIDTH + 8 * WIDTH)
    assert abs((operator.bytes_accessed.sum() - again) / loop_bytes - 1) < 0.1


LONGEST = (1 << 63) - 1
NUMBERS = {"zero": 0, "one": 1, "two": 2, "three": 3, "ten": 10, "thousand": 1000, "less": -2}


def loop(condition, step="s2 = Add(s, one)", limit: int | None = LONGEST, start="zero", going=1):
    """A loop of a counter ``s`` (next ``s2``) around a product; ``condition`` makes ``go2``."""
    stored = [array(name, number, np.int64) for name, number in NUMBERS.items()]
    stored += [array("w", np.eye(4)), *([array("most", limit, np.int64)] if limit else [])]
    return parsed(
        f"""(float[1,4] x, bool data) => (y) <bool going = {{{going}}}> {{
        [loop] a, b, rows = Loop({"most" if limit else ""}, going, {start}, x)<body = b
        (int64 i, bool go, int64 s, float[1,4] h) =>
        (bool go2, int64 s2, float[1,4] h2, float[1,4] row)
        {{ h2 = MatMul(h, w) row = Identity(h2) {step} {condition} }}> y = Relu(rows) }}""",
        *stored,
    )


def trips_of(made):
    graph = read_onnx_model(made, "m")
    trips = int(graph.output_shape[-1][0])
    counting = graph.flops[graph.op_type.index("Loop")] - 2 * 16 * trips
    assert 0 <= counting <= 8 * trips
    return trips


CONDITIONS = {
    "number of the trip": "go2 = Less(i, two)",
    "counter": "go2 = Less(s2, ten)",
    "counter before its step": "go2 = LessOrEqual(s, ten)",
    "from the other side": "go2 = Greater(ten, s2)",
    "not equal": "e = Equal(s2, three) go2 = Not(e)",
    "not reached": "e = GreaterOrEqual(s2, ten) go2 = Not(e)",
    "both": "p = Less(i, ten) q = Less(s2, three) go2 = And(p, q)",
    "with what holds": "p = Less(i, three) go2 = And(p, go)",
    "either": "p = Greater(i, three) q = Equal(s2, ten) stop = Or(p, q) go2 = Not(stop)",
    "multiple": "m = Mul(i, three) go2 = Less(m, ten)",
    "difference": "d = Sub(ten, i) go2 = Greater(d, three)",
    "reshaped": "f = Cast<to = 1>(s2) g = Cast<to = 1>(ten) go2 = Less(f, g)",
    "never": "go2 = Less(s2, zero)",
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("limit", [LONGEST, 2])
def test_trips_are_those_of_the_reference(name, limit):
    made = loop(CONDITIONS[name], limit=limit)
    feeds = {"x": np.zeros((1, 4), np.float32), "data": np.array(True)}
    (rows,) = ReferenceEvaluator(made).run(None, feeds)
    assert trips_of(made) == len(rows)


LENGTH, BATCH, INPUTS, HIDDEN = 5, 2, 48, 32
RECURRENT = {"LSTM": (4, 17), "GRU": (3, 17), "RNN": (1, 1)}
"""Gates, and FLOP of a cell an element besides the bias."""


def layer(op, directions, layout):
    gates = RECURRENT[op][0]
    weights = [
        header("w", [directions, gates * HIDDEN, INPUTS]),
        header("r", [directions, gates * HIDDEN, HIDDEN]),
        header("b", [directions, 2 * gates * HIDDEN]),
    ]
    direction = "bidirectional" if directions == 2 else "forward"
    rows = (BATCH, LENGTH) if layout else (LENGTH, BATCH)
    made = [*rows, directions, HIDDEN] if layout else [LENGTH, directions, BATCH, HIDDEN]
    attributes = {"hidden_size": HIDDEN, "direction": direction, "layout": layout}
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y"], "rnn", **attributes)
    return model([node], [value("x", [*rows, INPUTS])], [value("y", made)], weights)


def longest_chain(graph):
    """Nodes of the longest path."""
    length = np.ones(graph.num_nodes, int)
    for sender, receiver in sorted(
        zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True)
    ):
        length[receiver] = max(length[receiver], length[sender] + 1)
    return length.max()


@pytest.mark.parametrize("op", RECURRENT)
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("directions", [1, 2])
def test_a_layer_is_its_steps(op, layout, directions):
    graph = read_onnx_model(layer(op, directions, layout), "m")
    gates, element = RECURRENT[op]
    products = [n for n in graph.names if n.endswith("/state")]
    assert len(products) == directions * LENGTH
    each = 2 * BATCH * gates * HIDDEN * HIDDEN
    assert graph.flops[graph.index[products[-1]]] == each
    of_inputs = 2 * LENGTH * BATCH * gates * HIDDEN * INPUTS
    of_cells = LENGTH * BATCH * (2 * gates * HIDDEN + element * HIDDEN)
    assert graph.flops.sum() == pytest.approx(directions * (of_inputs + LENGTH * each + of_cells))
    # x, the product of all inputs, cells and the products between them, all states side by side.
    assert longest_chain(graph) == 1 + 1 + 2 * LENGTH - 1 + 1
