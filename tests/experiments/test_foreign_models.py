"""Models are read as their refusals advise, and derived ones compared with their sources."""

from __future__ import annotations

from onnx import TensorProto, helper

from experiments.readers.foreign_models import (
    page,
    read_as_advised,
    row_of,
)


def write(path, shape, nodes):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    return path


def test_the_advice_is_followed_until_the_model_is_read(tmp_path):
    twist = helper.make_node("Twist", ["x"], ["y"], domain="own")
    reading = read_as_advised(write(tmp_path / "m.onnx", ["n", 3], [twist]))
    assert reading.graph is not None
    assert reading.options == ("--dim n=2", "--unknown bytes")
    assert len(reading.refusals) == 2
    row = row_of("m", reading, None)
    assert (row.outcome, row.nodes, row.mflop) == ("read", 2, 0.0)
    assert "own.Twist" in row.notes


def test_a_derived_model_is_compared_with_its_source(tmp_path):
    relu, neg = (helper.make_node(op, [a], [b]) for op, a, b in (("Relu", "x", "z"),
                                                                 ("Neg", "z", "y")))  # fmt: skip
    both = read_as_advised(write(tmp_path / "both.onnx", [2, 3], [relu, neg]))
    one = read_as_advised(
        write(tmp_path / "one.onnx", [2, 3], [helper.make_node("Relu", ["x"], ["y"])])
    )
    row = row_of("transformers_bert_script_fused", one, both.graph)
    assert (row.source, row.flop_ratio) == ("transformers_bert_script", 0.5)
    assert "| 0.500 |" in page([row], {"other": "ValueError: no"})
    assert "- other: ValueError: no" in page([row], {"other": "ValueError: no"})
