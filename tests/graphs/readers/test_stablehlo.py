import jax
import jax.numpy as jnp
import pytest
from jax import lax

from go_rl.core import ReadError, UnknownOperatorError
from go_rl.graphs.readers import load


def _model(x, w):
    y = jax.scipy.special.erf(x @ w)
    values, places = lax.top_k(y, 3)
    noise = jax.random.uniform(jax.random.key(0), (4,))
    picked = lax.switch(places[0, 0] % 2, [jnp.sin, lambda a: a @ a.T @ a], y)
    return values.sum() + noise.sum(), picked


def _text(**options):
    x, w = jnp.ones((8, 16)), jnp.ones((16, 8))
    return jax.jit(_model).lower(x, w).as_text(**options)


def _write(tmp_path, text):
    path = tmp_path / "program.json"
    path.write_text(text)
    return path


def test_what_jax_prints_is_read(tmp_path):
    graph = load(_write(tmp_path, _text()))
    assert graph.name == "jit__model"
    assert graph.op_type.count("dot") == 3, "the dearer branch is kept"
    assert graph.op_type.count("erf") == 1
    assert graph.op_type.count("topk") == 1
    assert "while" not in graph.op_type


def test_locations_survive_when_printed(tmp_path, in_process):
    graph = load(_write(tmp_path, _text(debug_info=True)))
    dot = graph.op_type.index("dot")
    assert "dot_general" in graph.source[dot]
    assert "test_stablehlo.py:" in graph.source[dot]


def test_the_generic_form(tmp_path, in_process):
    text = """"builtin.module"() ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
      ^bb0(%arg0: tensor<4xf32>):
        %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%0) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()"""
    graph = load(_write(tmp_path, text))
    assert graph.op_type == ("parameter", "add")
    assert graph.flops.sum() == 4


BAD = [
    ("module @m { func.func foo }", "cannot read this StableHLO text: .*expected"),
    ("module @m {\n  func.func public @main(", "cannot read this StableHLO text"),
    ("module @m {\n}\n", "malformed HLO|cannot read this"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text_quotes_the_parser(tmp_path, text, message):
    path = _write(tmp_path, text)
    with pytest.raises(ReadError, match=message) as error:
        load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_custom_calls(tmp_path, in_process):
    text = """module @m {
      func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.custom_call @mystery(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"""
    path = _write(tmp_path, text)
    with pytest.raises(UnknownOperatorError, match="custom call 'mystery'"):
        load(path)
    assert load(path, unknown="bytes").bytes_accessed.sum() == 32
