"""Loops end by their own condition: as many trips as the reference evaluator runs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import array, parsed, read

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

pytestmark = pytest.mark.usefixtures("in_process")
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


@pytest.mark.parametrize(
    ("step", "start", "trips"),
    [
        ("s2 = Sub(s, two)", "ten", 5),
        ("s2 = Add(i, one)", "zero", LONGEST),
        ("s2 = Add(less, s)", "thousand", 500),
    ],
)
def test_counters_that_fall_or_follow_the_trip(step, start, trips):
    made = loop("go2 = Greater(s2, zero)", step, start=start)
    if trips == LONGEST:
        with pytest.raises(ReadError, match=r"Loop 'loop' .*its condition always holds"):
            trips_of(made)
    else:
        assert trips_of(made) == trips


def test_by_hand():
    assert trips_of(loop(CONDITIONS["number of the trip"], limit=1000)) == 3
    assert trips_of(loop(CONDITIONS["counter"], limit=None)) == 10
    assert trips_of(loop(CONDITIONS["counter"], going=0)) == 0


def test_data_may_end_a_counted_loop_early():
    graph = read_onnx_model(loop("p = Less(s2, ten) go2 = And(p, data)"), "m")
    assert graph.output_shape[-1].tolist() == [10, 1, 4]
    assert "may stop early; its largest trip count 10 is used" in graph.meta["notes"][0]
    with pytest.raises(ReadError, match="until its own condition ends it"):
        trips_of(loop("go2 = Identity(data)"))


@pytest.mark.parametrize("trips", [1, 9])
def test_sizes_that_follow_the_trip_are_those_halfway(trips):
    """A product of as many rows as trips so far, and a loop of as many trips inside."""
    graph = read(
        f"""(float[1,4] x, float[9,4] rows) => (y) <int64 n = {{{trips}}}, int64 one = {{1}},
        int64[1] axis = {{0}}> {{ a = Loop(n, , x)<body = b (int64 i, bool go, float[1,4] h) =>
        (bool go2, float[1,4] g_end) {{ end = Add(i, one) ends = Unsqueeze(end, axis)
        part = Slice(rows, axis, ends) p = MatMul(part, w) top = ReduceMax(p, axis)
        g_end = Loop(end, , top)<body = inside (int64 j, bool go3, float[1,4] g) =>
        (bool go4, float[1,4] g2) {{ go4 = Identity(go3) g2 = MatMul(g, w) }}>
        go2 = Identity(go) }}> y = Relu(a) }}""",
        array("w", np.eye(4)),
    )
    halfway = (trips + 1) // 2
    product, largest = 2 * halfway * 4 * 4, (halfway - 1) * 4
    loop_flops = graph.flops[graph.op_type.index("Loop")]
    assert loop_flops == trips * (product + largest + 2 * 4 * 4 * halfway)
    said = [
        n for n in graph.meta["notes"] if "sizes in its body follow the number of the trip" in n
    ]
    assert len(said) == 1
