"""Operators of training in ONNX: updates by hand, and what is refused."""

import numpy as np
import pytest
from onnx import helper
from onnx_models import array, header, model, read, value

from go_rl.core.errors import UnknownOperatorError
from go_rl.graphs.readers.onnx.reader import read_onnx_model

DOMAIN = "ai.onnx.preview.training"
LISTS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(
    ("op", "attributes", "flops"),
    [
        ("Adagrad", {}, 6),
        ("Adagrad", {"norm_coefficient": 0.1}, 8),
        ("Adam", {}, 11),
        ("Adam", {"norm_coefficient": 0.1, "norm_coefficient_post": 0.1}, 14),
        ("Momentum", {"mode": "standard", "norm_coefficient": 0.0}, 5),
        ("Momentum", {"mode": "nesterov", "norm_coefficient": 0.1}, 9),
    ],
)
def test_an_update_of_two_parameters(op, attributes, flops):
    rest = {"Momentum": {"alpha": 0.9, "beta": 1.0}}.get(op, {})
    shapes, kinds = {"a": [20, 30], "b": [30]}, LISTS[op]
    lists = [f"{kind}_{name}" for kind in "xgvh"[:kinds] for name in shapes]
    results = [f"new_{kind}_{name}" for kind in "xvh"[: kinds - 1] for name in shapes]
    update = helper.make_node(
        op, ["rate", "count", *lists], results, name="update", domain=DOMAIN, **attributes, **rest
    )
    gradients = [value(name, shapes[name[-1]]) for name in lists if name[0] == "g"]
    stored = [header(name, shapes[name[-1]]) for name in lists if name[0] != "g"]
    stored += [array("rate", 0.1), array("count", 3, np.int64)]
    graph = read_onnx_model(model([update], gradients, results, stored, domains=[DOMAIN]), "m")
    node = graph.index["update"]
    assert graph.flops[node] == flops * 630
    assert graph.output_bytes[node] == 4 * 630 * (kinds - 1)
    assert graph.weight_bytes[node] == 4 * 630 * (kinds - 1) + 4 + 8


def test_a_gradient_is_refused_with_the_reason():
    text = f"""(float[4] x) => (float[4] y, float[4] dx)
        {{ y = Mul(x, x) dx = {DOMAIN}.Gradient<xs = ["x"], y = "y">(x) }}"""
    with pytest.raises(UnknownOperatorError, match=r"Gradient \(1\) \(Gradient stands for a back"):
        read(text, domains=[DOMAIN])
    assert read(text, domains=[DOMAIN], unknown="bytes").flops.sum() == 4
