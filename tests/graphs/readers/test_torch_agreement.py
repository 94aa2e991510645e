"""A function read through PyTorch's door and through JAX's: FLOP within 1 %, weights to the byte.

Twelve whole networks against ONNX: ``experiments.readers.torch_readings``.
"""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from torch_programs import Program

from go_rl.graphs.readers.jax.reader import trace_jax

BATCH, WIDTH, HEADS, LENGTH = 4, 256, 8, 64


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def perceptron(params, x):
    first, second, bias = params
    return jax.nn.gelu(x @ first + bias) @ second


def perceptron_program():
    program = Program()
    x = program.input("x", (BATCH, WIDTH))
    first = program.weight("first", (2 * WIDTH, WIDTH))
    second, bias = program.weight("second", (WIDTH, 2 * WIDTH)), program.weight("b", (2 * WIDTH,))
    y = program.op("linear", [(BATCH, 2 * WIDTH)], input=x, weight=first, bias=bias)
    y = program.op("gelu", [(BATCH, 2 * WIDTH)], self=y, approximate="=tanh")
    return program, program.op("linear", [(BATCH, WIDTH)], input=y, weight=second)


def convolution(params, x):
    kernel, scale = params
    y = lax.conv_general_dilated(x, kernel, (2, 2), [(1, 1), (1, 1)])
    return jax.nn.relu(y) * scale


def convolution_program():
    program = Program()
    x = program.input("x", (2, 8, 32, 32))
    kernel, scale = program.weight("k", (16, 8, 3, 3)), program.weight("s", (1, 16, 1, 1))
    y = program.op(
        "conv2d", [(2, 16, 16, 16)], input=x, weight=kernel, stride=[2, 2], padding=[1, 1]
    )
    y = program.op("relu", [(2, 16, 16, 16)], self=y)
    return program, program.op("mul.Tensor", [(2, 16, 16, 16)], self=y, other=scale)


def attention(params, x):
    (joined, out) = params
    q, k, v = jnp.split((x @ joined).reshape(BATCH, LENGTH, 3 * HEADS, -1), 3, 2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.125
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(BATCH, LENGTH, WIDTH) @ out


def attention_program():
    program = Program()
    x = program.input("x", (BATCH, LENGTH, WIDTH))
    joined, out = program.weight("j", (3 * WIDTH, WIDTH)), program.weight("o", (WIDTH, WIDTH))
    y = program.op("linear", [(BATCH, LENGTH, 3 * WIDTH)], input=x, weight=joined)
    third, heads = (BATCH, LENGTH, WIDTH), (BATCH, HEADS, LENGTH, WIDTH // HEADS)
    program.op("chunk", [third] * 3, self=y, chunks=3, dim=-1)
    q, k, v = (program.op("view", [heads], self=f"v1_{i}", size=list(heads)) for i in range(3))
    y = program.op("scaled_dot_product_attention", [heads], query=q, key=k, value=v)
    y = program.op("reshape", [third], self=y, shape=list(third))
    return program, program.op("linear", [third], input=y, weight=out)


def normalised(params, x):
    scale, bias = params
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.square(centred).mean(-1, keepdims=True)
    return jax.nn.softmax(centred * lax.rsqrt(variance + 1e-5) * scale + bias)


def normalised_program():
    program = Program()
    x = program.input("x", (BATCH, WIDTH))
    scale, bias = program.weight("s", (WIDTH,)), program.weight("b", (WIDTH,))
    y = program.op(
        "layer_norm", [(BATCH, WIDTH)], input=x, normalized_shape=[WIDTH], weight=scale, bias=bias
    )
    return program, program.op("softmax", [(BATCH, WIDTH)], self=y, dim=-1)


@pytest.mark.parametrize(
    ("function", "shapes", "made"),
    [
        (perceptron, [(WIDTH, 2 * WIDTH), (2 * WIDTH, WIDTH), (2 * WIDTH,)], perceptron_program),
        (convolution, [(16, 8, 3, 3), (1, 16, 1, 1)], convolution_program),
        (attention, [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH)], attention_program),
        (normalised, [(WIDTH,), (WIDTH,)], normalised_program),
    ],
)
def test_jax_and_pytorch_agree(function, shapes, made):
    program, result = made()
    program.output(result)
    ours = program.read()
    x = program.graph["tensor_values"]["x"]["sizes"]
    theirs = trace_jax(
        function, tuple(floats(*s) for s in shapes), floats(*(s["as_int"] for s in x)), weights=(0,)
    )
    assert ours.flops.sum() == pytest.approx(theirs.flops.sum(), rel=0.01)
    assert ours.weight_bytes.sum() == theirs.weight_bytes.sum()
