"""Loops of ONNX cost their trips; weights that stay between trips are read once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import array, header, parsed, read, shape_of

from go_rl.core.errors import ReadError
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


def lstm_loop(trips=STEPS, **dims):
    given = "" if trips else ", int64 n"
    stored = [array("n", trips, np.int64)] if trips else []
    return read(
        f"""(float[{STEPS},1,{WIDTH}] x, float[1,{WIDTH}] h0, float[1,{WIDTH}] c0{given}) => (y)
        <bool yes = {{1}}> {{ [loop] h, c, y = Loop(n, yes, h0, c0)<body = {CELL}> }}""",
        header("w", [4 * WIDTH, WIDTH]),
        header("r", [4 * WIDTH, WIDTH]),
        header("bw", [4 * WIDTH]),
        header("br", [4 * WIDTH]),
        *stored,
        **dims,
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


def test_a_scan_reads_its_weights_once():
    def scan(steps):
        return work(
            read(
                f"""(float[1,8] s0, float[{steps},1,8] x) => (y) {{
                [scan] y = Scan(s0, x)<num_scan_inputs = 1, body = b (float[1,8] s, float[1,8] t)
                => (float[1,8] s2) {{ u = MatMul(t, w) s2 = Add(u, s) }}> }}""",
                header("w", [8, 8]),
            )
        )

    # A trip moves t, u (product), u, s, s2 (sum), each of 32 bytes; w is 256 bytes.
    assert scan(1) == (2 * 64 + 8, 160 + 256, 256)
    assert scan(10) == (10 * (2 * 64 + 8), 10 * 160 + 256, 256)


OLD_SCAN = """(float[%d,1,8] s0, float[3,5,1,8] x, int64[3] lengths) => (y, z) {
    [scan] end, rows = Scan(%s, s0, x)<num_scan_inputs = 1, body = b (float[1,8] s, float[1,8] t) =>
    (float[1,8] s2, float[1,8] row) { u = MatMul(t, w) s2 = Add(u, s) row = Identity(u) }>
    y = Relu(end) z = Relu(rows) }"""


@pytest.mark.parametrize("lengths", ["", "lengths"])
def test_a_scan_before_opset_9_runs_its_body_for_each_sequence(lengths):
    made = parsed(OLD_SCAN % (3, lengths), header("w", [8, 8]), opset=8)
    graph = read_onnx_model(made, "scan")
    assert graph.flops[graph.index["scan"]] == 15 * (2 * 64 + 8)
    assert graph.output_shape[-2:].tolist() == [[3, 1, 8, -1], [3, 5, 1, 8]]
    assert len(made.graph.node[0].input) == 3
    with pytest.raises(ReadError, match=r"before opset 9.*one batch first.*\[2, 1, 8\]"):
        read(OLD_SCAN % (2, lengths), header("w", [8, 8]), opset=8)


def test_weights_of_a_loop_in_a_loop_are_read_once():
    graph = read(
        """(float[1,8] x) => (y) <int64 three = {3}, int64 five = {5}> { y = Loop(five, , x)<body =
        outer (int64 i, bool go, float[1,8] h) => (bool go2, float[1,8] r) { go2 = Identity(go)
        r = Loop(three, , h)<body = inner (int64 j, bool on, float[1,8] g) =>
        (bool on2, float[1,8] q) { on2 = Identity(on) q = MatMul(g, w) }> }> }""",
        header("w", [8, 8]),
    )
    flops, num_bytes, weights = work(graph)
    assert (flops, weights) == (15 * 128, 256 + 8)  # and the trips of the inner loop
    assert num_bytes == 15 * 64 + 256


def test_a_trip_count_that_depends_on_data_can_be_given():
    with pytest.raises(ReadError, match=r"--dim 'loop\.trips=<count>'.*--trip-count '<count>'"):
        lstm_loop(None)
    known = work(lstm_loop(7))
    assert work(lstm_loop(None, **{"loop.trips": 7})) == known
    told = lstm_loop(None, trip_count=7)
    assert work(told) == known
    assert told.meta["dims"] == {"trip_count": 7}


def test_nested_branches_are_weighed_once():
    """Forty would be weighed 2^40 times, if each branch weighed those inside it anew."""
    inner = "o0 = Neg(x)"
    for depth in range(1, 30):
        inner = f"""o{depth} = If(c)<then_branch = b () => (float[2] o{depth - 1}) {{ {inner} }},
            else_branch = e () => (float[2] e{depth}) {{ e{depth} = Identity(x) }}>"""
    graph = read(f"(float[2] x, bool[1] c) => (float[2] o29) {{ {inner} }}")
    assert graph.flops.sum() == 2
    assert len(graph.meta["notes"]) == 29


def growing(trips, step, result, stated="h2"):
    """A loop whose state is grown by ``step`` after a product with it."""
    graph = read(
        f"""(float[1,4] h0, float[1,4] x) => (y, z) <int64 n = {{{trips}}}, int64 zero = {{0}}> {{
        [loop] h_end, rows = Loop(n, , h0)<body = b ({GO}, h) => (bool go2, {stated}, row) {{
        go2 = Identity(go) p = MatMul(h, w) row = Gather(p, zero) {step} }}>
        y = Relu(h_end) z = Relu(rows) }}""",
        header("w", [4, 8]),
    )
    assert graph.output_shape[-2:].tolist() == [result, [trips, 8]]
    return graph


BY_A_ROW = "h2 = Concat<axis = 0>(h, x)"


@pytest.mark.parametrize("trips", [0, 1, 2, 5, 1001])
def test_a_state_that_grows_by_a_row_is_followed_to_its_end(trips):
    """1 + 2 + … + n rows times 4 x 8."""
    graph = growing(trips, BY_A_ROW, [1 + trips, 4])
    loop = graph.flops[graph.op_type.index("Loop")]
    exact = 2 * 4 * 8 * trips * (trips + 1) / 2
    # An even count has no trip in the middle.
    assert loop == exact if trips % 2 or not trips else abs(loop - exact) <= 4 * 8 * trips
    if trips > 1:
        assert "its state grows from trip to trip" in graph.meta["notes"][0]


def test_a_state_that_doubles_is_followed_trip_by_trip():
    step = "h2 = Concat<axis = 0>(h, h)"
    growing(6, step, [64, 4])
    with pytest.raises(ReadError, match=r"Loop 'loop' .*uneven steps, and 100 trips are too many"):
        growing(100, step, None)


def test_a_state_that_settles_with_the_first_trip():
    graph = read(
        f"""(float[1,4] h0) => (z) <int64 n = {{10}}> {{ y = Loop(n, , h0)<body = b ({GO}, h) =>
        (bool go2, h2) {{ go2 = Identity(go) p = MatMul(h, w) h2 = Add(h, five) }}>
        z = Relu(y) }}""",
        header("w", [4, 8]),
        header("five", [5, 4]),
    )
    assert shape_of(graph, graph.num_nodes - 1) == [5, 4]


def test_a_shape_stated_in_a_body_does_not_hold_a_growing_state_back():
    growing(5, BY_A_ROW, [6, 4], stated="float[2,4] h2")
