"""Launches of networks: counts and sizes by hand, what is recognised, what is refused."""

from collections import Counter
from dataclasses import replace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs.readers.onnx_models import array, parsed

import go_rl
from go_rl.core import ElementType, OpKind
from go_rl.costs.operators.launches import eager_launches, fused_launches
from go_rl.costs.operators.launches.attention_launches import fused_attention
from go_rl.costs.operators.launches.operator_view import OperatorView
from go_rl.costs.operators.tables import OperatorError
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.bert import BertConfig, bert
from go_rl.graphs.zoo.models.building import flax_model, floats, integers
from go_rl.graphs.zoo.models.language.sized import decoder_training, in_training, written_out_gelu
from go_rl.graphs.zoo.models.language.transformers import GPT

PRODUCTS = ("bmm", "linear", "conv")


def _launches(function, *shapes, weights=None):
    args = [s if isinstance(s, jax.ShapeDtypeStruct) else floats(*s) for s in shapes]
    return eager_launches(trace_jax(function, *args, weights=weights))


def _ops(launches):
    return [launch.op for launch in launches.each]


def _count(launches):
    return Counter((launch.op, tuple(launch.sizes.values())) for launch in launches.each)


def _flops(launches):
    product = np.isin(_ops(launches), PRODUCTS)
    return launches.rows.flops()[product].sum()


def test_bert_large_by_hand():
    """What Hugging Face's eager BERT launches at batch 1, 384 tokens, without a mask."""
    tokens, wide, inner, heads, layers = 384, 1024, 4096, 16, 24
    launches = eager_launches(go_rl.load("zoo:bert-large"))
    by_hand = {
        ("linear", (1, tokens, wide, wide)): 4 * layers,  # query, key, value, output
        ("linear", (1, tokens, wide, inner)): layers,
        ("linear", (1, tokens, inner, wide)): layers,
        ("linear", (1, 1, wide, wide)): 1,  # pooler
        ("bmm", (heads, tokens, 64, tokens)): layers,
        ("bmm", (heads, tokens, tokens, 64)): layers,
        ("softmax", (heads * tokens, tokens)): layers,
        ("divu", (heads * tokens, tokens)): layers,  # by the root of 64
        ("copy", (tokens * heads, 64)): layers,  # heads are copied together
        ("ln", (tokens, wide)): 2 * layers + 1,
        ("gelu", (tokens, inner)): layers,
        ("add", (tokens, wide)): 2 * layers + 2,  # residuals; three embeddings
        ("gather", (tokens, wide)): 2,  # rows of words and of types
        ("tanh", (1, wide)): 1,
    }
    assert _count(launches) == by_hand
    attention = 2 * 2 * heads * tokens * tokens * 64
    layer = 2 * tokens * (4 * wide * wide + 2 * wide * inner) + attention
    assert _flops(launches) == layers * layer + 2 * wide * wide
    moved = launches.rows.least_bytes()[np.array(_ops(launches)) == "ln"]
    assert moved.sum() == 49 * 2 * 4 * tokens * wide


def test_a_masked_batch_copies_operands_and_adds_the_mask():
    config = BertConfig(1, 64, 4, 256, vocabulary=50, positions=32, exact_gelu=True)
    function, args, weights = bert(config, 2, 32)
    count = _count(eager_launches(trace_jax(function, *args, weights=weights)))
    assert count["copy", (2 * 32 * 4, 16)] == 4  # query, key, value and the result
    assert count["addu", (2 * 4 * 32, 32)] == 1
    assert count["bmm", (8, 32, 16, 32)] == count["bmm", (8, 32, 32, 16)] == 1
    assert count["linear", (1, 64, 64, 64)] == 4
    assert count["gelu", (64, 256)] == 1


def test_gpt_has_one_product_for_attention_and_its_gelu_in_eight_pieces():
    model = GPT(1, 64, 4, 50, 16, activation=written_out_gelu, attention={"joint": True})
    built = flax_model(model, integers(2, 16))
    launches = eager_launches(trace_jax(built[0], *built[1], weights=built[2]))
    count = _count(launches)
    assert count["linear", (1, 32, 64, 192)] == 1
    pieces = Counter(launch.op for launch in launches.each if launch.sizes.get("width") == 256)
    assert pieces == {"powu": 1, "mulu": 3, "add": 1, "tanh": 1, "addu": 1, "mul": 1}
    assert count["linear", (1, 32, 64, 50)] == 1, "logits of every position"


def _norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + shift


def _batch_norm(x, mean, variance, scale, shift):
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-3) * scale) + shift


@pytest.mark.parametrize(
    ("function", "shapes", "weights", "expected"),
    [
        (jax.nn.softmax, [(6, 8)], (), [("softmax", (6, 8))]),
        (jax.nn.log_softmax, [(2, 3, 8)], (), [("softmax", (6, 8))]),
        (_norm, [(2, 3, 8), (8,), (8,)], (1, 2), [("ln", (6, 8))]),
        (lambda x: jax.nn.gelu(x, approximate=False), [(6, 8)], (), [("gelu", (6, 8))]),
        (lambda x: jax.nn.gelu(x, approximate=True), [(6, 8)], (), [("gelu", (6, 8))]),
        (jax.nn.silu, [(6, 8)], (), [("gelu", (6, 8))]),
        (jax.nn.relu6, [(6, 8)], (), [("relu", (6, 8))]),
        (jax.nn.relu, [(6, 8)], (), [("relu", (6, 8))]),
        (_batch_norm, [(2, 5, 5, 8), *[(8,)] * 4], (1, 2, 3, 4), [("mulu", (50, 8))]),
        (lambda x, y: x + y, [(6, 8), (6, 8)], (), [("add", (6, 8))]),
        (lambda x, y: x + y, [(6, 8), (8,)], (), [("addu", (6, 8))]),
        (lambda x: 3 * x, [(6, 8)], (), [("mulu", (6, 8))]),
        (lambda x: x.reshape(8, 6)[:4], [(6, 8)], (), None),
        (lambda x, w: x @ w, [(2, 3, 8), (8, 5)], (1,), [("linear", (1, 6, 8, 5))]),
        (lambda x, w, b: x @ w + b, [(6, 8), (8, 5), (5,)], (1, 2), [("linear", (1, 6, 8, 5))]),
        (lambda x, y: x @ y, [(3, 6, 8), (3, 8, 5)], (), [("bmm", (3, 6, 8, 5))]),
        (lambda x: x @ x.T, [(6, 8)], (), [("linear", (1, 6, 8, 6))]),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)  # fmt: skip
def test_what_is_recognised(function, shapes, weights, expected):
    if expected is None:
        with pytest.raises(OperatorError, match="launches no kernel"):
            _launches(function, *shapes, weights=weights)
        return
    launches = _launches(function, *shapes, weights=weights)
    assert [(each.op, tuple(each.sizes.values())) for each in launches.each] == expected


def test_dropout_is_one_launch():
    def dropped(x, key):
        keep = jax.random.bernoulli(key, 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0.0)

    launches = _launches(dropped, (64, 32), jax.eval_shape(lambda: jax.random.key(0)))
    assert [(each.op, each.what) for each in launches.each] == [("mulu", "dropout")]


def _conv(kernel, stride=1, groups=1, padding="SAME"):
    def convolve(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )  # fmt: skip

    shapes = [(2, 8, 8, 4), (kernel, kernel, 4 // groups, 12)]
    return _launches(convolve, *shapes, weights=(1,)).each


def test_convolutions():
    (three,), (one,), (strided,) = _conv(3), _conv(1), _conv(1, 2)
    assert (three.op, tuple(three.sizes.values())) == ("conv", (2, 4, 12, 3, 8, 1, 1))
    assert (one.op, tuple(one.sizes.values())) == ("conv", (2, 4, 12, 1, 8, 1, 0))
    assert (strided.op, tuple(strided.sizes.values())) == ("conv", (2, 4, 12, 1, 8, 2, 0))
    assert not three.unlike
    (five,) = _conv(5)
    assert (five.op, five.sizes["kernel_size"], five.sizes["padding"]) == ("conv", 5, 2)
    (depthwise,) = _conv(3, groups=4)
    assert depthwise.unlike
    assert depthwise.op == "relu"


def test_training_has_both_gradients_and_autograd_kernels():
    """One linear layer with bias, layer norm, and a mean square."""

    class Small(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.LayerNorm()(nn.relu(nn.Dense(32)(x)))
            return nn.Dense(8)(x)

    forward, args, _ = flax_model(Small(), floats(16, 64))

    def step(params, x):
        gradient = jax.value_and_grad(lambda p: jnp.square(forward(p, x)).sum())
        value, slopes = gradient(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    launches = eager_launches(trace_jax(step, *args, weights=(0,)))
    count = Counter((launch.op, launch.what) for launch in launches.each)
    products = [tuple(each.sizes.values()) for each in launches.each if each.op == "linear"]
    assert sorted(products[2:]) == sorted([(1, 8, 16, 32), (1, 16, 8, 32), (1, 32, 16, 64)])
    assert count["ln", "layer norm"] == count["mul", "gradient of layer norm"] == 1
    assert count["relu", "gradient of scale and shift"] == 1
    assert count["mul", "gradient of relu"] == 1
    assert count["relu", "gradient of a bias"] == 2
    assert count["add", "update"] == 6, "two layers and a norm, two arrays each"


def test_training_of_a_decoder_by_hand():
    layers, tokens, wide = 2, 32, 64
    built = decoder_training(flax_model(GPT(layers, wide, 4, 50, 16), integers(2, 16)))
    launches = eager_launches(trace_jax(built[0], *built[1], weights=built[2]))
    count = Counter((launch.op, launch.what) for launch in launches.each)
    assert count["linear", "linear and bias"] == 6 * layers
    assert count["bmm", "batched product"] == 6 * layers
    assert count["linear", "linear"] == 1 + 12 * layers + 2, "tied logits, all gradients"
    assert count["mul", "gradient of layer norm"] == 2 * layers + 1
    assert count["mul", "gradient of GELU"] == count["mul", "gradient of softmax"] == layers
    assert count["relu", "copy of a gradient"] == 4 * layers
    sums = {e.sizes["batch"] for e in launches.each if e.what == "sum of gradients"}
    assert sums == {tokens}
    assert count["add", "sum of gradients"] == 4 * layers, "residuals; query, key and value"


@pytest.mark.parametrize(
    ("attention", "each", "once"), [({"joint": True}, 3, 1), ({"scaled_query": True}, 2, 0)]
)
def test_training_drops_what_hugging_face_drops(attention, each, once):
    """Both residuals, of GPT-2 weights of attention and embeddings too; one kernel forward and one
    backward."""
    layers, model = 2, GPT(2, 64, 4, 50, 16, attention=attention)
    counts = []
    for module in (model, in_training(model)):
        built = decoder_training(flax_model(module, integers(2, 16)))
        launches = eager_launches(trace_jax(built[0], *built[1], weights=built[2]))
        counts.append(Counter((launch.op, launch.what) for launch in launches.each))
    more = counts[1] - counts[0]
    dropped = each * layers + once
    assert more == {("mulu", "dropout"): dropped, ("mulu", "gradient of scaling"): dropped}


def test_a_floor_under_masked_scores_is_no_relu():
    """OPT's ``torch.max``: one launch forward, the five of autograd backward, of all scores; a step
    of training updates nothing."""
    attention = {"scaled_query": True, "floored": True}
    model = GPT(2, 64, 4, 50, 16, activation=nn.relu, attention=attention)
    built = decoder_training(flax_model(model, integers(2, 16)))
    launches = eager_launches(trace_jax(built[0], *built[1], weights=built[2]))
    count = Counter(launch.what for launch in launches.each)
    assert (count["maximum"], count["gradient of a maximum"]) == (2, 10)
    assert (count["relu"], count["gradient of relu"]) == (2, 2)
    assert "update" not in count
    sizes = {tuple(e.sizes.values()) for e in launches.each if "maximum" in e.what}
    assert sizes == {(2 * 4 * 16, 16)}


def test_launches_wait_for_earlier_ones_and_share_no_node():
    for name in ("gpt2-small-training", "resnet18", "t5-small"):
        eager = eager_launches(go_rl.load(f"zoo:{name}"))
        for launches in (eager, fused_launches(eager)):
            nodes = [n for launch in launches.each for n in launch.nodes]
            assert len(nodes) == len(set(nodes))
            assert all(b < i for i, before in enumerate(launches.before) for b in before)
        heavy = np.isin(eager.graph.kind, (2, 3))
        assert set(np.flatnonzero(heavy).tolist()) <= set(nodes)
        assert len(launches) < len(eager)
        assert _flops(launches) == _flops(eager)


def test_fusion_keeps_only_the_bytes_that_travel():
    def block(x, w, b, y):
        return jax.nn.relu(x @ w + b) + y

    fused = fused_launches(_launches(block, (64, 32), (32, 16), (16,), (64, 16), weights=(1, 2)))
    (launch,) = fused.each
    assert (launch.op, launch.what) == ("linear", "linear and bias + relu + add")
    assert launch.extra_bytes == 4 * 64 * 16, "the second operand of the sum"
    chain = fused_launches(_launches(lambda x, y: jnp.tanh(3 * x + y), (64, 16), (64, 16)))
    (launch,) = chain.each
    assert launch.op == "relu"
    assert launch.sizes["batch"] * launch.sizes["width"] * 8 == 3 * 4 * 64 * 16
    scores = fused_launches(_launches(lambda x: jax.nn.softmax(x / 8), (64, 16)))
    assert [(each.op, each.extra_bytes) for each in scores.each] == [("softmax", 0.0)]


def test_a_product_takes_no_sum_no_pool_and_no_convolution_into_its_kernel():
    def mean(x, w):
        return jax.nn.relu(x @ w).mean(0)

    names = [each.what for each in fused_launches(_launches(mean, (64, 32), (32, 16))).each]
    assert names == ["linear", "relu + reduce_sum + div"]

    def mobile(x, w, deep):
        wide = jax.nn.relu(jax.lax.conv(x, w, (1, 1), "SAME"))
        return jnp.tanh(jax.lax.conv_general_dilated(wide, deep, (1, 1), "SAME",
                                                     feature_group_count=16))  # fmt: skip

    shapes = (2, 8, 14, 14), (16, 8, 1, 1), (16, 1, 3, 3)
    fused = fused_launches(_launches(mobile, *shapes, weights=(1, 2)))
    assert [(each.what, each.unlike) for each in fused.each] == [
        ("1 × 1 convolution + relu", False),
        ("depthwise convolution + tanh", False),
    ]


def test_a_fused_kernel_is_unlike_if_one_of_its_operators_is():
    eager = _launches(lambda x, y: jnp.tanh(x @ y), (64, 32), (32, 16))
    strange = tuple(replace(each, unlike=each.op == "tanh") for each in eager.each)
    (launch,) = fused_launches(replace(eager, each=strange)).each
    assert (launch.op, launch.unlike) == ("linear", True)


def test_launches_say_in_which_type_they_compute():
    half, whole = jax.ShapeDtypeStruct((8, 8), jnp.bfloat16), floats(8, 8)
    found = _launches(lambda x, y: jnp.tanh(x @ x) @ x.astype(jnp.float32) @ y, half, whole)
    named = [ElementType(each).label for each in found.element_types.tolist()]
    products = [named[i] for i, op in enumerate(_ops(found)) if op == "linear"]
    assert products == ["bfloat16", "float32", "float32"]
    assert set(named) == {"bfloat16", "float32", "unknown"}, "streams count by their bytes"
    assert _ops(_launches(lambda x, i: x[i], (9, 8), integers(4))), "indices are no arithmetic"


def test_hlo_has_softmax_and_numbers_too(tmp_path):
    def block(x, y):
        return jax.nn.softmax(x / 8.0 + y)

    text = jax.jit(block).lower(floats(6, 8), floats(6, 8)).compiler_ir("hlo").as_hlo_text()
    (tmp_path / "block.hlo").write_text(text)
    launches = eager_launches(go_rl.load(tmp_path / "block.hlo"))
    assert _ops(launches) == ["divu", "add", "softmax"]


def test_onnx_operators(tmp_path):
    text = """(float[6,8] x) => (float[6,3] y) {
        g = Gemm(x, w, b) r = Relu(g) m = MatMul(r, v) a = Add(m, c) d = Div(a, two) e = Erf(d)
        f = Add(e, two) h = Mul(a, f) z = Mul(h, two) y = Softmax(z) }"""
    shapes = {"w": (8, 5), "b": 5, "v": (5, 3), "c": 3, "two": ()}
    model = parsed(text, *(array(name, np.zeros(shape)) for name, shape in shapes.items()))
    path = tmp_path / "two.onnx"
    path.write_bytes(model.SerializeToString())
    launches = eager_launches(go_rl.load(path))
    found = [(each.op, tuple(each.sizes.values())) for each in launches.each]
    assert found == [("linear", (1, 6, 8, 5)), ("relu", (6, 5)), ("linear", (1, 6, 5, 3)),
                     ("gelu", (6, 3)), ("softmax", (6, 3))]  # fmt: skip


def test_a_product_without_elements_is_none():
    """No rows: a launch that moves the weights at most, and a price."""
    launches = _launches(lambda x, w: jnp.tanh(x @ w), (0, 8), (8, 8), weights=(1,))
    assert "linear" not in _ops(launches)
    assert np.isfinite(launches.rows.least_bytes()).all()


def test_pieces_of_pytorchs_own_graphs_are_launched_as_they_are():
    """A root mean square in pieces, whose names are PyTorch's, is no norm: five kernels; a reshape
    that such a graph keeps copies; what follows from no input is computed at each call."""

    def network(x, scale):
        near = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)
        return (near * scale).reshape(2, 24)

    traced = trace_jax(network, floats(6, 8), floats(8), weights=(1,))
    named = {"square": "aten.pow", "rsqrt": "aten.rsqrt", "mul": "aten.mul", "add": "aten.add",
             "reshape": "aten.reshape", "div": "aten.div"}  # fmt: skip
    graph = replace(traced, op_type=tuple(named.get(each, each) for each in traced.op_type))
    apart = [launch.what for launch in eager_launches(traced).each]
    own = [launch.op for launch in eager_launches(graph).each]
    assert apart == ["layer norm"]
    assert own == ["powu", "sum", "divu", "addu", "powu", "mulu", "mulu", "copy"]


CONVOLUTIONS = {
    "dilated": ("dilations=[4,4], pads=[4,4,4,4]", (8, 16, 28, 28), (16, 16, 3, 3)),
    "of a row": ("pads=[0,4,0,4]", (8, 16, 28, 28), (16, 16, 1, 9)),
    "of a flat kernel": ("pads=[1,3,0,4]", (8, 16, 28, 28), (16, 16, 2, 8)),
    "with two strides": ("pads=[1,1,1,1], strides=[1,4]", (8, 16, 14, 56), (16, 16, 3, 3)),
    "padded on one side": ("pads=[2,0,0,0]", (8, 16, 28, 30), (16, 16, 3, 3)),
    "dilated depthwise": ("dilations=[4,4], pads=[4,4,4,4], group=16", (8, 16, 28, 28),
                          (16, 1, 3, 3)),
    "transposed": ("strides=[2,2], pads=[1,1,1,1]", (8, 16, 28, 28), (16, 16, 4, 4)),
    "transposed 1 × 1": ("strides=[2,2]", (8, 16, 28, 28), (16, 16, 1, 1)),
}  # fmt: skip


def _onnx_launches(tmp_path, text, **shapes):
    model = parsed(text, *(array(name, np.zeros(shape)) for name, shape in shapes.items()))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return eager_launches(go_rl.load(path))


def _convolution(tmp_path, attributes, image, weights, op="Conv"):
    sizes = ",".join(map(str, image))
    text = f"(float[{sizes}] x) => (float[N,C,H,W] y) {{ y = {op} <{attributes}> (x, w) }}"
    (launch,) = _onnx_launches(tmp_path, text, w=weights).each
    return launch


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_that_is_not_square_is_unlike(name, tmp_path):
    """Dilated, transposed, with sides, strides or padding that differ: by its FLOP, or depthwise by
    its bytes, never as the square one that has as many taps."""
    op = "ConvTranspose" if name.startswith("transposed") else "Conv"
    launch = _convolution(tmp_path, *CONVOLUTIONS[name], op=op)
    assert (launch.op, launch.unlike) == (
        "relu" if "depthwise" in name else "linear", True
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "side", "sizes"),
    [
        ("pads=[1,1,1,1]", 28, (8, 16, 16, 3, 28, 1, 1)),
        ("pads=[0,0,1,1], strides=[2,2]", 28, (8, 16, 16, 3, 28, 2, 1)),  # as "SAME" of an even
        ("strides=[2,2]", 29, (8, 16, 16, 3, 29, 2, 0)),
    ],
)
def test_a_square_convolution_stays_one(attributes, side, sizes, tmp_path):
    launch = _convolution(tmp_path, attributes, (8, 16, side, side), (16, 16, 3, 3))
    assert (launch.op, tuple(launch.sizes.values()), launch.unlike) == ("conv", sizes, False)


MICROSOFT = "com.microsoft"
ATTENTION = {
    # Decoding: one query of 12 heads of 64 numbers to 8192 keys.
    "ai": ("(float[32,1,768] q, float[32,8192,768] k, float[32,8192,768] v) => (y) "
           "{ y = Attention <q_num_heads=12, kv_num_heads=12> (q, k, v) }",
           (32, 12, 1, 1, 8192, 64, 0)),
    "shared heads, causal": (
        "(float[2,64,96] q, float[2,64,32] k, float[2,64,32] v) => (y) "
        "{ y = Attention <q_num_heads=6, kv_num_heads=2, is_causal=1> (q, k, v) }",
        (2, 6, 3, 64, 64, 16, 1)),
    "parts of one tensor": (
        "(float[2,64,96] x, float[64,64] m) => (y) { q, k, v = Split <axis=2, num_outputs=3> (x) "
        "y = Attention <q_num_heads=4, kv_num_heads=4> (q, k, v, m) }", (2, 4, 1, 64, 64, 8, 0)),
    "MultiHeadAttention": (
        "(float[8,16,48] q, float[8,20,48] k, float[8,20,48] v) => (float[8,16,48] y) "
        "{ y = com.microsoft.MultiHeadAttention <num_heads=3> (q, k, v) }",
        (8, 3, 1, 16, 20, 16, 0)),
    "its bias and mask": (
        "(float[8,16,48] q, float[8,20,48] k, float[8,20,48] v, float[144] b, int32[8,20] m)"
        " => (float[8,16,48] y) "
        "{ y = com.microsoft.MultiHeadAttention <num_heads=3> (q, k, v, b, m) }",
        (8, 3, 1, 16, 20, 16, 0)),
    "GroupQueryAttention": (
        "(float[1,64,128] q, float[1,64,32] k, float[1,64,32] v, int32[1,1] s, int32[1] t)"
        " => (float[1,64,128] y) { y = com.microsoft.GroupQueryAttention"
        " <num_heads=8, kv_num_heads=2> (q, k, v, , , s, t) }", (1, 8, 4, 64, 64, 16, 1)),
}  # fmt: skip


def _all_sizes(launches):
    return [(each.op, tuple(each.sizes.values()), each.unlike) for each in launches.each]


def _attention_model(tmp_path, text, **shapes):
    weights = (array(name, np.zeros(shape)) for name, shape in shapes.items())
    model = parsed(text, *weights, opset=23, domains=(MICROSOFT,))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return go_rl.load(path)


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_on_rows_of_all_heads_is_attention(name, tmp_path):
    """ONNX's on operands of rank 3: batch, heads, queries a head of keys serves, queries, keys,
    depth, whether causal."""
    text, sizes = ATTENTION[name]
    launches = eager_launches(_attention_model(tmp_path, text))
    assert ("attention", sizes, False) in _all_sizes(launches)
    assert "linear" not in _ops(launches)
    assert "linear" not in _ops(fused_launches(launches))


@pytest.mark.parametrize("bias", [True, False])
def test_packed_attention_is_a_projection_and_attention(bias, tmp_path):
    """The projection of 8 × 16 rows of 32 features to 3 × 48; 3 heads of 16 numbers."""
    text = (
        "(float[8,16,32] x) => (float[8,16,48] y) "
        f"{{ y = com.microsoft.Attention <num_heads=3> (x, w{', b' * bias}) }}"
    )
    weights = {"w": (32, 144)} | ({"b": (144,)} if bias else {})
    launches = eager_launches(_attention_model(tmp_path, text, **weights))
    assert _all_sizes(launches) == [
        ("linear", (1, 128, 32, 144), False),
        ("attention", (8, 3, 1, 16, 16, 16, 0), False),
    ]
    assert launches.before == ((), (0,))
    assert len(fused_launches(launches)) == 2
    view = OperatorView(launches.graph)
    assert fused_attention(view, launches.graph.num_nodes - 1) is None, "one launch is not all"


def test_what_is_no_product_of_two_matrices_is_unlike(tmp_path):
    """A decomposition, attention whose values are longer than its keys, experts."""
    (cholesky,) = (
        each for each in _launches(jnp.linalg.cholesky, (64, 64)).each if each.op == "linear"
    )
    assert (cholesky.what, cholesky.unlike) == ("cholesky by its FLOP", True)
    text = """(float[2,64,96] q, float[2,64,96] k, float[2,64,48] v) => (y) {
        y = Attention <q_num_heads=6, kv_num_heads=6> (q, k, v) }"""
    (attention,) = eager_launches(_attention_model(tmp_path, text)).each
    assert (attention.op, attention.unlike) == ("linear", True)
    product = _launches(lambda x, y: x @ y, (4, 6, 8), (4, 8, 5))
    assert _all_sizes(product) == [("bmm", (4, 6, 8, 5), False)]


def test_sizes_that_depend_on_data_are_unlike_and_no_kernel_crosses_them(tmp_path):
    """What reads such a tensor is unlike, too; a sum over it and what follows have one size."""
    text = """(float[8,64] x) => (float[K] y, float[1] z) {
        a = Abs(x) i = NonZero(a) t = Transpose(i) y = GatherND(a, t)
        s = ReduceSum <keepdims = 1> (y) z = Exp(s) }"""
    launches = _onnx_launches(tmp_path, text)
    assert [(each.what, each.unlike) for each in launches.each] == [
        ("abs", False), ("NonZero", True), ("GatherND", True), ("reduce_sum", True), ("exp", False)
    ]  # fmt: skip
    fused = fused_launches(launches).each
    assert [each.what for each in fused] == ["abs", "NonZero", "GatherND + reduce_sum + exp"]


def test_a_mask_is_never_taken_for_the_queries():
    """Queries of rank 3 tell no heads, whatever the mask beside them is."""
    builder = GraphBuilder("torch")
    for name, shape in (("q", (8, 512, 1024)), ("mask", (8, 1, 512, 512))):
        size = 4.0 * np.prod(shape)
        builder.add_node(Node(name, "input", OpKind.INPUT, output_bytes=size, output_itemsize=4.0,
                              output_shape=shape))  # fmt: skip
    flops, size = 8 * 16 * 512 * (512 * 262.0 - 1), 4.0 * 8 * 16 * 512 * 64
    made = Node("y", "scaled_dot_product_attention", OpKind.MATMUL, flops, output_bytes=size,
                output_itemsize=4.0, output_shape=(8, 16, 512, 64), is_output=True)  # fmt: skip
    builder.add_node(made)
    for sender in (0, 1):
        builder.add_edge(sender, 2, 4.0)
    (launch,) = eager_launches(builder.build()).each
    assert launch.op != "attention"
    assert launch.unlike
