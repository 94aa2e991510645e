"""Loops of ONNX cost their trips; weights that stay between trips are read once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import array, header, model, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node


pytestmark = pytest.mark.usefixtures("in_process")


STEPS, WIDTH = 14, 1024


def lstm_operator():
    weights = [
        header("w", [1, 4 * WIDTH, WIDTH]), header("r", [1, 4 * WIDTH, WIDTH]),
        header("b", [1, 8 * WIDTH]),
    ]  # fmt: skip
    nodes = [node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=WIDTH)]
    x, y = value("x", [STEPS, 1, WIDTH]), value("y", [STEPS, 1, 1, WIDTH])
    return model(nodes, [x], [y], weights)


def cell():
    """One step of an LSTM as exporters write it into a loop."""
    state = [value(n, [1, WIDTH]) for n in ("h", "c")]
    nodes = [
        node("Identity", ["go"], ["go2"]),
        node("Gather", ["x", "i"], ["xt"], axis=0),
        node("Gemm", ["xt", "w", "bw"], ["gx"], transB=1),
        node("Gemm", ["h", "r", "br"], ["gh"], transB=1),
        node("Add", ["gx", "gh"], ["gates"]),
        node("Split", ["gates"], ["gi", "gf", "gc", "gy"], axis=1, num_outputs=4),
        node("Sigmoid", ["gi"], ["si"]),
        node("Sigmoid", ["gf"], ["sf"]),
        node("Tanh", ["gc"], ["tc"]),
        node("Sigmoid", ["gy"], ["sy"]),
        node("Mul", ["sf", "c"], ["kept"]),
        node("Mul", ["si", "tc"], ["new"]),
        node("Add", ["kept", "new"], ["c2"]),
        node("Tanh", ["c2"], ["tc2"]),
        node("Mul", ["sy", "tc2"], ["h2"]),
        node("Identity", ["h2"], ["row"]),
    ]
    results = [value("go2", [], 9), *(value(n, [1, WIDTH]) for n in ("h2", "c2", "row"))]
    return helper.make_graph(
        nodes, "cell", [value("i", [], 7), value("go", [], 9), *state], results
    )


def lstm_loop(trips=STEPS):
    weights = [
        header("w", [4 * WIDTH, WIDTH]), header("r", [4 * WIDTH, WIDTH]), header("bw", [4 * WIDTH]),
        header("br", [4 * WIDTH]), array("yes", True, np.bool_),
        *([array("n", trips, np.int64)] if trips is not None else []),
    ]  # fmt: skip
    inputs = [value("x", [STEPS, 1, WIDTH]), value("h0", [1, WIDTH]), value("c0", [1, WIDTH])]
    inputs += [value("n", [], 7)] if trips is None else []
    loop = node("Loop", ["n", "yes", "h0", "c0"], ["h", "c", "y"], name="loop", body=cell())
    return model([loop], inputs, ["y"], weights)


def work(graph):
    """FLOP, bytes and weights of the only node that computes."""
    (place,) = np.flatnonzero(graph.flops)
    return graph.flops[place], graph.bytes_accessed[place], graph.weight_bytes[place]


def test_an_lstm_costs_the_same_as_a_loop_and_as_an_operator():
    operator = read_onnx_model(lstm_operator(), "operator")
    loop_flops, loop_bytes, loop_weights = work(read_onnx_model(lstm_loop(), "loop"))
    assert operator.flops.sum() == loop_flops
    assert loop_weights == 4 * (8 * WIDTH * WIDTH + 8 * WIDTH)
    # The loop's weights stay in place; each step of the operator reads the recurrent ones again.
    again = (STEPS - 1) * 4 * (4 * WIDTH * WIDTH + 8 * WIDTH)
    assert abs((operator.bytes_accessed.sum() - again) / loop_bytes - 1) < 0.1


def test_a_scan_reads_its_weights_once():
    def scan(steps):
        body = helper.make_graph(
            [node("MatMul", ["t", "w"], ["u"]), node("Add", ["u", "s"], ["s2"])],
            "body",
            [value("s", [1, 8]), value("t", [1, 8])],
            [value("s2", [1, 8])],
        )
        scan = node("Scan", ["s0", "x"], ["y"], name="scan", body=body, num_scan_inputs=1)
        inputs = [value("s0", [1, 8]), value("x", [steps, 1, 8])]
        return work(read_onnx_model(model([scan], inputs, ["y"], [header("w", [8, 8])]), "scan"))

    # A trip moves t, u (product), u, s, s2 (sum), each of 32 bytes; w is 256 bytes.
    assert scan(1) == (2 * 64 + 8, 160 + 256, 256)
    assert scan(10) == (10 * (2 * 64 + 8), 10 * 160 + 256, 256)


@pytest.mark.parametrize("lengths", ["", "lengths"])
def test_a_scan_before_opset_9_runs_its_body_for_each_sequence(lengths):
    body = helper.make_graph(
        [
            node("MatMul", ["t", "w"], ["u"]),
            node("Add", ["u", "s"], ["s2"]),
            node("Identity", ["u"], ["row"]),
        ],
        "body",
        [value("s", [1, 8]), value("t", [1, 8])],
        [value("s2", [1, 8]), value("row", [1, 8])],
    )
    operands, results = [lengths, "s0", "x"], ["end", "rows"]
    scan = node("Scan", operands, results, name="scan", body=body, num_scan_inputs=1)
    last = [node("Relu", ["end"], ["y"]), node("Relu", ["rows"], ["z"])]
    inputs = [value("s0", [3, 1, 8]), value("x", [3, 5, 1, 8]), value("lengths", [3], 7)]
    made = model([scan, *last], inputs, ["y", "z"], [header("w", [8, 8])], opset=8)
    graph = read_onnx_model(made, "scan")
    assert graph.flops[graph.index["scan"]] == 15 * (2 * 64 + 8)
    assert graph.output_shape[-2:].tolist() == [[3, 1, 8, -1], [3, 5, 1, 8]]
    assert len(made.graph.node[0].input) == 3

    inputs[0] = value("s0", [2, 1, 8])
    with pytest.raises(ReadError, match=r"before opset 9.*one batch first.*\[2, 1, 8\]"):
        read_onnx_model(model([scan], inputs, results, [header("w", [8, 8])], opset=8), "scan")


def test_weights_of_a_loop_in_a_loop_are_read_once():
    def repeated(inner, trips, name):
        nodes = [node("Identity", [f"go_{name}"], [f"go2_{name}"]), *inner]
        inputs = [value(f"i_{name}", [], 7), value(f"go_{name}", [], 9), value(f"h_{name}", [1, 8])]
        results = [value(f"go2_{name}", [], 9), value(f"r_{name}", [1, 8])]
        return helper.make_graph(nodes, name, inputs, results), trips

    product = node("MatMul", ["h_in", "w"], ["r_in"])
    inner, _ = repeated([product], 3, "in")
    inside = node("Loop", ["three", "", "h_out"], ["r_out"], name="inner", body=inner)
    outer, _ = repeated([inside], 5, "out")
    loop = node("Loop", ["five", "", "x"], ["y"], name="outer", body=outer)
    numbers = [array("three", 3, np.int64), array("five", 5, np.int64), header("w", [8, 8])]
    flops, num_bytes, weights = work(
        read_onnx_model(model([loop], [value("x", [1, 8])], ["y"], numbers), "nested")
    )
    assert (flops, weights) == (15 * 128, 256 + 8)  # and the trips of the inner loop
    assert num_bytes == 15 * 64 + 256


def test_a_trip_count_that_depends_on_data_can_be_given():
    with pytest.raises(ReadError, match=r"--dim 'loop\.trips=<count>'.*--trip-count '<count>'"):
        read_onnx_model(lstm_loop(None), "loop")
    known = work(read_onnx_model(lstm_loop(7), "loop"))
    assert work(read_onnx_model(lstm_loop(None), "loop", {"loop.trips": 7})) == known
    told = read_onnx_model(lstm_loop(None), "loop", {"trip_count": 7})
    assert work(told) == known
    assert told.meta["dims"] == {"trip_count": 7}


def test_nested_branches_are_weighed_once():
    """Forty would be weighed 2^40 times, if each branch weighed those inside it anew."""
    body = helper.make_graph([node("Neg", ["x"], ["o0"])], "b", [], [value("o0", [2])])
    for depth in range(1, 30):
        other = helper.make_graph(
            [node("Identity", ["x"], [f"e{depth}"])], "e", [], [value(f"e{depth}", [2])]
        )
        nodes = [node("If", ["c"], [f"o{depth}"], then_branch=body, else_branch=other)]
        body = helper.make_graph(nodes, "b", [], [value(f"o{depth}", [2])])
    inputs = [value("x", [2]), value("c", [1], 9)]
    graph = read_onnx_model(model(list(body.node), inputs, [value("o29", [2])]), "branches")
    assert graph.flops.sum() == 2
    assert len(graph.meta["notes"]) == 29


def growing(trips, step, result, shapes=None):
    """A loop whose state is grown by ``step`` after a product with it."""
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go2"]),
            node("MatMul", ["h", "w"], ["p"]),
            node("Gather", ["p", "zero"], ["row"]),
            *step,
        ],
        "b",
        [value("i", [], 7), value("go", [], 9), value("h", None)],
        [value("go2", [], 9), value("h2", shapes), value("row", None)],
    )
    nodes = [node("Loop", ["n", "", "h0"], ["h_end", "rows"], body=body, name="loop")]
    nodes += [node("Relu", ["h_end"], ["y"]), node("Relu", ["rows"], ["z"])]
    weights = [array("n", trips, np.int64), array("zero", 0, np.int64), header("w", [4, 8])]
    inputs = [value("h0", [1, 4]), value("x", [1, 4])]
    graph = read_onnx_model(model(nodes, inputs, ["y", "z"], weights), "m")
    assert graph.output_shape[-2:].tolist() == [result, [trips, 8]]
    return graph


@pytest.mark.parametrize("trips", [0, 1, 2, 5, 1001])
def test_a_state_that_grows_by_a_row_is_followed_to_its_end(trips):
    """1 + 2 + … + n rows times 4 x 8."""
    step = [node("Concat", ["h", "x"], ["h2"], axis=0)]
    graph = growing(trips, step, [1 + trips, 4])
    loop = graph.flops[list(graph.op_type).index("Loop")]
    exact = 2 * 4 * 8 * trips * (trips + 1) / 2
    # An even count has no trip in the middle.
    assert loop == exact if trips % 2 or not trips else abs(loop - exact) <= 4 * 8 * trips
    if trips > 1:
        assert "its state grows from trip to trip" in graph.meta["notes"][0]


def test_a_state_that_doubles_is_followed_trip_by_trip():
    step = [node("Concat", ["h", "h"], ["h2"], axis=0)]
    growing(6, step, [64, 4])
    with pytest.raises(ReadError, match=r"Loop 'loop' .*uneven steps, and 100 trips are too many"):
        growing(100, step, None)


def test_a_state_that_settles_with_the_first_trip():
    step = [node("Add", ["h", "five"], ["h2"])]
    body_weights = [header("five", [5, 4])]
    body = helper.make_graph(
        [node("Identity", ["go"], ["go2"]), node("MatMul", ["h", "w"], ["p"]), *step],
        "b",
        [value("i", [], 7), value("go", [], 9), value("h", None)],
        [value("go2", [], 9), value("h2", None)],
        body_weights,
    )
    nodes = [node("Loop", ["n", "", "h0"], ["y"], body=body), node("Relu", ["y"], ["z"])]
    weights = [array("n", 10, np.int64), header("w", [4, 8])]
    graph = read_onnx_model(model(nodes, [value("h0", [1, 4])], ["z"], weights), "m")
    assert graph.output_shape[-1].tolist() == [5, 4]


def test_a_shape_stated_in_a_body_does_not_hold_a_growing_state_back():
    step = [node("Concat", ["h", "x"], ["h2"], axis=0)]
    growing(5, step, [6, 4], shapes=[2, 4])
