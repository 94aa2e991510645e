"""One list of functions, written in ONNX, PyTorch, JAX and HLO: each reader prices them alike.

`OPERATORS` have one ONNX operator, and those of `TORCH` one of PyTorch; `LIBRARY` are those that a
library computes, which ONNX mostly lacks. HLO is read as JAX lowers it (that of StableHLO is the
same text) and as XLA compiles it.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from jax import lax
from onnx import TensorProto, helper
from onnx_models import array, model, value
from torch_programs import Program

from go_rl.graphs.readers import load
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats, integers

TOLERANCE = 0.05
"""Of FLOP, between any two readers; index arithmetic beside the operator is less."""
COMPILED = 0.15
"""Of FLOP of the compiled module: XLA computes some factors twice rather than store them."""
BYTES = 0.1
"""Of bytes, of those in `SINGLE`."""
SINGLE = (
    "batched matmul", "conv", "cumsum", "einsum", "embedding",
    "grouped conv", "matmul", "max pool", "mean", "reduce", "scatter add", "top k",
)  # fmt: skip
"""One operator in each format, so that bytes can be compared too."""


def _conv(groups=1):
    numbers = ("NCHW", "OIHW", "NCHW")
    return lambda x, k: lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def _conv_transpose(x, k):
    flipped = jnp.flip(k, (2, 3)).swapaxes(0, 1)
    return lax.conv_general_dilated(
        x, flipped, (1, 1), ((2, 2), (2, 2)), (2, 2), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def _layer_norm(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * lax.rsqrt(variance + 1e-5) * scale + bias


def _attention(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125, -1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def _lstm(x, w, r, b):
    of_input, of_state = jnp.split(b[0], 2)

    def cell(state, row):
        h, c = state
        gates = row @ w[0].T + h @ r[0].T + of_input + of_state
        i, o, f, z = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(z)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], r.shape[-1]))
    return lax.scan(cell, (zero, zero), x)[1]


def _pool(x, start, combine, size, stride):
    return lax.reduce_window(x, start, combine, (1, 1, *size), (1, 1, *stride), "VALID")


def _gelu(x):
    return x * 0.5 * (1.0 + lax.erf(x * 0.7))


IMAGE, MATRIX, STACK = floats(2, 8, 16, 16), floats(64, 128), floats(4, 32, 48)
SQUARE, TALL = floats(128, 128), floats(192, 128)
OPERATORS = {
    "matmul": (jnp.matmul, (floats(64, 48), floats(48, 80)), "MatMul", {}, ()),
    "batched matmul": (jnp.matmul, (STACK, floats(4, 48, 16)), "MatMul", {}, ()),
    "einsum": (
        lambda a, b: jnp.einsum("bij,bkj->bik", a, b), (STACK, floats(4, 16, 48)),
        "Einsum", {"equation": "bij,bkj->bik"}, (),
    ),
    "conv": (_conv(), (IMAGE, floats(16, 8, 3, 3)), "Conv", {"pads": [1] * 4}, ()),
    "grouped conv": (
        _conv(4), (IMAGE, floats(16, 2, 3, 3)), "Conv", {"pads": [1] * 4, "group": 4}, (),
    ),
    "transposed conv": (
        _conv_transpose, (IMAGE, floats(8, 16, 3, 3)), "ConvTranspose", {"strides": [2, 2]}, (),
    ),
    "softmax": (lambda x: jax.nn.softmax(x, -1), (MATRIX,), "Softmax", {"axis": -1}, ()),
    "layer norm": (_layer_norm, (MATRIX, floats(128), floats(128)), "LayerNormalization", {}, ()),
    "embedding": (
        lambda t, i: jnp.take(t, i, axis=0, mode="clip"), (floats(1000, 64), integers(128)),
        "Gather", {}, (),
    ),
    "scatter add": (
        lambda x, i, u: x.at[i[:, 0]].add(u), (MATRIX, integers(32, 1), floats(32, 128)),
        "ScatterND", {"reduction": "add"}, (),
    ),
    "top k": (lambda x: tuple(lax.top_k(x, 8)), (MATRIX,), "TopK", {}, (np.array([8]),)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (MATRIX,), "CumSum", {}, (np.array(1),)),
    "reduce": (lambda x: x.sum(1), (MATRIX,), "ReduceSum", {"keepdims": 0}, (np.array([1]),)),
    "mean": (lambda x: x.mean(1), (MATRIX,), "ReduceMean", {"keepdims": 0}, (np.array([1]),)),
    "argmax": (
        lambda x: lax.argmax(x, 1, jnp.int32), (MATRIX,), "ArgMax", {"axis": 1, "keepdims": 0}, (),
    ),
    "attention": (_attention, (floats(2, 4, 32, 16),) * 3, "Attention", {}, ()),
    "lstm": (
        _lstm, (floats(6, 4, 24), floats(1, 128, 24), floats(1, 128, 32), floats(1, 256)),
        "LSTM", {"hidden_size": 32}, (),
    ),
    "max pool": (
        lambda x: _pool(x, -jnp.inf, lax.max, (2, 2), (2, 2)), (IMAGE,),
        "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (),
    ),
    "average pool": (
        lambda x: _pool(x, 0.0, lax.add, (3, 3), (1, 1)) / 9.0, (IMAGE,),
        "AveragePool", {"kernel_shape": [3, 3]}, (),
    ),
    "resize": (
        lambda x: jax.image.resize(x, (2, 8, 32, 32), "nearest"), (IMAGE,),
        "Resize", {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
        (None, np.array([1, 1, 2, 2], np.float32)),
    ),
    "gelu": (_gelu, (MATRIX,), "Gelu", {}, ()),
    "fft": (
        lambda x: jnp.fft.rfft(x[..., 0]), (floats(64, 128, 1),),
        "DFT", {"onesided": 1}, (None, np.array(1)),
    ),
    "determinant": (jnp.linalg.det, (floats(2, 128, 128),), "Det", {}, ()),
    "inverse": (jnp.linalg.inv, (floats(2, 128, 128),), "com.microsoft.Inverse", {}, ()),
}  # fmt: skip
LIBRARY = {
    "sort": (jnp.sort, (MATRIX,)),
    "cholesky": (lambda a: lax.linalg.cholesky(a, symmetrize_input=False), (SQUARE,)),
    "triangular solve": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True), (SQUARE, floats(128, 64)),
    ),
    "lu": (lax.linalg.lu, (floats(2, 128, 128),)),
    "qr": (lambda a: lax.linalg.qr(a, full_matrices=False), (TALL,)),
    "svd": (lambda a: lax.linalg.svd(a, full_matrices=False), (TALL,)),
    "eigh": (lambda a: lax.linalg.eigh(a, symmetrize_input=False), (SQUARE,)),
    "eig": (lax.linalg.eig, (SQUARE,)),
    "schur": (lax.linalg.schur, (SQUARE,)),
    "hessenberg": (lax.linalg.hessenberg, (SQUARE,)),
}  # fmt: skip
TORCH = {
    # operator, names of its operands, results, settings
    "matmul": ("matmul", "self other", [(64, 80)], {}),
    "batched matmul": ("bmm", "self mat2", [(4, 32, 16)], {}),
    "conv": ("conv2d", "input weight", [(2, 16, 16, 16)], {"padding": [1, 1]}),
    "grouped conv": (
        "conv2d", "input weight", [(2, 16, 16, 16)], {"padding": [1, 1], "groups": 4},
    ),
    "transposed conv": ("conv_transpose2d", "input weight", [(2, 16, 33, 33)], {"stride": [2, 2]}),
    "softmax": ("softmax", "self", [(64, 128)], {"dim": -1}),
    "layer norm": ("layer_norm", "input weight bias", [(64, 128)], {"normalized_shape": [128]}),
    "embedding": ("embedding", "weight indices", [(128, 64)], {}),
    "cumsum": ("cumsum", "self", [(64, 128)], {"dim": 1}),
    "reduce": ("sum", "self", [(64,)], {"dim": [1]}),
    "mean": ("mean", "self", [(64,)], {"dim": [1]}),
    "argmax": ("argmax", "self", [((64,), "int64")], {"dim": 1}),
    "top k": ("topk", "self", [(64, 8), ((64, 8), "int64")], {"k": 8}),
    "attention": ("scaled_dot_product_attention", "query key value", [(2, 4, 32, 16)], {}),
    "max pool": ("max_pool2d", "self", [(2, 8, 8, 8)], {"kernel_size": [2, 2]}),
    "average pool": (
        "avg_pool2d", "self", [(2, 8, 14, 14)], {"kernel_size": [3, 3], "stride": [1, 1]},
    ),
    "gelu": ("gelu", "self", [(64, 128)], {}),
}  # fmt: skip
SLACK = {"cumsum": 1.6, "scatter add": 1.1}
"""What XLA compiles is truly more: a cumulative sum of blocks of 16 and sums of those, and a loop
over the rows that are scattered."""


def _onnx(path, args, op, attributes, constants):
    domain, _, op = op.rpartition(".")
    elements = {jnp.float32: TensorProto.FLOAT, jnp.int32: TensorProto.INT64}
    inputs = [value(f"x{i}", arg.shape, elements[arg.dtype.type]) for i, arg in enumerate(args)]
    names = [x.name for x in inputs]
    names += ["" if c is None else f"c{i}" for i, c in enumerate(constants)]
    held = [array(f"c{i}", c, c.dtype) for i, c in enumerate(constants) if c is not None]
    results = ["y", "places"] if op == "TopK" else ["y"]
    node = helper.make_node(op, names, results, name="op", domain=domain, **attributes)
    made = model([node], inputs, ["y"], held, opset=23, domains=[domain] if domain else [])
    onnx.save(made, path)
    return load(path)


def _torch(args, op, operands, results, settings):
    program = Program()
    given = {
        name: program.input(f"x{i}", arg.shape, "float32" if arg.dtype == jnp.float32 else "int64")
        for i, (name, arg) in enumerate(zip(operands.split(), args, strict=True))
    }
    program.op(op, results, **given, **settings)
    return program.read()


def _agree(graphs, tolerance, what="flops"):
    totals = {form: float(getattr(graph, what).sum()) for form, graph in graphs.items()}
    first = next(iter(totals.values()))
    for form, total in totals.items():
        assert total == pytest.approx(first, rel=tolerance, abs=600), (form, totals)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(tmp_path, in_process, loaded, name):
    function, args, *operator = OPERATORS[name]
    graphs = {
        "jax": trace_jax(function, *args, weights=()),
        "onnx": _onnx(tmp_path / "m.onnx", args, *operator),
        "hlo": loaded(jax.jit(function).lower(*args).as_text("hlo")),
    }
    if name in TORCH:
        graphs["torch"] = _torch(args, *TORCH[name])
    _agree(graphs, TOLERANCE)
    if name in SINGLE:
        _agree(graphs, BYTES, "bytes_accessed")


@pytest.mark.parametrize("name", LIBRARY)
def test_library_calls(loaded, name):
    function, args = LIBRARY[name]
    graphs = {
        "jax": trace_jax(function, *args, weights=()),
        "hlo": loaded(jax.jit(function).lower(*args).as_text("hlo")),
    }
    _agree(graphs, TOLERANCE)


QUICK = ("cumsum", "lu", "matmul", "softmax", "top k")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else (pytest.mark.slow,))
     for n in (*OPERATORS, *LIBRARY)],
)  # fmt: skip
def test_compiled(loaded, name):
    function, args, *_ = OPERATORS.get(name) or LIBRARY[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = jax.jit(function).lower(*args).compile().as_text()
    graphs = {"jax": trace_jax(function, *args, weights=()), "compiled": loaded(text)}
    _agree(graphs, SLACK.get(name, COMPILED))
