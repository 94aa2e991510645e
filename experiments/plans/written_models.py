"""ONNX models written out: control flow, local functions in functions, sequences of thousands of
operators, and files with more weights than a machine likes to hold twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

WIDTH = 16
STEPS = 5
PIECE = 1 << 26
"""Random bytes written at once."""
LOOP = """
loop (float[batch,16] x) => (float[batch,16] y) {
  a = MatMul(x, first)
  b, sums = Loop(trips, yes, a) <body = body (int64 i, bool go, float[batch,16] state) =>
      (bool goes, float[batch,16] next, float seen) {
    moved = MatMul(state, inner)
    next = Tanh(moved)
    goes = Identity(go)
    seen = ReduceSum <keepdims = 0> (next)
  }>
  c = MatMul(b, last)
  mean = ReduceMean <keepdims = 0> (sums)
  y = Add(c, mean)
}"""
"""A recurrence of `Loop`, whose body reads weights from outside, between two products."""
SCAN = """
scan (float[batch,16] x) => (float[batch,16] y) {
  a = MatMul(x, first)
  start = ReduceMean <keepdims = 0> (a, axis)
  end, all = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
      body = body (float[batch] carried, float[batch] column) =>
      (float[batch] sum, float[batch] seen) {
    sum = Add(carried, column)
    seen = Tanh(sum)
  }> (start, a)
  b = MatMul(all, last)
  column_end = Unsqueeze(end, axis)
  y = Add(b, column_end)
}"""
"""A sum that `Scan` carries along the features of every row."""
BRANCHES = """
branches (float[batch,16] x) => (float[batch,16] y) {
  a = MatMul(x, first)
  sum = ReduceSum <keepdims = 0> (a)
  large = Greater(sum, zero)
  small = Not(large)
  b = If <then_branch = up () => (float[batch,16] up_y) { up_y = Relu(a) },
      else_branch = down () => (float[batch,16] chosen) {
    chosen = If <then_branch = low () => (float[batch,16] low_y) { low_y = Neg(a) },
        else_branch = high () => (float[batch,16] high_y) { high_y = MatMul(a, inner) }> (small)
  }> (large)
  y = MatMul(b, last)
}"""
"""An `If` in an `If`; both capture what was computed outside."""
FUNCTIONS = """
functions (float[batch,16] x) => (float[batch,16] y) {
  h = own.Block(x, first)
  y = own.Block(h, last)
}
<domain: "own", opset_import: ["": 21, "own": 1]>
Steep <slope> (a) => (c) { c = LeakyRelu <alpha: float = @slope> (a) }
<domain: "own", opset_import: ["": 21, "own": 1]>
Dense (a, b) => (c) { m = MatMul(a, b)  c = own.Steep <slope = 0.1> (m) }
<domain: "own", opset_import: ["": 21, "own": 1]>
Block (a, b) => (c) { m = own.Dense(a, b)  n = own.Dense(m, b)  c = Add(n, a) }"""
"""Functions of functions, one with an attribute, each called twice."""


def _stored(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


def _weights(names: Iterable[str]) -> list[TensorProto]:
    rng = np.random.default_rng(0)
    return [_stored(name, rng.normal(0, 0.3, (WIDTH, WIDTH)).astype(np.float32)) for name in names]


def _named(nodes: Iterable[onnx.NodeProto]) -> None:
    """Name operators by their first results, those of bodies and branches too."""
    for node in nodes:
        node.name = node.output[0]
        for attribute in node.attribute:
            _named(attribute.g.node)


def _write(
    text: str, weights: str, further: dict[str, np.ndarray], path: Path,
    apart: Iterable[TensorProto] = (),
) -> None:  # fmt: skip
    """Write a model with random weights, further stored arrays, and arrays in other files."""
    own = ', "own": 1' if "own." in text else ""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21{own}]>{text}')
    for body in (model.graph, *model.functions):
        _named(body.node)
    stored = [*_weights(weights.split()), *(_stored(*each) for each in further.items())]
    model.graph.initializer.extend([*stored, *apart])
    model.graph.name = path.stem
    path.write_bytes(model.SerializeToString())


CONTROL: dict[str, Callable[[Path], None]] = {
    "loop": partial(
        _write, LOOP, "first inner last", {"trips": np.array(STEPS), "yes": np.array(True)}
    ),
    "scan": partial(_write, SCAN, "first last", {"axis": np.array([1])}),
    "branches in branches": partial(
        _write, BRANCHES, "first inner last", {"zero": np.array(0, np.float32)}
    ),
    "functions in functions": partial(_write, FUNCTIONS, "first last", {}),
}
"""Writers by name."""


def long_chain(path: Path, operators: int) -> None:
    """Write residual blocks of four operators, so many operators in all."""
    lines, before = ["chain (float[batch,16] x) => (float[batch,16] y) {"], "x"
    for i in range(operators // 4):
        made = "y" if i == operators // 4 - 1 else f"sum{i}"
        lines += [f"product{i} = MatMul({before}, w{i % 50})", f"biased{i} = Add(product{i}, b)",
                  f"t{i} = Tanh(biased{i})", f"{made} = Add(t{i}, {before})"]  # fmt: skip
        before = made
    names = " ".join(f"w{i}" for i in range(50))
    _write("\n".join([*lines, "}"]), names, {"b": np.zeros(WIDTH, np.float32)}, path)


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
    products = [f"{ends[i + 1]} = MatMul({ends[i]}, w{i})" for i in range(layers)]
    head = f"chain (float[1,{width}] x) => (float[1,{width}] y) {{"
    _write("\n".join([head, *products, "}"]), "", {}, path, stored)
