"""Sizes of inputs: placeholders, sizes made of others, and shapes that the file states wrongly."""

from __future__ import annotations

import pytest
from onnx import helper
from onnx_models import header, model, read, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.arithmetic.size_expression import size_of
from go_rl.graphs.readers.onnx.dimensions import PLACEHOLDERS, dims_of_inputs
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
pytestmark = pytest.mark.usefixtures("in_process")


def test_two_sizes_with_one_placeholder_are_two_sizes():
    for name in PLACEHOLDERS:
        nodes, inputs = [node("Conv", ["x", "w"], ["y"])], [value("x", [-1, 3, name, name])]
        made = model(nodes, inputs, ["y"], [header("w", [8, 3, 3, 3])])
        dims = dims_of_inputs(made, {"x": (6, 3, 48, 192)}, {}, "m")
        assert dims == {"x_0": 6, "x_2": 48, "x_3": 192}
        graph = read_onnx_model(made, "m", dims)
        assert graph.flops.sum() == 2 * 27 * 8 * 6 * 46 * 190


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("s0 + 1", 6), ("2*s0 - batch", 7), ("s0//2", 2), ("floor(s0/2)", 2), ("ceiling(s0/2)", 3),
        ("Max(1, batch - s0)", 1), ("Mod(s0, batch)", 2), ("(s0 + 1)*batch", 18), ("-s0 + 7", 2),
        ("s0/2", None), ("s1 + 1", None), ("s0 / 0", None), ("__import__('os')", None),
        ("s0.real", None), ("s0 +", None), ("unk__12", None),
    ],
)  # fmt: skip
def test_a_size_made_of_others(text, size):
    assert size_of(text, {"s0": 5, "batch": 3}) == size


def shared(**dims):
    """Two inputs whose sizes are made of one symbol that no axis has alone."""
    inputs = [value("x", ["s0 + 1", 4]), value("y", ["s0", "2*s1"]), value("z", [1, "s1 + s0"])]
    nodes = [node("Relu", [v.name], [f"r_{v.name}"]) for v in inputs]
    return read_onnx_model(model(nodes, inputs, ["r_x", "r_y", "r_z"]), "m", dims)


@pytest.mark.parametrize(
    "dims", [{"s0": 3, "s1": 5}, {"s0 + 1": 4, "s1": 5}, {"s0 + 1": 4, "2*s1": 10}]
)
def test_one_size_fixes_all_dimensions_that_share_it(dims):
    assert shared(**dims).flops.sum() == 4 * 4 + 3 * 10 + 8


def test_sizes_that_contradict_the_model_are_refused_whatever_the_file_states():
    text = """(float[N,6] x) => (y) <float[2,3] h, int64[2] t = {2, 3}>
        { h = Reshape(x, t) y = Relu(h) }"""
    assert read(text, N=1).flops.sum() == 6
    with pytest.raises(ReadError, match="Reshape"):
        read(text, N=2)
