"""Sizes of inputs: placeholders, sizes made of others, and shapes that the file states wrongly."""

from __future__ import annotations

import shlex

import pytest
from onnx import helper
from onnx_models import header, model, read, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.arithmetic.size_expression import names_of, size_of, solved
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


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [
        ("s0 + 1", 9, ("s0", 8)), ("2*s0 - 2", 8, ("s0", 5)), ("s1 - s0", 3, ("s0", 4)),
        ("2*s0", 9, None), ("s0 // 2", 4, None), ("s0*s0", 9, None), ("s0 + s2", 9, None),
        ("s1 + 1", 8, None),
    ],
)  # fmt: skip
def test_the_unknown_part_of_a_size(text, size, found):
    assert solved(text, size, {"s1": 7}) == found
    assert names_of("past + Max(new, 1)") == {"past", "new"}
    assert names_of("DynamicDimension.0") == frozenset()


def cache(**dims):
    """A mask as long as the cache and the new words."""
    inputs = [value("past", ["b", "p"]), value("new", ["b", "n"]), value("mask", ["b", "p + n"])]
    nodes = [node("Concat", ["past", "new"], ["all"], axis=1), node("Add", ["all", "mask"], ["y"])]
    return read_onnx_model(model(nodes, inputs, [value("y", ["b", "p + n"])]), "m", dims)


def test_a_dimension_made_of_others_follows_from_them():
    assert cache(b=2, p=5, n=1).flops.sum() == 2 * 6
    assert cache(b=2, p=5, n=1, **{"p + n": 6}).flops.sum() == 2 * 6
    with pytest.raises(ReadError, match=r"'p' of input 'past' .*give .*--dim '?p=<size>"):
        cache(b=2)
    said = r"'p \+ n' of input 'mask' \(axis 1\) is 6 by .*7 was given"
    with pytest.raises(ReadError, match=said):
        cache(b=2, p=5, n=1, **{"p + n": 7})


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


def test_shared_sizes_that_are_missing_are_named_once_and_quoted():
    with pytest.raises(ReadError) as refused:
        shared()
    said = str(refused.value)
    assert said.startswith("m: dimensions without a size: 's0' of input 'y' (axis 0); 's1' of")
    shown = said.partition("; give ")[2].partition(", or whole shapes: ")
    assert shlex.split(shown[0]) == ["--dim", "s0=<size>", "--dim", "s1=<size>"]
    assert shlex.split(shown[2])[1] == "x=<s0 + 1>x4"
    with pytest.raises(ReadError, match=r"give --dim 's1=<size>'"):
        shared(**{"s0": 3, "2*s1": 9})


def test_a_name_with_a_sign_is_a_name():
    made = model([node("Relu", ["x"], ["y"])], [value("x", ["seq-len"])], ["y"])
    assert read_onnx_model(made, "m", {"seq-len": 3}).flops.sum() == 3


def test_a_shape_in_the_file_does_not_outlive_the_size_it_was_made_with():
    """Exporters state the shapes of the inputs that they tried."""
    text = "(float[N,3] x) => (float[1,4] y) <float[1,4] h> { h = MatMul(x, w) y = Relu(h) }"
    graph = read(text, header("w", [3, 4]), N=8)
    assert graph.flops.tolist() == [0, 2 * 8 * 3 * 4, 8 * 4]


def test_a_stated_shape_of_which_nothing_is_inferred_is_noted():
    text = "(float[N] x) => (y) <float[7] h> { h = own.Strange(x) y = Relu(h) }"
    graph = read(text, domains=["own"], unknown="bytes", N=8)
    assert graph.flops[-1] == 7
    said = "Strange: the shape of 'h' does not follow from its operands; [7] is used, as the file"
    assert said in " ".join(graph.meta["notes"])


def test_sizes_that_contradict_the_model_are_refused_whatever_the_file_states():
    text = """(float[N,6] x) => (y) <float[2,3] h, int64[2] t = {2, 3}>
        { h = Reshape(x, t) y = Relu(h) }"""
    assert read(text, N=1).flops.sum() == 6
    with pytest.raises(ReadError, match="Reshape"):
        read(text, N=2)
