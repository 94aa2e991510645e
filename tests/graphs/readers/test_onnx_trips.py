"""Loops end by their own condition: as many trips as the reference evaluator runs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import array, parsed

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
