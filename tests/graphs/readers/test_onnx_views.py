"""Views of ONNX models: what is another shape of a tensor, and what copies it."""

import re

import numpy as np
import pytest
from onnx_models import array, read, shape_of

pytestmark = pytest.mark.usefixtures("in_process")
SIZE = 4 * 120


def viewed(nodes, opset=20):
    """The graph of a rectified image behind its views."""
    numbers = sorted(set(re.findall(r"i_[\d_]+", nodes)))
    stored = [array(n, list(map(int, n.split("_")[1:])), np.int64) for n in numbers]
    text = f"(float[2,3,4,5] x) => (y) {{ {nodes} [last] y = Relu(h) }}"
    return read(text, *stored, array("no", False, np.bool_), opset=opset)


@pytest.mark.parametrize(
    ("view", "result", "opset"),
    [
        ("Identity(x)", [2, 3, 4, 5], 20),
        ("Reshape(x, i_6_20)", [6, 20], 20),
        ("Flatten<axis = 2>(x)", [6, 20], 20),
        ("Unsqueeze(x, i_0)", [1, 2, 3, 4, 5], 20),
        ("Dropout(x)", [2, 3, 4, 5], 20),
        ("Dropout(x, , no)", [2, 3, 4, 5], 20),
        ("Dropout<is_test = 1>(x)", [2, 3, 4, 5], 6),
    ],
)
def test_another_shape_of_a_tensor_is_that_tensor(view, result, opset):
    graph = viewed(f"h = {view}", opset)
    assert graph.op_type == ("Input", "Relu")
    assert graph.edge_bytes.tolist() == [SIZE]
    assert shape_of(graph, 1) == result
