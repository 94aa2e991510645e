"""Structure of ONNX models, and numbers known while they are read."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import array, header, model, parsed, read, shape_of, value

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.onnx.fold import evaluate
from go_rl.graphs.readers.onnx.load import load_header
from go_rl.graphs.readers.onnx.reader import read_onnx_model

SHAPE = array("s", [3, 2], "int64")


def simple():
    text = "(float[2,3] x) => (float[2,3] y) <float[1] w = {1}> { [soft] y = Softmax<axis = 1>(x) }"
    return parsed(text)


def changed(change):
    result = simple()
    change(result.graph, result.graph.node[0])
    return result


def holding(call):
    return parsed(f"(float[2,3] x) => (float[2,3] y) {{ [it] {call} }}")


ONE = "one () => (float[2,3] b) { b = Neg(x) }"
BODY = """body (int64 i, bool go, float[2,3] h) => (bool go2, float[2,3] h2)
    { h2 = Neg(h) go2 = Identity(go) }"""
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
        parsed("() => (y) { y = Constant<value_int = 1, value_float = 2.0>() }"),
        "a Constant has one attribute"),
    "an If without a branch": (
        holding(f"y = If(x)<then_branch = {ONE}>"), "'it'.*no graph 'else_branch'"),
    "an If whose branches disagree": (
        holding(f"y = If(x)<then_branch = {ONE}, else_branch = e () => (float[2,3] b, float[2,3] c)"
                " { b = Neg(x) }>"), "results of else_branch: 2; the operator's own make it 1"),
    "a Loop without a body": (holding("y = Loop(, , x)"), "no graph 'body'"),
    "a Loop of too few operands": (holding(f"y = Loop(x)<body = {BODY}>"), "first state"),
    "a Loop of too many results": (
        holding(f"y, z = Loop(, , x)<body = {BODY}>"), "has 2 results; 3 are wanted"),
    "a Scan of nothing": (
        holding(f"y = Scan(x)<body = {BODY}, num_scan_inputs = 2>"), "num_scan_inputs is 2 of 1"),
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


HUGE = 2**31


@pytest.mark.parametrize(
    ("nodes", "outputs", "flops"),
    [
        # Half of the kernel meets the input, on average, at each of 2^33 places.
        ("y = Conv(x, w)", 3 * HUGE + 1, 2.0 * HUGE * (3 * HUGE + 1)),
        ("a = ConstantOfShape(s) y = Add(x, a)", 4 * HUGE, 4.0 * HUGE),
        ("a = Expand(one, s) y = Add(x, a)", 4 * HUGE, 4.0 * HUGE),
        ("a = Tile(one, s) y = Add(x, a)", 4 * HUGE, 4.0 * HUGE),
    ],
)
def test_a_small_file_may_mean_a_large_model(nodes, outputs, flops):
    """What needs 16 to 128 GiB where every element, or every tap of a window, is looked at."""
    text = f"""(float[1,1,{4 * HUGE}] x) => (float[1,1,{outputs}] y) <float[1,1,{4 * HUGE}] a,
        int64[3] s = {{1, 1, {4 * HUGE}}}, float[1,1,1] one = {{1}}> {{ {nodes} }}"""
    assert read(text, header("w", [1, 1, HUGE])).flops.sum() == flops


def external_shape(folder, *, location="data.bin", **entries):
    """A model whose Reshape has its shape in another file, of which it says ``entries``."""
    whole = parsed("(float[2,3] x) => (float[3,2] y) { y = Reshape(x, s) }", SHAPE)
    shape = whole.graph.initializer[0]
    shape.ClearField("raw_data")
    shape.data_location = TensorProto.EXTERNAL
    for key, said in {"location": location, **entries}.items():
        shape.external_data.add(key=key, value=str(said))
    (folder / "m.onnx").write_bytes(whole.SerializeToString())
    return load_header(folder / "m.onnx").graph.initializer[0]


@pytest.mark.parametrize("size", [116, 6 << 30])
def test_of_an_external_file_only_the_array_itself_is_read(tmp_path, size):
    """The file may hold much more, gigabytes even, and say what ONNX does not know."""
    with (tmp_path / "data.bin").open("wb") as file:
        file.write(SHAPE.raw_data)
        file.truncate(size)  # sparse: it takes no room
    assert external_shape(tmp_path, length=size, odd=1).raw_data == SHAPE.raw_data


node = helper.make_node


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 21])
def test_shape_arithmetic_of_every_operator_set(opset, in_process):
    """A reshape to [batch, -1] as exporters write it."""
    unsqueezed = "Unsqueeze<axes = [0]>(d)" if opset < 13 else "Unsqueeze(d, axes)"
    graph = read(
        f"""(float[batch,3,4] x) => (z) <int64 zero = {{0}}, int64[1] rest = {{-1}},
        int64[1] axes = {{0}}> {{ s = Shape(x) d = Gather<axis = 0>(s, zero) u = {unsqueezed}
        t = Concat<axis = 0>(u, rest) y = Reshape(x, t) z = Relu(y) }}""",
        opset=opset,
        batch=2,
    )
    assert set(graph.names) == {"x", "z"}
    assert shape_of(graph, "z") == [2, 12]
    assert (graph.flops.sum(), graph.weight_bytes.sum()) == (24, 0)


def ints(*numbers):
    return np.array(numbers, np.int64)


def floats(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("op", "opset", "operands", "attributes", "right"),
    [
        ("Unsqueeze", 1, [np.array(3)], {"axes": [0]}, [3]),
        ("Unsqueeze", 13, [np.array(3), ints(0)], {}, [3]),
        ("Squeeze", 12, [ints(3)], {"axes": [0]}, 3),
        ("Squeeze", 13, [ints(3), ints(0)], {}, 3),
        ("Clip", 6, [floats(-1, 9)], {"min": 0.0, "max": 4.0}, [0, 4]),
        ("Clip", 11, [floats(-1, 9), np.array(0, np.float32), np.array(4, np.float32)], {}, [0, 4]),
        ("Slice", 1, [ints(5, 6, 7)], {"starts": [1], "ends": [3]}, [6, 7]),
        ("Slice", 10, [ints(5, 6, 7), ints(1), ints(3)], {}, [6, 7]),
        ("ReduceSum", 11, [ints(5, 6)], {"axes": [0], "keepdims": 0}, 11),
        ("ReduceSum", 13, [ints(5, 6), ints(0)], {"keepdims": 0}, 11),
        ("ReduceMax", 12, [ints(5, 6)], {"axes": [0], "keepdims": 0}, 6),
        ("ReduceProd", 18, [ints(5, 6), ints(0)], {"keepdims": 0}, 30),
    ],
)
def test_an_operator_is_evaluated_by_the_file_s_operator_set(
    op, opset, operands, attributes, right
):
    names = [f"x{i}" for i in range(len(operands))]
    found = evaluate(node(op, names, ["y"], **attributes), operands, {"": opset})
    assert not isinstance(found, str), found
    np.testing.assert_array_equal(found[0], right)


REFUSALS = {
    "an input": (
        "(float[2,6] x, int64[2] t) => (y) { [r] y = Reshape(x, t) }",
        r"Reshape 'r' .*: the value of operand 1, 't', is not known: it follows from the values of "
        r"input 't', which are not given; guess",
    ),
    "an input of one element": (
        "(float[1] x, int64[1] t) => (y) { y = Expand(x, t) }",
        r"input 't', which are not given; give it with --dim 't.value=<value>', or guess",
    ),
    "an operator that raises": (
        "(float[2,6] x) => (y) <int64[1] a = {3}, int64[1] b = {4}> { [g] t = Gather(a, b) "
        "y = Reshape(x, t) }",
        r"operand 1, 't', is not known: Gather 'g' \(graph.node\[0\]\) cannot be evaluated \(Ind",
    ),
    "an operator that is not evaluated": (
        "(float[2,6] x) => (y) <float[2] a = {1, 2}> { [s] f = Selu(a) y = Resize(x, , f) }",
        r"operand 2, 'f', is not known: Selu 's' \(graph.node\[0\]\) is none of the operators that",
    ),
    "a weight without data": (
        "(float[2,6] x) => (y) { y = Reshape(x, w) }",
        r"operand 1, 'w', is not known: 'w' is in the file without its data",
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_says_what_is_known_to_fail(why, in_process):
    text, message = REFUSALS[why]
    with pytest.raises(ReadError, match=message) as refused:
        read(text, header("w", [2], TensorProto.INT64))
    assert "depends on data" not in str(refused.value)


@pytest.mark.parametrize("place", ["initializer", "Constant", "branch"])
def test_data_outside_of_the_file(place, tmp_path, in_process):
    shape = array("t", [6, 4], np.int64)
    held = [node("Constant", [], ["t"], value=shape)] if place == "Constant" else []
    reshape = [*held, node("Reshape", ["x", "t"], ["y"])]
    weights = [shape] if place != "Constant" else []
    if place == "branch":
        branch = helper.make_graph(reshape, "b", [], [onnx.ValueInfoProto(name="y")], weights)
        other = helper.make_graph(
            [node("Identity", ["x"], ["z"])], "o", [], [onnx.ValueInfoProto(name="z")]
        )
        reshape = [node("If", ["c"], ["y"], then_branch=branch, else_branch=other)]
        weights = [array("c", True, np.bool_)]
    made = model([*reshape, node("Relu", ["y"], ["r"])], [value("x", [2, 3, 4])], ["r"], weights)
    path, outside = tmp_path / "m.onnx", {"location": "m.bin", "save_as_external_data": True}
    onnx.save(made, path, **outside, size_threshold=0, convert_attribute=True)
    assert list(load(path).output_shape[-1][:2]) == [6, 4]
    (tmp_path / "m.bin").unlink()
    missing = "is stored outside of the model, in 'm.bin', which cannot be read"
    if place == "branch":  # the condition is in that file, too, and the other branch can be read
        notes = load(path).meta["notes"]
        assert missing in notes[0]
        assert "else_branch is counted" in notes[0]
        return
    with pytest.raises(ReadError, match=missing):
        load(path)


def test_a_newer_operator_set_is_read_and_noted():
    newest = onnx.defs.onnx_opset_version()
    later = simple()
    later.opset_import[0].version = newest + 1
    (note,) = read_onnx_model(later, "m").meta["notes"]
    assert f"Operator set {newest + 1} is newer" in note
    assert f"read as in {newest}" in note
