"""`Geometry` of ONNX operators."""

from __future__ import annotations

import pytest
from graphs.readers.onnx_models import one_operator

from go_rl.core import Geometry, ReadError
from go_rl.graphs.readers.onnx.reader import read_onnx_model


def geometry(op, inputs, results, **attributes) -> Geometry:
    graph = read_onnx_model(one_operator(op, inputs, results, **attributes), op)
    assert graph.geometry is not None
    return Geometry(*graph.geometry[graph.op_type.index(op)].tolist())


@pytest.mark.parametrize(
    ("op", "inputs", "results", "attributes", "expected"),
    [
        ("Conv", [[1, 4, 9, 9], [6, 2, 3, 3]], [[1, 6, 5, 5]],
         {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2},
         Geometry(window=9.0, stride=4.0, padding=4.0, groups=2.0)),
        ("Conv", [[1, 4, 9, 9], [6, 4, 3, 3]], [[1, 6, 9, 9]],
         {"auto_pad": "SAME_UPPER", "dilations": [1, 2]},
         Geometry(window=9.0, padding=6.0, window_dilation=2.0)),
        ("ConvTranspose", [[1, 4, 5, 5], [4, 6, 2, 2]], [[1, 6, 10, 10]], {"strides": [2, 2]},
         Geometry(window=4.0, input_dilation=4.0)),
        ("MaxPool", [[1, 4, 8, 8]], [[1, 4, 4, 4]],
         {"kernel_shape": [2, 2], "strides": [2, 2]}, Geometry(window=4.0, stride=4.0, minor=1.0)),
        ("MatMul", [[2, 3], [3, 4]], [[2, 4]], {}, Geometry(minor=1.0)),
        ("Gemm", [[2, 3], [4, 3]], [[2, 4]], {"transB": 1}, Geometry(minor=3.0)),
        ("Gemm", [[3, 2], [3, 4]], [[2, 4]], {"transA": 1}, Geometry(minor=0.0)),
        ("Transpose", [[2, 3, 4]], [[3, 2, 4]], {"perm": [1, 0, 2]}, Geometry()),
        ("Transpose", [[2, 3, 4]], [[4, 3, 2]], {}, Geometry(minor=1.0)),
        ("Concat", [[2, 3], [2, 3]], [[2, 6]], {"axis": -1}, Geometry(minor=1.0)),
        ("Concat", [[2, 3], [2, 3]], [[4, 3]], {"axis": 0}, Geometry()),
        ("Softmax", [[2, 3]], [[2, 3]], {}, Geometry(minor=1.0)),
        ("Relu", [[2, 3]], [[2, 3]], {}, Geometry()),
    ],
)  # fmt: skip
def test_by_hand(op, inputs, results, attributes, expected):
    assert geometry(op, inputs, results, **attributes) == expected


@pytest.mark.parametrize(
    ("domain", "op"), [("com.microsoft", "FusedConv"), ("com.microsoft.nchwc", "Conv")]
)
def test_convolutions_of_onnx_runtime_have_that_of_the_standard_one(domain, op):
    shapes = [[1, 16, 9, 9], [32, 8, 3, 3]], [[1, 32, 5, 5]]
    settings = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}
    standard = geometry("Conv", *shapes, **settings)
    built = one_operator(op, *shapes, domain=domain, **settings)
    graph = read_onnx_model(built, op)
    assert graph.geometry is not None
    assert Geometry(*graph.geometry[graph.index["op"]].tolist()) == standard


def test_a_convolution_without_groups_is_refused_by_name():
    for group in (0, -2):
        with pytest.raises(ReadError, match=f"attribute group must be 1 or more, not {group}"):
            geometry("Conv", [[1, 4, 9, 9], [6, 4, 3, 3]], [[1, 6, 7, 7]], group=group)
