"""Every door says in which element type operators compute."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from onnx_models import array, read

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import ElementType, OpGraph, OpKind
from go_rl.graphs.readers.jax.reader import trace_jax

pytestmark = pytest.mark.usefixtures("in_process")


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


@pytest.mark.parametrize("element", ["float", "float16", "bfloat16", "double", "int32"])
def test_onnx_products_have_the_type_of_their_operands(element):
    graph = read(f"({element}[8,8] x, {element}[8,8] y) => (z) {{ z = MatMul(x, y) }}")
    assert _products(graph) == [{"float": "float32", "double": "float64"}.get(element, element)]


@pytest.mark.parametrize(("quantised", "label"), [(True, "int8"), (False, "float32")])
def test_a_product_between_dequantised_tensors_is_one_of_whole_numbers(quantised, label):
    """A weight alone that is stored in 8 bits is widened before the product."""
    first = "q = QuantizeLinear(x, s, z) f = DequantizeLinear(q, s, z)" if quantised else ""
    graph = read(
        f"""(float[8,8] x) => (y) <float s = {{0.1}}, int8 z = {{0}}> {{
        v = DequantizeLinear(w, s, z) {first} y = MatMul({"f" if quantised else "x"}, v) }}""",
        array("w", np.ones((8, 8)), np.int8),
    )
    assert _products(graph) == [label]


def test_types_are_saved_with_a_graph(tmp_path):
    half = jax.ShapeDtypeStruct((8, 8), jnp.bfloat16)
    graph = trace_jax(lambda x: jnp.tanh(x @ x), half)
    go_rl_file = tmp_path / "g.npz"
    save_graph(graph, go_rl_file)
    found = go_rl.load(go_rl_file)
    assert found.digest == graph.digest
    assert found.element_type is not None
    assert found.element_type.tolist() == [ElementType.BFLOAT16] * 3
