"""Sizes that neither the file nor the operators tell: guessed when asked for, and counted."""

from __future__ import annotations

import pytest
from onnx_models import header, shape_of
from onnx_models import read as read_text

from go_rl.core.errors import UnknownOperatorError

pytestmark = pytest.mark.usefixtures("in_process")


def read(nodes, *weights, output="y", stated="", x="float[2,3,8,8] x", unknown="bytes"):
    """The graph of nodes after one that no reader knows, which makes ``a`` of ``x``."""
    values = f"<{stated}>" if stated else ""
    text = f"({x}) => ({output}) {values} {{ [twist] a = own.Twist(x) {nodes} }}"
    return read_text(text, *weights, domains=["own"], unknown=unknown)


@pytest.mark.parametrize(
    ("reader", "weight", "x", "shape"),
    [
        ("Conv<group = 2>(a, w)", [4, 5, 3, 3], "float[2,3,8,8] x", [2, 10, 8, 8]),
        ("MatMul(a, w)", [20, 6], "float[2,3,8,8] x", [2, 3, 8, 20]),
        ("Gemm<transB = 1>(a, w)", [6, 20], "float[4,9] x", [4, 20]),
    ],
)
def test_weights_of_a_reader_fix_the_axis_that_they_contract(reader, weight, x, shape):
    graph = read(f"[read] y = {reader}", header("w", weight), x=x)
    assert shape_of(graph, "twist") == shape
    if reader.startswith("Gemm"):
        assert graph.flops[graph.index["read"]] == 2 * 4 * 20 * 6


def test_nothing_is_guessed_unless_asked():
    with pytest.raises(UnknownOperatorError, match="--unknown bytes"):
        read("y = Relu(a)", unknown="error")
