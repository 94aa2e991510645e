"""Every door says in which element type operators compute."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import go_rl
from go_rl.core import ElementType, OpGraph, OpKind
from go_rl.graphs.readers.jax.reader import trace_jax


def _products(graph: OpGraph) -> list[str]:
    assert graph.element_type is not None
    return [
        ElementType(each).label
        for each, kind in zip(graph.element_type.tolist(), graph.kind.tolist(), strict=True)
        if kind in (OpKind.MATMUL, OpKind.CONVOLUTION)
    ]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "float8_e4m3fn", "int8"])
def test_functions_and_their_programs(name, tmp_path):
    def product(x, y):
        return jax.lax.dot_general(
            x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32
        )

    dtype = jnp.dtype(name)
    given = [jax.ShapeDtypeStruct((8, 8), dtype)] * 2
    label = "float8" if name.startswith("float8") else name
    assert _products(trace_jax(product, *given)) == [label]
    lowered = jax.jit(product).lower(*given)
    for file, dialect in (("m.hlo", "hlo"), ("m.stablehlo.mlir", "stablehlo")):
        (tmp_path / file).write_text(lowered.as_text(dialect))
        assert _products(go_rl.load(tmp_path / file)) == [label], file


def _saved(tmp_path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("element", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT32"])
def test_onnx_products_have_the_type_of_their_operands(element, tmp_path):
    number = TensorProto.DataType.Value(element)
    info = [helper.make_tensor_value_info(name, number, (8, 8)) for name in "xyz"]
    path = _saved(tmp_path, [helper.make_node("MatMul", ["x", "y"], ["z"])], info[:2], info[2:])
    label = {"FLOAT": "float32", "DOUBLE": "float64"}.get(element, element.lower())
    assert _products(go_rl.load(path)) == [label]


@pytest.mark.parametrize(("quantised", "label"), [(True, "int8"), (False, "float32")])
def test_a_product_between_dequantised_tensors_is_one_of_whole_numbers(quantised, label, tmp_path):
    """A weight alone that is stored in 8 bits is widened before the product."""
    scale = helper.make_tensor("s", TensorProto.FLOAT, (), [0.1])
    zero = helper.make_tensor("z", TensorProto.INT8, (), [0])
    matrix = np.ones((8, 8), np.int8)
    weight = helper.make_tensor("w", TensorProto.INT8, (8, 8), matrix.tobytes(), raw=True)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wf"])]
    if quantised:
        nodes += [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
            helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
        ]
    nodes.append(helper.make_node("MatMul", ["xf" if quantised else "x", "wf"], ["y"]))
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (8, 8)) for name in "xy"]
    path = _saved(tmp_path, nodes, info[:1], info[1:], [scale, zero, weight])
    assert _products(go_rl.load(path)) == [label]


def test_types_are_saved_with_a_graph(tmp_path):
    half = jax.ShapeDtypeStruct((8, 8), jnp.bfloat16)
    graph = trace_jax(lambda x: jnp.tanh(x @ x), half)
    go_rl_file = tmp_path / "g.npz"
    from go_rl.api.load import save_graph

    save_graph(graph, go_rl_file)
    found = go_rl.load(go_rl_file)
    assert found.digest == graph.digest
    assert found.element_type is not None
    assert found.element_type.tolist() == [ElementType.BFLOAT16] * 3
