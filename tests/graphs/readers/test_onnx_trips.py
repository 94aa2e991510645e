"""Loops end by their own condition: as many trips as the reference evaluator runs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import array, model, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
pytestmark = pytest.mark.usefixtures("in_process")
LONGEST = (1 << 63) - 1
NUMBERS = {"zero": 0, "one": 1, "two": 2, "three": 3, "ten": 10, "thousand": 1000, "less": -2}


def loop(condition, step=(), limit: int | None = LONGEST, start="zero", going=True):
    """A loop of a counter ``s`` (next ``s2``) around a product; ``condition`` makes ``go2``."""
    step = step or [node("Add", ["s", "one"], ["s2"])]
    body = helper.make_graph(
        [node("MatMul", ["h", "w"], ["h2"]), node("Identity", ["h2"], ["row"]), *step, *condition],
        "b",
        [value("i", [], 7), value("go", [], 9), value("s", [], 7), value("h", [1, 4])],
        [value("go2", [], 9), value("s2", [], 7), value("h2", [1, 4]), value("row", [1, 4])],
    )
    count = [array("most", limit, np.int64)] if limit is not None else []
    operands = ["most" if count else "", "going", start, "x"]
    nodes = [node("Loop", operands, ["a", "b", "rows"], body=body, name="loop")]
    nodes += [node("Relu", ["rows"], ["y"])]
    weights = [array(name, number, np.int64) for name, number in NUMBERS.items()]
    weights += [array("w", np.eye(4)), array("going", going, np.bool_), *count]
    return model(nodes, [value("x", [1, 4]), value("data", [], 9)], ["y"], weights)


def trips_of(made):
    graph = read_onnx_model(made, "m")
    trips = int(graph.output_shape[-1][0])
    counting = graph.flops[graph.op_type.index("Loop")] - 2 * 16 * trips
    assert 0 <= counting <= 8 * trips
    return trips


CONDITIONS = {
    "number of the trip": [node("Less", ["i", "two"], ["go2"])],
    "counter": [node("Less", ["s2", "ten"], ["go2"])],
    "counter before its step": [node("LessOrEqual", ["s", "ten"], ["go2"])],
    "from the other side": [node("Greater", ["ten", "s2"], ["go2"])],
    "not equal": [node("Equal", ["s2", "three"], ["e"]), node("Not", ["e"], ["go2"])],
    "not reached": [node("GreaterOrEqual", ["s2", "ten"], ["e"]), node("Not", ["e"], ["go2"])],
    "both": [
        node("Less", ["i", "ten"], ["p"]), node("Less", ["s2", "three"], ["q"]),
        node("And", ["p", "q"], ["go2"]),
    ],
    "with what holds": [node("Less", ["i", "three"], ["p"]), node("And", ["p", "go"], ["go2"])],
    "either": [
        node("Greater", ["i", "three"], ["p"]), node("Equal", ["s2", "ten"], ["q"]),
        node("Or", ["p", "q"], ["stop"]), node("Not", ["stop"], ["go2"]),
    ],
    "multiple": [node("Mul", ["i", "three"], ["m"]), node("Less", ["m", "ten"], ["go2"])],
    "difference": [node("Sub", ["ten", "i"], ["d"]), node("Greater", ["d", "three"], ["go2"])],
    "reshaped": [
        node("Cast", ["s2"], ["f"], to=1), node("Cast", ["ten"], ["g"], to=1),
        node("Less", ["f", "g"], ["go2"]),
    ],
    "never": [node("Less", ["s2", "zero"], ["go2"])],
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("limit", [LONGEST, 2, None])
def test_trips_are_those_of_the_reference(name, limit):
    made = loop(CONDITIONS[name], limit=limit)
    feeds = {"x": np.zeros((1, 4), np.float32), "data": np.array(True)}
    (rows,) = ReferenceEvaluator(loop(CONDITIONS[name], limit=limit or 100)).run(None, feeds)
    assert trips_of(made) == len(rows)


@pytest.mark.parametrize(
    ("step", "start", "trips"),
    [
        ([node("Sub", ["s", "two"], ["s2"])], "ten", 5),
        ([node("Add", ["i", "one"], ["s2"])], "zero", LONGEST),
        ([node("Add", ["less", "s"], ["s2"])], "thousand", 500),
    ],
)
def test_counters_that_fall_or_follow_the_trip(step, start, trips):
    condition = [node("Greater", ["s2", "zero"], ["go2"])]
    if trips == LONGEST:
        with pytest.raises(ReadError, match=r"Loop 'loop' .*its condition always holds"):
            trips_of(loop(condition, step, start=start))
    else:
        assert trips_of(loop(condition, step, start=start)) == trips


def test_a_body_whose_condition_is_less_than_two_runs_three_times():
    assert trips_of(loop(CONDITIONS["number of the trip"], limit=1000)) == 3


def test_a_loop_that_is_not_entered():
    assert trips_of(loop(CONDITIONS["counter"], going=False)) == 0


def test_data_may_end_a_counted_loop_early():
    condition = [node("Less", ["s2", "ten"], ["p"]), node("And", ["p", "data"], ["go2"])]
    graph = read_onnx_model(loop(condition), "m")
    assert graph.output_shape[-1].tolist() == [10, 1, 4]
    assert "may stop early; its largest trip count 10 is used" in graph.meta["notes"][0]


def test_data_alone_do_not_end_it():
    with pytest.raises(ReadError, match="until its own condition ends it"):
        trips_of(loop([node("Identity", ["data"], ["go2"])]))


def nested(trips):
    """A product of as many rows as trips so far, and a loop of as many trips inside."""
    inside = helper.make_graph(
        [node("Identity", ["go3"], ["go4"]), node("MatMul", ["g", "w"], ["g2"])],
        "inside",
        [value("j", [], 7), value("go3", [], 9), value("g", [1, 4])],
        [value("go4", [], 9), value("g2", [1, 4])],
    )
    body = helper.make_graph(
        [
            node("Add", ["i", "one"], ["end"]),
            node("Unsqueeze", ["end", "axis"], ["ends"]),
            node("Slice", ["rows", "axis", "ends"], ["part"]),
            node("MatMul", ["part", "w"], ["p"]),
            node("ReduceMax", ["p", "axis"], ["top"]),
            node("Loop", ["end", "", "top"], ["g_end"], name="inner", body=inside),
            node("Identity", ["go"], ["go2"]),
        ],
        "b",
        [value("i", [], 7), value("go", [], 9), value("h", [1, 4])],
        [value("go2", [], 9), value("g_end", [1, 4])],
    )
    nodes = [node("Loop", ["n", "", "x"], ["a"], name="outer", body=body)]
    nodes += [node("Relu", ["a"], ["y"])]
    weights = [array("n", trips, np.int64), array("one", 1, np.int64), array("axis", [0], np.int64)]
    weights.append(array("w", np.eye(4)))
    return model(nodes, [value("x", [1, 4]), value("rows", [9, 4])], ["y"], weights)


@pytest.mark.parametrize("trips", [1, 3, 9])
def test_sizes_that_follow_the_trip_are_those_halfway(trips):
    graph = read_onnx_model(nested(trips), "m")
    flops = graph.flops[graph.op_type.index("Loop")]
    halfway = (trips + 1) // 2
    product, largest = 2 * halfway * 4 * 4, (halfway - 1) * 4
    assert flops == trips * (product + largest + 2 * 4 * 4 * halfway)
    assert (
        sum("sizes in its body follow the number of the trip" in n for n in graph.meta["notes"])
        == 1
    )
