"""Sequences of static tensors have static sizes; one of unknown length counts as one element."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, model, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node


pytestmark = pytest.mark.usefixtures("in_process")


def integers(name, *numbers):
    return array(name, list(numbers), np.int64)


OPERATORS = {
    "construct and concatenate": (
        [
            node("SequenceConstruct", ["x", "x2", "x"], ["q"]),
            node("ConcatFromSequence", ["q"], ["y"], axis=0),
        ],
        [17, 4],
    ),
    "stack": (
        [
            node("SequenceConstruct", ["x", "x", "x"], ["q"]),
            node("ConcatFromSequence", ["q"], ["y"], axis=-1, new_axis=1),
        ],
        [5, 4, 3],
    ),
    "split by sizes": (
        [
            node("SplitToSequence", ["x3", "parts"], ["q"], axis=0),
            node("SequenceAt", ["q", "two"], ["y"]),
        ],
        [6, 4],
    ),
    "split evenly, with a rest": (
        [
            node("SplitToSequence", ["x3", "five"], ["q"], axis=0),
            node("SequenceAt", ["q", "two"], ["y"]),
        ],
        [2, 4],
    ),
    "split into rows": (
        [
            node("SplitToSequence", ["x3"], ["q"], axis=0, keepdims=0),
            node("SequenceAt", ["q", "n"], ["y"]),
        ],
        [4],
    ),
    "insert": (
        [
            node("SequenceEmpty", [], ["e"]),
            node("SequenceInsert", ["e", "x"], ["q"]),
            node("SequenceInsert", ["q", "x2", "zero"], ["r"]),
            node("SequenceAt", ["r", "zero"], ["y"]),
        ],
        [7, 4],
    ),
    "erase": (
        [
            node("SequenceConstruct", ["x", "x2"], ["q"]),
            node("SequenceErase", ["q"], ["r"]),
            node("SequenceAt", ["r", "last"], ["y"]),
        ],
        [5, 4],
    ),
    "length": (
        [
            node("SequenceConstruct", ["x", "x2", "x"], ["q"]),
            node("SequenceLength", ["q"], ["l"]),
            node("Unsqueeze", ["l", "zero1"], ["t"]),
            node("Expand", ["one", "t"], ["y"]),
        ],
        [3],
    ),
    "optional": (
        [
            node("SequenceConstruct", ["x", "x2"], ["q"]),
            node("Optional", ["q"], ["o"]),
            node("OptionalGetElement", ["o"], ["r"]),
            node("ConcatFromSequence", ["r"], ["y"], axis=0),
        ],
        [12, 4],
    ),
}
WEIGHTS = [
    integers("parts", 2, 4, 6),
    *(array(n, v, np.int64) for n, v in (("zero", 0), ("two", 2), ("five", 5), ("last", -1))),
    integers("zero1", 0),
]


@pytest.mark.parametrize("what", OPERATORS)
def test_a_sequence_of_static_tensors(what):
    nodes, shape = OPERATORS[what]
    inputs = [value("x", [5, 4]), value("x2", [7, 4]), value("x3", [12, 4])]
    inputs += [value("n", [], TensorProto.INT64), value("one", [1])]
    graph = read_onnx_model(
        model([*nodes, node("Relu", ["y"], ["z"])], inputs, ["z"], WEIGHTS), "m"
    )
    place = list(graph.op_type).index("Relu")
    assert [n for n in graph.output_shape[place] if n >= 0] == shape


def test_a_sequence_weighs_what_all_its_elements_weigh():
    nodes, _ = OPERATORS["construct and concatenate"]
    inputs = [value("x", [5, 4]), value("x2", [7, 4])]
    graph = read_onnx_model(model(nodes, inputs, ["y"]), "m")
    place = list(graph.op_type).index("SequenceConstruct")
    assert graph.output_bytes[place] == 17 * 4 * 4


def test_an_element_that_is_not_there():
    nodes = [node("SequenceConstruct", ["x", "x"], ["q"]), node("SequenceAt", ["q", "two"], ["y"])]
    with pytest.raises(ReadError, match="the sequence has 2 elements, and none at 2"):
        read_onnx_model(model(nodes, [value("x", [5, 4])], ["y"], WEIGHTS), "m")


@pytest.mark.parametrize("trips", [1, 2, 5])
def test_a_loop_that_appends(trips):
    """ONNX's own example of a list comprehension."""
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go2"]),
            node("Mul", ["x", "x"], ["row"]),
            node("SequenceInsert", ["q", "row"], ["q2"]),
        ],
        "b",
        [value("i", [], 7), value("go", [], 9), onnx.ValueInfoProto(name="q")],
        [value("go2", [], 9), onnx.ValueInfoProto(name="q2")],
    )
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("Loop", ["n", "", "e"], ["all"], body=body, name="loop"),
        node("ConcatFromSequence", ["all"], ["y"], axis=0),
    ]
    weights = [array("n", trips, np.int64)]
    graph = read_onnx_model(model(nodes, [value("x", [5, 4])], ["y"], weights), "m")
    assert list(graph.output_shape[-1]) == [5 * trips, 4]
    assert graph.flops.sum() == 20 * trips


def mapped(operands, results=("r",)):
    """A model that multiplies each element by a weight, and joins all rows."""
    element = [value("e", None), *([value("f", None)] if len(operands) > 1 else [])]
    nodes = [node("MatMul", ["e", "w"], ["p"])]
    nodes += [node("Add", ["p", "f" if len(operands) > 1 else "p"], ["r"])]
    body = helper.make_graph(nodes, "b", element, [value(name, None) for name in results])
    construct = [node("SequenceConstruct", ["x", "x2", "x"], ["q"]),
                 node("SequenceConstruct", ["x", "x"], ["short"])]  # fmt: skip
    nodes = [*construct, node("SequenceMap", operands, ["m"], body=body, name="map")]
    nodes += [node("ConcatFromSequence", ["m"], ["y"], axis=0)]
    inputs = [value("x", [5, 4]), value("x2", [7, 4]), value("one", [1, 4])]
    return model(nodes, inputs, ["y"], [array("w", np.eye(4))])


def test_a_map_over_a_sequence_runs_its_body_for_each_element():
    graph = read_onnx_model(mapped(["q"]), "m")
    rows = 5 + 7 + 5
    assert list(graph.output_shape[-1]) == [rows, 4]
    place = graph.op_type.index("SequenceMap")
    assert graph.flops[place] == rows * (2 * 4 * 4 + 4)
    # Each row is read, multiplied, read twice and written; the weight of 64 bytes is read once.
    assert graph.bytes_accessed[place] == rows * 5 * 16 + 64
    assert graph.weight_bytes[place] == 64


def test_a_map_with_a_tensor_for_all_elements():
    graph = read_onnx_model(mapped(["q", "one"]), "m")
    assert list(graph.output_shape[-1]) == [17, 4]


def test_a_map_over_sequences_of_different_lengths():
    with pytest.raises(
        ReadError, match=r"SequenceMap 'map' .*'short' has 2 elements, and 'q' has 3"
    ):
        read_onnx_model(mapped(["q", "short"]), "m")


def test_the_body_of_a_map_has_its_results():
    with pytest.raises(ReadError, match="results of its body: 2; the operator's own make it 1"):
        read_onnx_model(mapped(["q"], ("r", "p")), "m")


@pytest.mark.parametrize("kind", ["sequence", "optional", "optional sequence"])
def test_an_input_that_is_a_sequence_or_an_optional(kind, tmp_path):
    typed = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    if kind != "optional":
        typed = helper.make_sequence_type_proto(typed)
    if kind != "sequence":
        typed = helper.make_optional_type_proto(typed)
    nodes = []
    if kind != "sequence":
        nodes.append(node("OptionalGetElement", ["q"], ["o"]))
    if kind != "optional":
        nodes.append(node("SequenceAt", ["o" if nodes else "q", "zero"], ["y"]))
    read = nodes[-1].output[0]
    made = model(
        [*nodes, node("Relu", [read], ["z"])],
        [helper.make_value_info("q", typed)],
        ["z"],
        [array("zero", 0, np.int64)],
    )
    onnx.save(made, tmp_path / "m.onnx")
    with pytest.raises(ReadError, match=r"give it with --input 'q=<size>x<size>'"):
        load(tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx", inputs={"q": (3, 4)}).flops.sum() == 12
