"""Loops of ONNX cost their trips; weights that stay between trips are read once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import array, header, read

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
