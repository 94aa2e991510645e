"""Sizes of shapes."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs.readers.onnx_models import one_operator
from jax import lax

from go_rl.core import Geometry, OpGraph, ReadError
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.hlo.window import Window
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.onnx.reader import read_onnx_model

X, SQUARE = jnp.ones((2, 8, 8, 6)), jnp.ones((5, 5))


def geometry(graph: OpGraph, op: str) -> Geometry:
    assert graph.geometry is not None
    return Geometry(*graph.geometry[graph.op_type.index(op)].tolist())


def conv(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2), feature_group_count=3,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip


def product(left, right):
    return lambda a: lax.dot_general(a, a, (((left,), (right,)), ((), ())))


@pytest.mark.parametrize(
    ("op", "hlo", "function", "expected"),
    [
        ("conv_general_dilated", "convolution", lambda x: conv(x, jnp.ones((3, 3, 2, 12))),
         Geometry(window=9.0, stride=2.0, padding=4.0, window_dilation=2.0, groups=3.0, minor=1.0)),
        ("reduce_sum", "reduce", lambda x: x.sum(-1), Geometry(minor=1.0)),
        ("reduce_sum", "reduce", lambda x: x.sum(0), Geometry()),
        ("argmax", "", lambda x: x.argmax(-1), Geometry(minor=1.0)),
        # In HLO the result has a layout in which nothing moves.
        ("transpose", "", lambda x: x.transpose(0, 1, 3, 2), Geometry(minor=1.0)),
        ("transpose", "transpose", lambda x: x.transpose(1, 0, 2, 3) + 1, Geometry()),
        ("concatenate", "concatenate", lambda x: jnp.concatenate([x, x], 1), Geometry()),
        ("concatenate", "concatenate", lambda x: jnp.concatenate([x, x], 3), Geometry(minor=1.0)),
        ("cumsum", "", lambda x: lax.cumsum(x, 3), Geometry(minor=1.0)),
        ("slice", "", lambda x: x[:, ::2], Geometry(stride=2.0)),
        ("pad", "", lambda x: lax.pad(x, 0.0, ((0, 0, 0), (1, 2, 3), (0, 0, 0), (0, 0, 0))),
         Geometry(padding=3.0, input_dilation=4.0)),
        ("broadcast_in_dim", "", lambda x: lax.broadcast_in_dim(x, (*x.shape, 5), (0, 1, 2, 3)),
         Geometry(minor=1.0)),
        ("tanh", "tanh", jnp.tanh, Geometry()),
        ("reduce_window_max", "reduce-window", lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
         Geometry(window=4.0, stride=4.0)),
        ("max", "", jax.nn.relu, Geometry()),
        # An axis may be a number of NumPy's: so flax's Swin splits its windows.
        ("split", "", lambda x: lax.split(x, (3, 3), np.int64(3)), Geometry(minor=1.0)),
        *(("dot_general", "dot", product(*axes), Geometry(minor=minor)) for axes, minor in
          (((1, 0), 1.0), ((0, 0), 0.0), ((1, 1), 3.0), ((0, 1), 2.0))),
    ],
)  # fmt: skip
def test_of_jax_and_hlo(op, hlo, function, expected, loaded):
    x = SQUARE if op == "dot_general" else X
    assert geometry(trace_jax(function, x), op) == expected
    if hlo:
        assert geometry(loaded(jax.jit(function).lower(x).as_text("hlo")), hlo) == expected


STRIDED = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}


def of_onnx(op, inputs, result, attributes, domain=""):
    graph = read_onnx_model(one_operator(op, inputs, [result], domain=domain, **attributes), op)
    assert graph.geometry is not None
    return Geometry(*graph.geometry[graph.index["op"]].tolist())


@pytest.mark.parametrize(
    ("op", "inputs", "result", "attributes", "expected"),
    [
        ("Conv", [[1, 4, 9, 9], [6, 2, 3, 3]], [1, 6, 5, 5], STRIDED,
         Geometry(window=9.0, stride=4.0, padding=4.0, groups=2.0)),
        ("Conv", [[1, 4, 9, 9], [6, 4, 3, 3]], [1, 6, 9, 9],
         {"auto_pad": "SAME_UPPER", "dilations": [1, 2]},
         Geometry(window=9.0, padding=6.0, window_dilation=2.0)),
        ("ConvTranspose", [[1, 4, 5, 5], [4, 6, 2, 2]], [1, 6, 10, 10], {"strides": [2, 2]},
         Geometry(window=4.0, input_dilation=4.0)),
        ("MaxPool", [[1, 4, 8, 8]], [1, 4, 4, 4], {"kernel_shape": [2, 2], "strides": [2, 2]},
         Geometry(window=4.0, stride=4.0, minor=1.0)),
        ("MatMul", [[2, 3], [3, 4]], [2, 4], {}, Geometry(minor=1.0)),
        ("Gemm", [[2, 3], [4, 3]], [2, 4], {"transB": 1}, Geometry(minor=3.0)),
        ("Gemm", [[3, 2], [3, 4]], [2, 4], {"transA": 1}, Geometry(minor=0.0)),
        ("Transpose", [[2, 3, 4]], [3, 2, 4], {"perm": [1, 0, 2]}, Geometry()),
        ("Transpose", [[2, 3, 4]], [4, 3, 2], {}, Geometry(minor=1.0)),
        ("Concat", [[2, 3], [2, 3]], [2, 6], {"axis": -1}, Geometry(minor=1.0)),
        ("Concat", [[2, 3], [2, 3]], [4, 3], {"axis": 0}, Geometry()),
        ("Softmax", [[2, 3]], [2, 3], {}, Geometry(minor=1.0)),
        ("Relu", [[2, 3]], [2, 3], {}, Geometry()),
    ],
)  # fmt: skip
def test_of_onnx(op, inputs, result, attributes, expected):
    assert of_onnx(op, inputs, result, attributes) == expected


def test_valid_pairs_equal_brute_force():
    rng = random.Random(1)
    for _ in range(2000):
        outputs, taps, inputs = (rng.randrange(12) for _ in range(3))
        stride, dilation, pad = rng.randrange(1, 6), rng.randrange(1, 6), rng.randrange(-6, 9)
        brute = sum(
            0 <= o * stride + k * dilation - pad < inputs
            for o in range(outputs)
            for k in range(taps)
        )
        assert valid_pairs(outputs, taps, inputs, stride, dilation, pad) == brute


def test_windows_over_dilated_inputs_equal_brute_force():
    rng = random.Random(2)
    for _ in range(1000):
        window = Window(
            rng.randrange(1, 7), rng.randrange(1, 5), rng.randrange(-3, 6), rng.randrange(1, 5),
            rng.randrange(1, 5),
        )  # fmt: skip
        inputs, outputs = rng.randrange(1, 10), rng.randrange(10)
        places = [
            o * window.stride - window.pad_low + k * window.window_dilation
            for o in range(outputs)
            for k in range(window.size)
        ]
        reach = (inputs - 1) * window.base_dilation + 1
        brute = sum(0 <= p < reach and p % window.base_dilation == 0 for p in places)
        assert window.valid_positions(inputs, outputs) == brute


def test_windows_that_cannot_be_counted_are_refused():
    with pytest.raises(ValueError, match="strides and dilations must be 1 or more"):
        valid_pairs(4, 3, 4, 0, 1, 0)
    with pytest.raises(ReadError, match="strides and dilations must be 1 or more"):
        Window(3, stride=0).valid_positions(4, 4)
    with pytest.raises(ReadError, match="too large"):
        Window(2**40, base_dilation=2).valid_positions(2**40, 2**40)
