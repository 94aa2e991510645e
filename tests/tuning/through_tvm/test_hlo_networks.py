"""JAX functions and programs of XLA as networks: operands, weights, results; and in TVM."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import ReadError, ZooError
from go_rl.graphs.readers.model_options import ModelOptions
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.jax_function import jax_network
from go_rl.tuning.tvm.models.model import ModelInput, TunableNetwork
from go_rl.tuning.tvm.models.read_model import read_model
from go_rl.tuning.tvm.stablehlo.translation import check_operators

FLOATS = jax.ShapeDtypeStruct((2, 3), jnp.float32)


def perceptron(weights, unread, x):
    return {"b": jnp.tanh(x @ weights["w"] + weights["bias"]), "a": x.sum()}


WEIGHTS = {"w": jnp.array([[1.0], [2.0], [4.0]]), "bias": jnp.array([0.5])}


def test_operands_are_those_that_are_read_and_results_are_jaxs():
    network = jax_network("net", perceptron, (WEIGHTS, FLOATS, FLOATS), (0,))
    assert isinstance(network, TunableNetwork)
    assert network.inputs == (ModelInput("x", (2, 3), "float32"),)
    assert sorted(each.size for each in network.weights.values()) == [1, 3]
    x = np.array([[0.0, 0.0, 0.25], [0.0, 0.0, -0.125]], np.float32)
    total, tanh = network.results([x])
    assert total == pytest.approx(0.125)
    np.testing.assert_allclose(tanh, np.tanh([[1.5], [0.0]]), rtol=1e-6)


def test_a_weight_of_no_dimensions_is_an_array():
    number = jax.ShapeDtypeStruct((), jnp.float32)
    network = jax_network("scaled", lambda w, x: w * x, (number, FLOATS), (0,))
    (weight,) = network.weights.values()
    assert isinstance(weight, np.ndarray)
    assert weight.shape == ()


def test_loops_are_written_out_and_other_types_refused():
    def powers(x):
        return jax.lax.scan(lambda y, _: (y * x, y), x, None, length=3)

    network = jax_network("powers", powers, (FLOATS,), ())
    check_operators(network.program)
    last, all_ = network.results([np.full((2, 3), 2.0, np.float32)])
    assert (last == 16).all()
    assert all_[:, 0, 0].tolist() == [2.0, 4.0, 8.0]
    half = jax.ShapeDtypeStruct((2, 3), jnp.bfloat16)
    with pytest.raises(TuningError, match="argument 'x' is bfloat16; only float32"):
        jax_network("half", lambda x: x + x, (half,), ())
    with pytest.raises(TuningError, match="computes nothing"):
        jax_network("nothing", lambda x: x, (FLOATS,), ())


def test_operators_without_a_translation_are_named():
    network = jax_network("net", lambda x: jnp.linalg.qr(x)[0], (FLOATS,), ())
    with pytest.raises(
        TuningError, match=r"not translated for TVM: the operator stablehlo\.custom"
    ):
        check_operators(network.program)


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        ("zoo:resnet17", ZooError, "did you mean 'resnet18'"),
        ("jax.nn:relo", ReadError, "has no attribute 'relo'; did you mean 'relu'"),
        ("absent.onnx", ReadError, "no such file"),
        ("broken.onnx", ReadError, "not a model that go_rl reads"),
        ("graph.npz", TuningError, "what operators cost, not what they compute"),
    ],
)
def test_what_is_no_network_is_named(tmp_path, monkeypatch, model, error, sentence):
    from go_rl.api.load import save_graph, trace

    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff nothing")
    save_graph(trace(jnp.tanh, FLOATS), "graph.npz")
    with pytest.raises(error, match=sentence):
        read_model(model)
    with pytest.raises(ReadError, match="has no"):
        read_model("zoo:resnet18", ModelOptions({"batch": 2}))


def image(w, x):
    """Convolutions, pooling, padding, products; layouts that differ."""
    y = jax.lax.conv_general_dilated(
        x, w["k"], (2, 2), [(1, 1), (0, 1)], dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    y = jax.nn.relu(y + jnp.arange(8.0))
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    up = jax.lax.conv_transpose(
        y, w["t"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    mean = jax.lax.reduce_window(up, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    rows = jnp.einsum("bhwc,cd->bhwd", mean, w["d"])
    return rows, jnp.einsum("bhqd,bkhd->bhqk", rows, rows.transpose(0, 2, 1, 3))


def sequence(w, ids):
    """Tables, masks, normalisation, attention's reductions, slices."""
    x = w["e"][ids]
    scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), x @ x.swapaxes(1, 2), -jnp.inf)
    y = jax.nn.softmax(scores) @ x
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
    y = jax.nn.gelu(y, approximate=False)
    best = jnp.argmax(y, -1)
    picked = jnp.take_along_axis(y, best[..., None], -1)
    return jnp.cumsum(y, 1)[:, ::-1, 1:5:2], best, picked, jnp.pad(y, ((0, 0), (1, 2), (0, 0)))


def written(w, ids):
    """Rows and parts that are written or read where numbers say; sorting; whole numbers."""
    summed = jax.ops.segment_sum(w["e"], ids[0].repeat(2)[:7], 4)
    greatest = w["e"].at[ids[1], 1:3].max(1.5)
    beyond = jnp.zeros((3, 3)).at[ids[0]].set(jnp.ones(3))
    moved = jax.lax.dynamic_update_slice(w["e"], w["d"][:2, :3], (ids[0, 0], ids[0, 1]))
    parts = jax.vmap(lambda x, i: jax.lax.dynamic_slice(x, (i, 1), (2, 3)))(
        jnp.stack([w["e"], w["e"] ** 2]), ids[:, 0]
    )
    order = jnp.argsort(w["e"], axis=0, descending=True)
    numbers = (ids // 2, ids % 3, (ids << 3) ^ ~ids, jax.lax.shift_right_logical(-ids, 2))
    curves = jnp.cbrt(w["d"]), jnp.arctan2(w["d"], 2.0), jnp.cumprod(w["d"], 1), w["d"] % 0.5
    return summed, greatest, beyond, moved, parts, order, jnp.median(w["e"], 1), numbers, curves


def volume(w, x):
    """A convolution and a pool of three dimensions."""
    y = jax.lax.conv_general_dilated(
        x, w["v"], (1, 2, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    )
    return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), "SAME")


def test_what_tvm_computes_is_what_jax_computes(tmp_path):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    import tvm  # pyright: ignore[reportMissingImports]

    from go_rl.tuning.tvm.compiled import max_relative_error
    from go_rl.tuning.tvm.lowering import imported

    rng = np.random.default_rng(0)
    made = {
        name: rng.standard_normal(shape, np.float32)
        for name, shape in {
            "k": (3, 3, 3, 8), "t": (3, 3, 8, 4), "d": (4, 5), "e": (7, 6), "v": (3, 3, 3, 2, 4),
        }.items()
    }  # fmt: skip
    ids = jax.ShapeDtypeStruct((2, 4), jnp.int32)
    for function, args in (
        (image, (made, jax.ShapeDtypeStruct((1, 16, 16, 3), jnp.float32))),
        (sequence, (made, ids)),
        (written, (made, ids)),
        (volume, (made, jax.ShapeDtypeStruct((1, 4, 6, 5, 2), jnp.float32))),
    ):
        network = jax_network(function.__name__, function, args, (0,))
        machine = tvm.relax.VirtualMachine(tvm.compile(imported(network), "llvm"), tvm.cpu())
        operands = [each.random(rng) for each in network.inputs]
        found = machine["main"](*(tvm.runtime.tensor(each, tvm.cpu()) for each in operands))
        parts = [found] if isinstance(found, tvm.runtime.Tensor) else found
        results = [each.numpy() for each in parts]
        assert max_relative_error(results, network.results(operands)) < 1e-5
        assert [r.dtype for r in results] == [r.dtype for r in network.results(operands)]
