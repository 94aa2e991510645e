"""Graphs read from StableHLO, as text and as bytecode."""

import jax
import jax.numpy as jnp
import pytest
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from go_rl.core import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.recognise import Format, recognise


def _model(x, w):
    y = jax.scipy.special.erf(x @ w)
    values, places = lax.top_k(y, 3)
    noise = jax.random.uniform(jax.random.key(0), (4,))
    picked = lax.switch(places[0, 0] % 2, [jnp.sin, lambda a: a @ a.T @ a], y)
    return values.sum() + noise.sum(), picked


def _text(**options):
    x, w = jnp.ones((8, 16)), jnp.ones((16, 8))
    return jax.jit(_model).lower(x, w).as_text(**options)


def test_what_jax_prints_is_read(loaded):
    graph = loaded(_text())
    assert graph.name == "jit__model"
    assert graph.op_type.count("dot") == 3, "the dearer branch is kept"
    assert graph.op_type.count("erf") == 1
    assert graph.op_type.count("topk") == 1
    assert "while" not in graph.op_type


def test_the_generic_form(loaded, in_process):
    text = """"builtin.module"() ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
      ^bb0(%arg0: tensor<4xf32>):
        %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%0) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()"""
    graph = loaded(text)
    assert graph.op_type == ("parameter", "add")
    assert graph.flops.sum() == 4


def test_bad_text_quotes_the_parser(refused):
    refused("module @m { func.func foo }", "cannot read this StableHLO text: .*expected")


def _exported(function, *shapes):
    names = sorted({name for shape in shapes for name in shape if isinstance(name, str)})
    variables = dict(zip(names, export.symbolic_shape(",".join(names)), strict=True))
    arguments = [
        jax.ShapeDtypeStruct([variables.get(size, size) for size in shape], jnp.float32)
        for shape in shapes
    ]
    return export.export(jax.jit(function))(*arguments).mlir_module()


def _both(x, y):
    return jnp.tanh(x @ x.T), y.sum()


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory):
    path = tmp_path_factory.mktemp("dynamic") / "dynamic.mlir"
    path.write_text(_exported(_both, ("b", 4), ("2*c", "b")))
    return path


@pytest.mark.parametrize(
    "dims", [{"b": 8, "c": 3}, {"arg0.0": 8, "arg1.0": 6, "arg1.1": 8}, {"b": 8, "arg1.0": 6}]
)
def test_read_with_sizes_by_name_or_place(dynamic, dims, in_process):
    graph = load(dynamic, dims=dims)
    assert graph.flops.sum() == 2 * 8 * 8 * 4 + (6 * 8 - 1)
    assert graph.meta["dims"] == dims
    parameters = [op == "parameter" for op in graph.op_type]
    assert graph.output_shape[parameters].tolist() == [[8, 4], [6, 8]]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (None, r"size 0 of argument 0, b, is unknown; give it, such as --dim b=8"),
        ({"b": 8}, r"size 0 of argument 1, 2\*c, is unknown; give it, such as --dim c=8"),
        ({"b": 8, "cc": 8}, r"no size of the module is called 'cc'; did you mean 'c'\?.*are b, c"),
    ],
)
def test_what_is_missing_is_named(dynamic, dims, message, in_process):
    with pytest.raises(ReadError, match=message) as error:
        load(dynamic, dims=dims)
    assert "malformed" not in str(error.value)


def test_sizes_that_contradict_each_other_are_refused(dynamic, in_process):
    with pytest.raises(ReadError, match="cannot read this StableHLO text"):
        load(dynamic, dims={"b": 8, "arg1.0": 7})


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
