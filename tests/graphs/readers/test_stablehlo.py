import jax
import jax.numpy as jnp
import pytest
from jax import lax


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


BAD = [
    ("module @m { func.func foo }", "cannot read this StableHLO text: .*expected"),
    ("module @m {\n  func.func public @main(", "cannot read this StableHLO text"),
    ("module @m {\n}\n", "malformed HLO|cannot read this"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text_quotes_the_parser(refused, text, message):
    refused(text, message)
