"""What protobuf lets through and no reader can use is refused where the file enters."""

from __future__ import annotations

import os

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.onnx.load import load_header
from go_rl.graphs.readers.onnx.reader import read_onnx_model

node = helper.make_node
X, Y = [value("x", [2, 3])], [value("y", [2, 3])]


def simple():
    return model([node("Softmax", ["x"], ["y"], name="soft", axis=1)], X, Y, [array("w", [1.0])])


def changed(change):
    result = simple()
    change(result.graph, result.graph.node[0])
    return result


def branch(name, *results):
    return helper.make_graph(
        [node("Neg", ["x"], ["b"])], name, [], [value(r, [2, 3]) for r in results]
    )


def holding(op, inputs, outputs, **attributes):
    return model([node(op, inputs, outputs, name="it", **attributes)], X, [value("y", [2, 3])])


ONE = branch("one", "b")
BODY = helper.make_graph(
    [node("Neg", ["h"], ["h2"]), node("Identity", ["go"], ["go2"])], "body",
    [value("i", [], 7), value("go", [], 9), value("h", [2, 3])],
    [value("go2", [], 9), value("h2", [2, 3])],
)  # fmt: skip
BROKEN = {
    "an attribute twice": (
        changed(lambda g, n: n.attribute.append(n.attribute[0])), r"'soft'.*'axis' appears twice"),
    "an attribute of no type": (
        changed(lambda g, n: setattr(n.attribute[0], "name", "go_rl_branch")), "go_rl's own"),
    "a tensor attribute without a tensor": (
        changed(lambda g, n: setattr(n.attribute[0], "type", 4)), "'axis' is a t by its type"),
    "an attribute of another type": (
        changed(lambda g, n: n.attribute[0].CopyFrom(helper.make_attribute("axis", "one"))),
        "Softmax 'soft'.*do not fit the operator"),
    "no operator": (changed(lambda g, n: n.ClearField("op_type")), "'soft' has no op_type"),
    "no result": (changed(lambda g, n: n.ClearField("output")), "'soft'.*has no result"),
    "no operand": (changed(lambda g, n: n.ClearField("input")), "'soft'"),
    "a result that nothing defines": (
        changed(lambda g, n: setattr(g.output[0], "name", "yy")), "nothing defines .* 'yy'"),
    "a weight of a negative size": (
        changed(lambda g, n: g.initializer[0].dims.append(-1)), r"'w' has shape \[1, -1\]"),
    "a weight beyond all machines": (
        changed(lambda g, n: g.initializer[0].dims.extend([2**40, 2**40])), "no tensor can have"),
    "a weight of many dimensions": (
        changed(lambda g, n: g.initializer[0].dims.extend([1] * 70)), "71 dimensions; at most 64"),
    "a weight of no type": (
        changed(lambda g, n: setattr(g.initializer[0], "data_type", 99)), "element type 99"),
    "a Constant of two values": (
        model([node("Constant", [], ["y"], value_int=1, value_float=2.0)], [], ["y"]),
        "a Constant has one attribute"),
    "an If without a branch": (
        holding("If", ["x"], ["y"], then_branch=ONE), "'it'.*no graph 'else_branch'"),
    "an If whose branches disagree": (
        holding("If", ["x"], ["y"], then_branch=ONE, else_branch=branch("e", "b", "b")),
        "results of else_branch: 2; the operator's own make it 1"),
    "a Loop without a body": (holding("Loop", ["", "", "x"], ["y"]), "no graph 'body'"),
    "a Loop of too few operands": (holding("Loop", ["x"], ["y"], body=BODY), "first state"),
    "a Loop of too many results": (
        holding("Loop", ["", "", "x"], ["y", "z"], body=BODY), "has 2 results; 3 are wanted"),
    "a Scan of nothing": (
        holding("Scan", ["x"], ["y"], body=BODY, num_scan_inputs=2), "num_scan_inputs is 2 of 1"),
}  # fmt: skip


@pytest.mark.parametrize(("broken", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_named(broken, message):
    with pytest.raises(ReadError, match=message):
        read_onnx_model(broken, "m.onnx")


@pytest.mark.parametrize("word", [b"soft", b"axis"])
def test_names_that_are_no_text(tmp_path, word):
    path = tmp_path / "m.onnx"
    path.write_bytes(simple().SerializeToString().replace(word, b"\xff" + word[1:]))
    with pytest.raises(ReadError, match=r"m\.onnx: .*graph\.node\[0\].*which is not UTF-8"):
        load(path)


def test_operator_sets_of_no_version():
    old = simple()
    old.opset_import[0].version = 0
    with pytest.raises(ReadError, match=r"'ai\.onnx' has version 0; versions begin at 1"):
        read_onnx_model(old, "m")


HUGE = 2**31


@pytest.mark.parametrize(
    ("nodes", "weights", "flops"),
    [
        # Half of the kernel meets the input, on average, at each of 2^33 places.
        ([node("Conv", ["x", "w"], ["y"])], [header("w", [1, 1, HUGE])], 2.0 * HUGE * (4 * HUGE)),
        ([node("ConstantOfShape", ["s"], ["a"]), node("Add", ["x", "a"], ["y"])],
         [array("s", [1, 1, 4 * HUGE], "int64")], 4.0 * HUGE),
        ([node("Expand", ["one", "s"], ["a"]), node("Add", ["x", "a"], ["y"])],
         [array("s", [1, 1, 4 * HUGE], "int64"), array("one", [1.0])], 4.0 * HUGE),
        ([node("Tile", ["one", "s"], ["a"]), node("Add", ["x", "a"], ["y"])],
         [array("s", [4 * HUGE], "int64"), array("one", [1.0])], 4.0 * HUGE),
    ],
)  # fmt: skip
def test_a_small_file_may_mean_a_large_model(nodes, weights, flops):
    """What needs 16 to 128 GiB where every element, or every tap of a window, is looked at."""
    outputs = 3 * HUGE + 1 if nodes[0].op_type == "Conv" else 4 * HUGE
    shapes = [value("a", [1, 1, 4 * HUGE])]
    shapes[0].type.tensor_type.shape.dim[0].dim_value = 1
    ends = [value("x", [1, 1, 4 * HUGE])], [value("y", [1, 1, outputs])]
    graph = read_onnx_model(model(nodes, *ends, weights, shapes=shapes), "m")
    wanted = 2.0 * HUGE * outputs if nodes[0].op_type == "Conv" else flops
    assert graph.flops.sum() == wanted


def test_constants_are_not_folded_into_large_ones():
    """Three columns of 4,000 broadcast to 64 G elements."""
    shapes = {"a": [4000, 1, 1], "b": [1, 4000, 1], "c": [1, 1, 4000]}
    fill = [node("ConstantOfShape", [f"s{n}"], [n]) for n in shapes]
    nodes = [*fill, node("Cast", ["a"], ["t"], to=9), node("Where", ["t", "b", "c"], ["w"])]
    nodes.append(node("Add", ["w", "x"], ["y"]))
    sizes = [array(f"s{n}", s, "int64") for n, s in shapes.items()]
    types = [value(n, s) for n, s in shapes.items()]
    types += [value("t", shapes["a"], TensorProto.BOOL), value("w", [4000] * 3)]
    ends = [value("x", [1])], [value("y", [4000] * 3)]
    graph = read_onnx_model(model(nodes, *ends, sizes, shapes=types), "m")
    assert graph.flops.sum() == 4000**3 + 4000**3  # the selection and the sum


def test_many_nodes_of_one_name_in_a_branch():
    """Told apart by a number, without a search from one for each."""
    chain = [node("Neg", ["x" if i == 0 else f"t{i - 1}"], [f"t{i}"], name="n") for i in range(300)]
    types = [value(f"t{i}", [2]) for i in range(300)]
    graphs = {
        "then_branch": helper.make_graph(chain, "t", [], [types[-1]], value_info=types[:-1]),
        "else_branch": helper.make_graph(
            [node("Identity", ["x"], ["e"])], "e", [], [value("e", [2])]
        ),
    }
    inputs = [value("x", [2]), value("c", [1], TensorProto.BOOL)]
    whole = model([node("If", ["c"], ["y"], name="if", **graphs)], inputs, [value("y", [2])])
    names = read_onnx_model(whole, "m").names
    assert "if/n" in names
    assert "if/n#300" in names


def test_of_an_external_file_only_the_array_itself_is_read(tmp_path):
    """The file may hold much more, and say what ONNX does not know."""
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    whole = model(nodes, X, [value("y", [3, 2])], [array("s", [3, 2], "int64")])
    shape = whole.graph.initializer[0]
    (tmp_path / "data.bin").write_bytes(shape.raw_data + bytes(100))
    shape.ClearField("raw_data")
    shape.data_location = TensorProto.EXTERNAL
    shape.external_data.add(key="location", value="data.bin")
    shape.external_data.add(key="odd", value="1")
    (tmp_path / "m.onnx").write_bytes(whole.SerializeToString())
    light = load_header(tmp_path / "m.onnx")
    assert light.graph.initializer[0].raw_data == (tmp_path / "data.bin").read_bytes()[:16]


def external_shape(folder, *, length, location="data.bin"):
    """A model whose Reshape has its shape, [3, 2], in another file; ``length`` is what it says."""
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    whole = model(nodes, X, [value("y", [3, 2])], [array("s", [3, 2], "int64")])
    shape = whole.graph.initializer[0]
    shape.ClearField("raw_data")
    shape.data_location = TensorProto.EXTERNAL
    shape.external_data.add(key="location", value=location)
    shape.external_data.add(key="length", value=str(length))
    (folder / "m.onnx").write_bytes(whole.SerializeToString())
    return folder / "m.onnx"


def test_a_length_of_gigabytes_is_not_read(tmp_path):
    with (tmp_path / "data.bin").open("wb") as file:
        file.write(np.array([3, 2], np.int64).tobytes())
        file.truncate(6 << 30)  # sparse: it takes no room
    path = external_shape(tmp_path, length=6 << 30)
    light = load_header(path)
    assert light.graph.initializer[0].raw_data == np.array([3, 2], np.int64).tobytes()


def test_external_data_in_a_pipe_are_absent(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    light = load_header(external_shape(tmp_path, length=16, location="pipe"))
    assert light.graph.initializer[0].data_location == TensorProto.EXTERNAL
