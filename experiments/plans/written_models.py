"""ONNX models written node by node: control flow, local functions in functions, sequences of
thousands of operators, and files with more weights than a machine likes to hold twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 16
STEPS = 5
OPSETS = (helper.make_opsetid("", 21), helper.make_opsetid("own", 1))
PIECE = 1 << 26
"""Random bytes written at once."""


def _value(name: str, *shape: int | str, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def _rows(name: str) -> onnx.ValueInfoProto:
    return _value(name, "batch", WIDTH)


def _stored(name: str, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(array, name)


def _weights(*names: str) -> list[onnx.TensorProto]:
    rng = np.random.default_rng(0)
    return [_stored(name, rng.normal(0, 0.3, (WIDTH, WIDTH)).astype(np.float32)) for name in names]


def _node(op: str, reads: str, makes: str, domain: str = "", **attributes: Any):
    return helper.make_node(
        op, reads.split(), makes.split(), name=makes.split()[0], domain=domain, **attributes
    )


def _save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    stored: Sequence[onnx.TensorProto],
    functions: Sequence[onnx.FunctionProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
) -> None:
    results = outputs or [_rows("y")]
    graph = helper.make_graph(nodes, path.stem, [_rows("x")], results, list(stored))
    opsets = OPSETS if functions else OPSETS[:1]
    model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())


def loop(path: Path) -> None:
    """A recurrence of `Loop`, whose body reads weights from outside, between two products."""
    body = helper.make_graph(
        [
            _node("MatMul", "state inner", "moved"),
            _node("Tanh", "moved", "next"),
            _node("Identity", "go", "goes"),
            _node("ReduceSum", "next", "seen", keepdims=0),
        ],
        "body",
        [_value("i", element=TensorProto.INT64), _value("go", element=TensorProto.BOOL),
         _rows("state")],
        [_value("goes", element=TensorProto.BOOL), _rows("next"), _value("seen")],
    )  # fmt: skip
    nodes = [
        _node("MatMul", "x first", "a"),
        _node("Loop", "trips yes a", "b sums", body=body),
        _node("MatMul", "b last", "c"),
        _node("ReduceMean", "sums", "mean", keepdims=0),
        _node("Add", "c mean", "y"),
    ]
    settings = [_stored("trips", np.array(STEPS)), _stored("yes", np.array(True))]
    _save(path, nodes, [*_weights("first", "inner", "last"), *settings])


def scan(path: Path) -> None:
    """A sum that `Scan` carries along the features of every row."""
    body = helper.make_graph(
        [_node("Add", "carried column", "sum"), _node("Tanh", "sum", "seen")], "body",
        [_value("carried", "batch"), _value("column", "batch")],
        [_value("sum", "batch"), _value("seen", "batch")],
    )  # fmt: skip
    nodes = [
        _node("MatMul", "x first", "a"),
        _node("ReduceMean", "a axis", "start", keepdims=0),
        _node("Scan", "start a", "end all", body=body, num_scan_inputs=1, scan_input_axes=[1],
              scan_output_axes=[1]),
        _node("MatMul", "all last", "b"),
        _node("Unsqueeze", "end axis", "column_end"),
        _node("Add", "b column_end", "y"),
    ]  # fmt: skip
    _save(path, nodes, [*_weights("first", "last"), _stored("axis", np.array([1]))])


def branches(path: Path) -> None:
    """An `If` in an `If`; both capture what was computed outside."""

    def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph(nodes, name, [], [_rows(nodes[-1].output[0])])

    inner = _node(
        "If", "small", "chosen",
        then_branch=branch("low", _node("Neg", "a", "low_y")),
        else_branch=branch("high", _node("MatMul", "a inner", "high_y")),
    )  # fmt: skip
    nodes = [
        _node("MatMul", "x first", "a"),
        _node("ReduceSum", "a", "sum", keepdims=0),
        _node("Greater", "sum zero", "large"),
        _node("Not", "large", "small"),
        _node("If", "large", "b", then_branch=branch("up", _node("Relu", "a", "up_y")),
              else_branch=branch("down", inner)),
        _node("MatMul", "b last", "y"),
    ]  # fmt: skip
    zero = _stored("zero", np.array(0, np.float32))
    _save(path, nodes, [*_weights("first", "inner", "last"), zero])


def functions(path: Path) -> None:
    """Functions of functions, one with an attribute, each called twice."""

    def function(
        name: str, reads: str, nodes: Sequence[onnx.NodeProto], *attributes: str
    ) -> onnx.FunctionProto:
        return helper.make_function("own", name, reads.split(), ["c"], nodes, OPSETS, attributes)

    steep = _node("LeakyRelu", "a", "c")
    steep.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    dense = [_node("MatMul", "a b", "m"), _node("Steep", "m", "c", "own", slope=0.1)]
    block = [_node("Dense", "a b", "m", "own"), _node("Dense", "m b", "n", "own"),
             _node("Add", "n a", "c")]  # fmt: skip
    nodes = [_node("Block", "x first", "h", "own"), _node("Block", "h last", "y", "own")]
    made = [function("Steep", "a", [steep], "slope"), function("Dense", "a b", dense),
            function("Block", "a b", block)]  # fmt: skip
    _save(path, nodes, _weights("first", "last"), made)


def long_chain(path: Path, operators: int) -> None:
    """Residual blocks of four operators, so many operators in all."""
    nodes, before = [], "x"
    for i in range(operators // 4):
        made = "y" if i == operators // 4 - 1 else f"sum{i}"
        nodes += [_node("MatMul", f"{before} w{i % 50}", f"product{i}"),
                  _node("Add", f"product{i} b", f"biased{i}"), _node("Tanh", f"biased{i}", f"t{i}"),
                  _node("Add", f"t{i} {before}", made)]  # fmt: skip
        before = made
    bias = _stored("b", np.zeros(WIDTH, np.float32))
    _save(path, nodes, [*_weights(*(f"w{i}" for i in range(50))), bias])


def large(path: Path, gigabytes: float, layers: int = 24) -> None:
    """A chain of products whose weights lie in another file, drawn piece by piece."""
    beside = path.with_name(path.name + ".data")
    width = int((gigabytes * 1e9 / 4 / layers) ** 0.5)
    size, rng = 4 * width * width, np.random.default_rng(0)
    stored = []
    with beside.open("wb") as file:
        for i in range(layers):
            tensor = onnx.TensorProto(
                name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width],
                data_location=TensorProto.EXTERNAL,
            )  # fmt: skip
            place = {"location": beside.name, "offset": file.tell(), "length": size}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            stored.append(tensor)
            for begin in range(0, size, PIECE):
                count = min(PIECE, size - begin) // 4
                drawn = rng.standard_normal(count, np.float32)
                file.write((drawn / np.float32(width**0.5)).tobytes())
    ends = ["x", *(f"h{i}" for i in range(layers - 1)), "y"]
    nodes = [_node("MatMul", f"{ends[i]} w{i}", ends[i + 1]) for i in range(layers)]
    graph = helper.make_graph(
        nodes, path.stem, [_value("x", 1, width)], [_value("y", 1, width)], stored
    )
    model = helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10)
    path.write_bytes(model.SerializeToString())


CONTROL: dict[str, Callable[[Path], None]] = {
    "loop": loop, "scan": scan, "branches in branches": branches,
    "functions in functions": functions,
}  # fmt: skip
"""Writers by name."""
