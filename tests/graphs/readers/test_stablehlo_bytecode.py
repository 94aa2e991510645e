"""StableHLO in binary is read as its text is: bytecode, portable artifacts, exports of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax._src.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from go_rl.core import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.recognise import Format, recognise

LARGE = jnp.arange(4096.0).reshape(64, 64)


@jax.jit
def network(x, w):
    return jnp.tanh(x @ w) @ LARGE


SIZES = jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 64), jnp.float32)


def _module():
    return network.lower(*SIZES).compiler_ir("stablehlo")


def _artifact():
    return stablehlo.serialize_portable_artifact(_module(), stablehlo.get_minimum_version())


FORMS = {
    "bytecode": lambda: mlir.module_to_bytecode(_module()),
    "portable artifact": _artifact,
    "export": lambda: bytes(export.export(network)(*SIZES).serialize()),
}


@pytest.fixture(params=FORMS)
def path(request, tmp_path):
    path = tmp_path / "network.stablehlo.mlir.bc"
    path.write_bytes(FORMS[request.param]())
    return path


def test_binary_forms_are_read_as_the_text_is(path, tmp_path, in_process):
    text = tmp_path / "network.mlir"
    text.write_text(network.lower(*SIZES).as_text())
    assert recognise(path) is recognise(text) is Format.STABLEHLO
    graph, right = load(path, weights=[1]), load(text, weights=[1])
    assert graph.flops.sum() == right.flops.sum() == 2 * 8 * 16 * 64 + 2 * 8 * 64 * 64
    assert graph.weight_bytes.sum() == right.weight_bytes.sum() == 4 * (16 * 64 + 64 * 64)
    assert graph.op_type == right.op_type


def test_a_damaged_file_is_named(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ReadError, match=r"network.*(cannot read this|not a model)") as error:
        load(path)
    assert "\n" not in str(error.value)


def test_symbolic_sizes_of_an_export(tmp_path, in_process):
    (b,) = export.symbolic_shape("b")
    sizes = jax.ShapeDtypeStruct((b, 16), jnp.float32), SIZES[1]
    path = tmp_path / "network.jax"
    path.write_bytes(export.export(network)(*sizes).serialize())
    with pytest.raises(ReadError, match="is unknown; give it, such as --dim b=8"):
        load(path)
    assert load(path, dims={"b": 3}).flops.sum() == 2 * 3 * 64 * (16 + 64)
