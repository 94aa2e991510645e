"""Small ONNX models that together use most paths of the reader."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
INT = TensorProto.INT64


def _value(name, shape, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def _array(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def _model(nodes, inputs, outputs, weights=(), shapes=(), functions=(), domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights), value_info=list(shapes))
    opsets = [helper.make_opsetid("", 21), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def image_model() -> onnx.ModelProto:
    """Convolutions, pooling and a classifier, with the shape of every tensor in the file."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["a"], "conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["a"], ["r"], "relu"),
        node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", ["p", "t"], ["u"], "up", strides=[2, 2], group=1),
        node("Resize", ["u", "", "s"], ["z"], "resize", mode="linear"),
        node("GlobalAveragePool", ["z"], ["g"], "mean"),
        node("Flatten", ["g"], ["f"], "flat"),
        node("Gemm", ["f", "k", "c"], ["m"], "fc", transB=1),
        node("Softmax", ["m"], ["y"], "soft", axis=-1),
    ]
    shapes = {"a": [1, 4, 4, 4], "r": [1, 4, 4, 4], "p": [1, 4, 2, 2], "u": [1, 2, 4, 4],
              "z": [1, 2, 8, 8], "g": [1, 2, 1, 1], "f": [1, 2], "m": [1, 3]}  # fmt: skip
    weights = [
        _array("w", np.ones((4, 3, 3, 3))), _array("b", np.ones(4)),
        _array("t", np.ones((4, 2, 2, 2))), _array("s", [1, 1, 2, 2]), _array("k", np.ones((3, 2))),
        _array("c", np.ones(3)),
    ]  # fmt: skip
    return _model(
        nodes,
        [_value("x", [1, 3, 8, 8])],
        [_value("y", [1, 3])],
        weights,
        [_value(n, s) for n, s in shapes.items()],
    )


def shape_model() -> onnx.ModelProto:
    """Shape arithmetic, constants and layout; no intermediate shape is stored."""
    nodes = [
        node("Shape", ["x"], ["sh"], "shape"),
        node("Gather", ["sh", "zero"], ["n"], "first", axis=0),
        node("Constant", [], ["minus"], "minus", value_ints=[-1]),
        node("Concat", ["n", "minus"], ["to"], "to", axis=0),
        node("Reshape", ["x", "to"], ["r"], "reshape"),
        node("Range", ["from", "upto", "by"], ["range"], "range"),
        node("Cast", ["range"], ["rangef"], "cast", to=1),
        node("ConstantOfShape", ["size"], ["filled"], "filled", value=_array("v", [2.0])),
        node("Expand", ["filled", "wide"], ["e"], "expand"),
        node("Tile", ["e", "times"], ["t"], "tile"),
        node("Slice", ["t", "zero", "upto1"], ["sl"], "slice"),
        node("MatMul", ["r", "w"], ["m"], "matmul"),
        node("Add", ["m", "rangef"], ["a"], "add"),
        node("Split", ["a"], ["left", "right"], "split", axis=1, num_outputs=2),
        node("NonZero", ["left"], ["nz"], "where"),
        node("TopK", ["right", "one"], ["top", "place"], "top"),
        node("Einsum", ["left", "right"], ["y"], "einsum", equation="ab,cb->ac"),
    ]
    weights = [
        _array("zero", [0], np.int64), _array("one", [1], np.int64), _array("from", 0, np.int64),
        _array("upto", 4, np.int64), _array("by", 1, np.int64), _array("size", [2, 1], np.int64),
        _array("wide", [2, 3], np.int64), _array("times", [1, 2], np.int64),
        _array("upto1", [1], np.int64), _array("w", np.ones((6, 4))),
    ]  # fmt: skip
    outputs = [_value(n, None) for n in ("y", "sl", "place", "top")]
    outputs.append(_value("nz", None, INT))
    return _model(nodes, [_value("x", [2, 3, 2])], outputs, weights)


def control_model() -> onnx.ModelProto:
    """A loop, a scan, and a branch."""
    loop = helper.make_graph(
        [
            node("Identity", ["go"], ["go2"]),
            node("MatMul", ["h", "w"], ["h2"], "inner"),
            node("Identity", ["h2"], ["row"]),
        ],
        "body",
        [_value("i", [], INT), _value("go", [], TensorProto.BOOL), _value("h", [2, 2])],
        [_value("go2", [], TensorProto.BOOL), _value("h2", [2, 2]), _value("row", [2, 2])],
    )
    scan = helper.make_graph(
        [node("Add", ["s", "t"], ["s2"], "plus"), node("Identity", ["s2"], ["out"])],
        "body",
        [_value("s", [2]), _value("t", [2])],
        [_value("s2", [2]), _value("out", [2])],
    )
    branch = [
        helper.make_graph([node(op, ["seq"], ["b"])], op, [], [_value("b", None)])
        for op in ("Neg", "Exp")
    ]
    nodes = [
        node("Loop", ["trips", "yes", "x"], ["last", "seq"], "loop", body=loop),
        node("Scan", ["s0", "rows"], ["sn", "outs"], "scan", body=scan, num_scan_inputs=1),
        node("ReduceSum", ["outs"], ["total"], "sum", keepdims=0),
        node("Greater", ["total", "nought"], ["positive"], "greater"),
        node("If", ["positive"], ["y"], "if", then_branch=branch[0], else_branch=branch[1]),
    ]
    weights = [
        _array("trips", 3, np.int64), _array("yes", True, np.bool_), _array("w", np.eye(2)),
        _array("s0", [0, 0]), _array("nought", 0.0),
    ]  # fmt: skip
    return _model(
        nodes, [_value("x", [2, 2]), _value("rows", [5, 2])], [_value("y", None)], weights
    )


def mixed_model() -> onnx.ModelProto:
    """Recurrence, attention, quantisation, Microsoft operators, a local function, a sparse array,
    an external one and a symbolic dimension."""
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    nodes = [
        node("LSTM", ["x", "w", "r"], ["all", "last"], "lstm", hidden_size=4),
        node("Squeeze", ["all", "one"], ["seq"], "squeeze"),
        node("LayerNormalization", ["seq", "scale"], ["norm"], "norm", axis=-1),
        node("Twice", ["norm"], ["twice"], "twice", domain="local"),
        node("QuantizeLinear", ["twice", "q", "zp"], ["quant"], "q"),
        node("DequantizeLinear", ["quant", "q", "zp"], ["deq"], "dq"),
        node("FusedMatMul", ["deq", "m"], ["fused"], "fused", domain="com.microsoft", transB=1),
        node("Gelu", ["fused"], ["gelu"], "gelu", domain="com.microsoft"),
        node("Add", ["gelu", "sparse"], ["plus"], "plus"),
        node("SequenceConstruct", ["plus", "gelu"], ["list"], "list"),
        node("ConcatFromSequence", ["list"], ["y"], "join", axis=0),
    ]
    far = TensorProto(name="m", data_type=1, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    far.external_data.add(key="location", value="absent.bin")
    weights = [
        _array("w", np.ones((1, 16, 3))), _array("r", np.ones((1, 16, 4))), far,
        _array("one", [1], np.int64), _array("scale", np.ones(4)), _array("q", 0.5),
        _array("zp", 0, np.int8),
    ]  # fmt: skip
    domains = ("com.microsoft", "local")
    inputs, outputs = [_value("x", [5, "batch", 3])], [_value("y", [10, "batch", 4])]
    model = _model(nodes, inputs, outputs, weights, functions=[function], domains=domains)
    values = _array("sparse", [1.0, 2.0])
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, _array("", [[0, 1], [1, 1]], np.int64), [1, 4])
    )
    return model


def counting_model() -> onnx.ModelProto:
    """Loops that a counter ends, slices up to the number of the trip, a map over a sequence."""
    scalars = [_value("i", [], INT), _value("go", [], TensorProto.BOOL), _value("s", [], INT)]
    body = helper.make_graph(
        [
            node("Add", ["s", "two"], ["s2"], "step"),
            node("Less", ["s2", "nine"], ["soon"], "less"),
            node("And", ["soon", "go"], ["go2"], "both"),
            node("Add", ["i", "one"], ["end"], "after"),
            node("Unsqueeze", ["end", "zero"], ["ends"], "ends"),
            node("Slice", ["x", "zero", "ends"], ["part"], "part"),
            node("ReduceSum", ["part"], ["row"], "sum", keepdims=0),
        ],
        "counting",
        scalars,
        [_value("go2", [], TensorProto.BOOL), _value("s2", [], INT), _value("row", None)],
    )
    mapped = helper.make_graph(
        [node("MatMul", ["e", "w"], ["f"], "product")], "mapped", [_value("e", None)],
        [_value("f", None)],
    )  # fmt: skip
    nodes = [
        node("Loop", ["", "", "start"], ["counted", "rows"], "loop", body=body),
        node("SplitToSequence", ["x", "parts"], ["q"], "split", axis=0),
        node("SequenceMap", ["q"], ["m"], "map", body=mapped),
        node("ConcatFromSequence", ["m"], ["y"], "join", axis=0),
    ]
    weights = [_array(name, number, np.int64) for name, number in
               (("two", 2), ("nine", 9), ("one", 1), ("start", 0))]  # fmt: skip
    weights += [_array("zero", [0], np.int64), _array("parts", [2, 6], np.int64)]
    weights += [_array("w", np.ones((4, 3)))]
    return _model(nodes, [_value("x", ["4*batch", 4])], [_value("rows", None), _value("y", None)],
                  weights)  # fmt: skip


MODELS = (image_model, shape_model, control_model, mixed_model, counting_model)
DIMS = {"batch": 2}
"""Options that `mixed_model` needs."""
