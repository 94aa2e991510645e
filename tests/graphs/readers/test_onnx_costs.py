"""FLOP of ONNX operators against XLA's cost analysis of the same JAX function."""

import jax
import jax.numpy as jnp
import onnx
import pytest
from jax import lax
from onnx_models import one_operator

from go_rl.graphs.readers.onnx.costs.operators import RULES
from go_rl.graphs.readers.onnx.reader import read_onnx_model


def xla_flops(function, shapes):
    arguments = [jax.ShapeDtypeStruct(tuple(s), jnp.float32) for s in shapes]
    return jax.jit(function).lower(*arguments).cost_analysis().get("flops", 0.0)


def conv(strides=(1, 1), padding="VALID", **settings):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **settings)


def pool(initial, op, window, strides, pads):
    return lambda x: lax.reduce_window(
        x, initial, op, (1, 1, *window), (1, 1, *strides), ((0, 0), (0, 0), *pads)
    )


def batch_norm(x, scale, bias, mean, var):
    def wide(t):
        return t.reshape(1, -1, 1, 1)

    return (x - wide(mean)) * (lax.rsqrt(wide(var) + 1e-5) * wide(scale)) + wide(bias)


IMAGE, PLANES = [2, 16, 10, 12], [16] * 1
TABLE = [  # of those that `test_reader_agreement` lacks, or in other settings
    # operator, operand shapes, result shape, attributes, JAX twin, relative tolerance
    ("Conv", [IMAGE, [32, 16, 3, 3]], [2, 32, 8, 10], {}, conv(), 0),
    ("Conv", [IMAGE, [32, 16, 3, 3]], [2, 32, 5, 6], {"pads": [1, 1, 1, 1], "strides": [2, 2]},
     conv((2, 2), ((1, 1), (1, 1))), 0),
    ("Conv", [IMAGE, [16, 1, 3, 3]], [2, 16, 10, 12], {"pads": [1, 1, 1, 1], "group": 16},
     conv((1, 1), ((1, 1), (1, 1)), feature_group_count=16), 0),
    ("Conv", [IMAGE, [8, 4, 3, 5]], [2, 8, 10, 12],
     {"pads": [2, 4, 2, 4], "dilations": [2, 2], "group": 4},
     conv((1, 1), ((2, 2), (4, 4)), rhs_dilation=(2, 2), feature_group_count=4), 0),
    ("Conv", [IMAGE, [8, 16, 4, 4]], [2, 8, 5, 6], {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
     conv((2, 2), "SAME"), 0),
    ("Conv", [[2, 6, 20], [4, 6, 3]], [2, 4, 18], {},
     lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID"), 0),
    ("ConvTranspose", [IMAGE, [16, 8, 3, 3]], [2, 8, 19, 23],
     {"pads": [1, 1, 1, 1], "strides": [2, 2]},
     conv((1, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 2),
          dimension_numbers=("NCHW", "IOHW", "NCHW")), 0),
    ("MatMul", [[4, 3, 8, 16], [4, 3, 16, 32]], [4, 3, 8, 32], {}, jnp.matmul, 0),
    ("MatMul", [[4, 8, 16], [16, 32]], [4, 8, 32], {}, jnp.matmul, 0),
    ("MatMul", [[16], [16]], [], {}, jnp.matmul, 0),
    ("Gemm", [[16, 8], [32, 16], [32]], [8, 32], {"transA": 1, "transB": 1},
     lambda a, b, c: a.T @ b.T + c, 0),
    ("Einsum", [[2, 3, 10, 8], [2, 3, 12, 8]], [2, 3, 10, 12], {"equation": "bhqd, bhkd -> bhqk"},
     lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), 0),
    ("Einsum", [[4, 5, 6], [6, 7]], [4, 5, 7], {"equation": "...i,ij->...j"},
     lambda a, b: jnp.einsum("...i,ij->...j", a, b), 0),
    ("MaxPool", [IMAGE], [2, 16, 5, 6],
     {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
     pool(-jnp.inf, lax.max, (3, 3), (2, 2), ((1, 1), (1, 1))), 0),
    ("AveragePool", [IMAGE], [2, 16, 5, 6], {"kernel_shape": [2, 2], "strides": [2, 2]},
     lambda x: pool(0.0, lax.add, (2, 2), (2, 2), ((0, 0), (0, 0)))(x) / 4.0, 0),
    ("GlobalAveragePool", [IMAGE], [2, 16, 1, 1], {}, lambda x: x.mean((2, 3)), 0),
    ("BatchNormalization", [IMAGE, *[PLANES] * 4], IMAGE, {}, batch_norm, 0.01),
    ("Softmax", [[8, 100]], [8, 100], {"axis": 0}, lambda x: jax.nn.softmax(x, 0), 0.05),
    ("LogSoftmax", [[8, 100]], [8, 100], {}, lambda x: jax.nn.log_softmax(x, -1), 0.01),
    ("Gelu", [[8, 100]], [8, 100], {"approximate": "tanh"}, jax.nn.gelu, 0.01),
    ("ReduceSum", [[8, 100]], [1, 1], {}, lambda x: x.sum(), 0),
    ("Relu", [[8, 100]], [8, 100], {}, jax.nn.relu, 0),
    ("Sigmoid", [[8, 100]], [8, 100], {}, jax.nn.sigmoid, 0),
    ("Softplus", [[8, 100]], [8, 100], {}, jax.nn.softplus, 0),
    ("Elu", [[8, 100]], [8, 100], {}, jax.nn.elu, 0),
    ("Exp", [[8, 100]], [8, 100], {}, jnp.exp, 0),
    ("Sqrt", [[8, 100]], [8, 100], {}, jnp.sqrt, 0),
    ("Add", [[8, 100], [8, 1]], [8, 100], {}, jnp.add, 0),
    ("Cast", [[8, 100]], ([8, 100], 6), {"to": 6}, lambda x: x.astype(jnp.int32), 0),
    ("Transpose", [[8, 100]], [100, 8], {}, jnp.transpose, 0),
    ("Concat", [[8, 100], [8, 100]], [16, 100], {"axis": 0}, lambda a, b: jnp.concatenate([a, b]),
     0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "operands", "result", "attributes", "twin", "tolerance"),
    TABLE,
    ids=[f"{i}-{row[0]}" for i, row in enumerate(TABLE)],
)
def test_flops_equal_those_of_xla(op, operands, result, attributes, twin, tolerance):
    graph = read_onnx_model(one_operator(op, operands, [result], **attributes), op)
    wanted = xla_flops(twin, operands)
    assert graph.flops.sum() == pytest.approx(wanted, rel=tolerance, abs=0)


HAND_COMPUTED = [
    # operator, domain, operand shapes, result shape, attributes, FLOP
    ("FusedMatMul", "com.microsoft", [[2, 8], [2, 5]], [8, 5], {"transA": 1}, 2 * 8 * 5 * 2),
    ("FastGelu", "com.microsoft", [[4, 6], [6]], [4, 6], {}, 9 * 24),
    ("BiasGelu", "com.microsoft", [[4, 6], [6]], [4, 6], {}, 5 * 24),
    ("SkipLayerNormalization", "com.microsoft", [[1, 4, 6], [1, 4, 6], [6], [6]], [1, 4, 6], {},
     8 * 24),
    (
        "Attention",  # Q, K, V projections, then 2 heads of depth 4 over 5 tokens.
        "com.microsoft",
        [[3, 5, 8], [8, 24], [24]],
        [3, 5, 8],
        {"num_heads": 2},
        3 * 5 * 24 * (2 * 8 + 1) + 3 * 2 * 25 * (2 * 4 + 2 * 4 + 5) - 3 * 2 * 5,
    ),
    ("MultiHeadAttention", "com.microsoft", [[3, 5, 8], [3, 7, 8], [3, 7, 8]], [3, 5, 8],
     {"num_heads": 2}, 3 * 2 * 35 * (2 * 4 + 2 * 4 + 5) - 3 * 2 * 5),
    (
        "LSTM",  # 6 steps x 2 sequences: 4 gates, inputs 3, hidden 5.
        "",
        [[6, 2, 3], [1, 20, 3], [1, 20, 5]],
        [6, 1, 2, 5],
        {"hidden_size": 5},
        12 * (2 * 4 * 5 * 8 + 17 * 5),
    ),
    ("TopK", "", [[8, 100], ([1], 7)], [8, 16], {}, 800 * 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "domain", "operands", "result", "attributes", "flops"),
    HAND_COMPUTED,
    ids=[row[0] for row in HAND_COMPUTED],
)
def test_fused_operators_count_their_decomposition(op, domain, operands, result, attributes, flops):
    graph = read_onnx_model(one_operator(op, operands, [result], domain=domain, **attributes), op)
    assert graph.flops.sum() == flops


def test_every_onnx_operator_has_a_rule_but_these():
    current = {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}
    left_out = {"ImageDecoder"}
    assert current - set(RULES) <= left_out
    assert not left_out & set(RULES)
