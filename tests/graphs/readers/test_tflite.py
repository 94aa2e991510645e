"""LiteRT models: FLOP by hand, stored bytes, and what is wrong with a damaged one."""

import numpy as np
import pytest
from tflite_models import T, tflite

from go_rl.core import OpKind, ReadError, UnknownOperatorError
from go_rl.graphs.readers.recognise import Format, recognise

SAME, VALID = ("byte", 0), ("byte", 1)
RELU = ("byte", 1)


def two(number, value=2):
    """A stride or window over both axes."""
    return {number: ("int", value), number + 1: ("int", value)}


def taps(size, kernel, stride, out):
    """Pairs of output and tap along one axis, padded alike on both sides."""
    pad = max(0, (out - 1) * stride + kernel - size) // 2
    return sum(0 <= o * stride + k - pad < size for o in range(out) for k in range(kernel))


OPERATORS = {
    "convolution": (
        "CONV_2D", [(2, 9, 9, 3)], [(8, 3, 3, 3), (8,)], (2, 5, 5, 8),
        {0: SAME, **two(1), 3: RELU}, 2 * 2 * taps(9, 3, 2, 5) ** 2 * 3 * 8 + 2 * 2 * 25 * 8,
    ),
    "without padding": (
        "CONV_2D", [(1, 9, 9, 3)], [(8, 3, 3, 3)], (1, 7, 7, 8), {0: VALID, **two(1, 1)},
        2 * 49 * 9 * 3 * 8,
    ),
    "depthwise": (
        "DEPTHWISE_CONV_2D", [(1, 8, 8, 4)], [(1, 3, 3, 4), (4,)], (1, 8, 8, 4),
        {0: SAME, **two(1, 1), 3: ("int", 1)}, 2 * taps(8, 3, 1, 8) ** 2 * 4 + 64 * 4,
    ),
    "fully connected": (
        "FULLY_CONNECTED", [(5, 64)], [(10, 64), (10,)], (5, 10), {0: RELU},
        2 * 5 * 10 * 64 + 2 * 50,
    ),
    "batch matmul": (
        "BATCH_MATMUL", [(3, 4, 5), (3, 5, 6)], [], (3, 4, 6), {}, 2 * 3 * 4 * 6 * 5,
    ),
    "transposed left": (
        "BATCH_MATMUL", [(3, 5, 4), (3, 5, 6)], [], (3, 4, 6), {0: ("byte", 1)}, 2 * 3 * 4 * 6 * 5,
    ),
    "average pool": (
        "AVERAGE_POOL_2D", [(1, 8, 8, 4)], [], (1, 4, 4, 4), {0: VALID, **two(1), **two(3)},
        16 * 4 * 4,
    ),
    "sum with an activation": ("ADD", [(4, 4), (4, 4)], [], (4, 4), {0: RELU}, 32),
    "mean": ("MEAN", [(1, 8, 8, 4)], [], (1, 4), {}, 256 + 4),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_flop_by_hand(name, loaded, tmp_path):
    op, inputs, weights, result, options, flops = OPERATORS[name]
    tensors = {f"x{i}": T(shape) for i, shape in enumerate(inputs)}
    given = list(tensors)
    tensors |= {f"w{i}": T(shape, stored=True) for i, shape in enumerate(weights)}
    operands, tensors = list(tensors), {**tensors, "y": T(result)}
    content = tflite(tensors, [(op, operands, ["y"], options)], given, ["y"])
    graph = loaded(content)
    assert recognise(tmp_path / "model") is Format.TFLITE
    place = graph.index["y"]
    assert graph.flops[place] == flops == graph.flops.sum()
    assert graph.weight_bytes[place] == 4 * sum(np.prod(w) for w in weights)
    assert graph.is_output.tolist() == [n == "y" for n in graph.names]
    assert graph.output_shape[place][: len(result)].tolist() == list(result)


def test_a_transposed_convolution_is_a_convolution_the_other_way(loaded):
    tensors = {"size": T((4,), 2, True), "w": T((8, 2, 2, 3), stored=True), "x": T((1, 5, 5, 3)),
               "y": T((1, 10, 10, 8))}  # fmt: skip
    options = {0: VALID, **two(1)}
    op = ("TRANSPOSE_CONV", ["size", "w", "x"], ["y"], options)
    graph = loaded(tflite(tensors, [op], ["x"], ["y"]))
    assert graph.flops.sum() == 2 * 25 * 4 * 3 * 8


def test_operators_without_a_cost(loaded, refused):
    tensors = {"x": T((4, 4), signature=(-1, 4)), "y": T((4, 4)), "z": T((4, 4))}
    operators = [("OwnOperator", ["x"], ["y"], {}), ("RELU", ["y"], ["z"], {})]
    content = tflite(tensors, operators, ["x"], ["z"])
    refused(content, r"CUSTOM:OwnOperator \(1\); count them by", UnknownOperatorError)
    graph = loaded(content, unknown="bytes")
    assert graph.kind.tolist() == [OpKind.INPUT, OpKind.OTHER, OpKind.ELEMENTWISE]
    assert graph.bytes_accessed[1] == 2 * 64
    assert "of x, are those it was made with" in graph.meta["notes"][1]


@pytest.mark.parametrize(
    ("op", "shape", "said"),
    [
        ("CONV_2D", (4, 4), r"CONV_2D at operators\[0\].*operand 1 is missing"),
        ("RELU", (1 << 30,) * 3, "which no tensor can have"),
    ],
)
def test_operands_that_do_not_fit(op, shape, said, refused):
    tensors = {"x": T(shape), "y": T((4, 4))}
    refused(tflite(tensors, [(op, ["x"], ["y"], {})], ["x"], ["y"]), said)


def test_any_part_of_a_file_is_refused(loaded):
    tensors = {"x": T((4, 4)), "y": T((4, 4))}
    content = tflite(tensors, [("RELU", ["x"], ["y"], {})], ["x"], ["y"])
    for length in range(8, len(content) - 8, 24):
        said = r"model\.tflite: [a-z ]+: cut off or damaged \(an offset leads out"
        with pytest.raises(ReadError, match=said) as error:
            loaded(content[:length], "model.tflite")
        assert not getattr(error.value, "unforeseen", False)
