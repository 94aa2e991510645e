"""The twelve networks of `torch_networks`, written in JAX with the same parameters.

A network is a function of `Parameters` and its inputs. Images have their channels first, as in
PyTorch; vectors of a batch normalisation are its scale, bias, mean and variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.readers.torch_blocks import MOBILENET_BLOCKS
from experiments.readers.torch_networks import LENGTH
from go_rl.core import OpGraph
from go_rl.graphs.readers.jax.reader import trace_jax

Array = jax.Array
LAYOUT = ("NCHW", "OIHW", "NCHW")


@dataclass
class Parameters:
    """Weights by the order in which a network asks for them."""

    given: Mapping[str, Array] | None = None
    """None: they are zeros, and only their shapes are noted."""
    shapes: dict[str, jax.ShapeDtypeStruct] = field(default_factory=dict)

    def __call__(self, *shape: int) -> Array:
        """Return the next one."""
        name = f"w{len(self.shapes)}"
        self.shapes[name] = jax.ShapeDtypeStruct(shape, jnp.float32)
        return jnp.zeros(shape) if self.given is None else self.given[name]


Network = Callable[..., Any]


def jax_graph(name: str) -> OpGraph:
    """Return the graph of a network of `NETWORKS`."""
    function, inputs = NETWORKS[name]
    noted = Parameters()
    jax.eval_shape(lambda *x: function(noted, *x), *inputs)

    def run(weights: Mapping[str, Array], *x: Array) -> Any:
        return function(Parameters(weights), *x)

    return trace_jax(run, noted.shapes, *inputs, name=name, weights=(0,))


def linear(p: Parameters, x: Array, width: int, bias: bool = True) -> Array:
    y = x @ p(width, x.shape[-1]).T
    return y + p(width) if bias else y


def perceptron(p: Parameters, x: Array, *widths: int) -> Array:
    for place, width in enumerate(widths):
        x = linear(p, x if not place else jax.nn.relu(x), width)
    return x


def conv(
    p: Parameters, x: Array, width: int, kernel: int, stride: int = 1, groups: int = 1,
    bias: bool = False, pad: int | None = None,
) -> Array:  # fmt: skip
    """A convolution over one axis or two, padded to keep the size unless ``pad`` says otherwise."""
    axes = x.ndim - 2
    layout = LAYOUT if axes == 2 else ("NCH", "OIH", "NCH")
    edge = kernel // 2 if pad is None else pad
    weight = p(width, x.shape[1] // groups, *[kernel] * axes)
    y = lax.conv_general_dilated(
        x, weight, [stride] * axes, [(edge, edge)] * axes, dimension_numbers=layout,
        feature_group_count=groups,
    )  # fmt: skip
    return y + p(width).reshape(width, *[1] * axes) if bias else y


def batch_norm(p: Parameters, x: Array) -> Array:
    scale, bias, mean, variance = (p(x.shape[1]).reshape(-1, 1, 1) for _ in range(4))
    return (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + bias


def layer_norm(p: Parameters, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    spread = lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return centred * spread * p(x.shape[-1]) + p(x.shape[-1])


def rms_norm(p: Parameters, x: Array) -> Array:
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * p(x.shape[-1])


def gelu(x: Array) -> Array:
    return x * 0.5 * (1.0 + lax.erf(x * 0.5**0.5))


def heads_of(x: Array, heads: int) -> Array:
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def attend(q: Array, k: Array, v: Array, scale: float, bias: Array | None = None) -> Array:
    """Attention of heads; the result has them joined again."""
    scores = q @ k.transpose(0, 1, 3, 2) * scale
    weights = jax.nn.softmax(scores if bias is None else scores + bias)
    mixed = (weights @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], -1)


def self_attention(
    p: Parameters, x: Array, heads: int, bias: Array | None = None, key_bias: bool = True
) -> Array:
    width = x.shape[-1]
    q, k, v = (linear(p, x, width, has_bias) for has_bias in (True, key_bias, True))
    scale = (width // heads) ** -0.5
    mixed = attend(heads_of(q, heads), heads_of(k, heads), heads_of(v, heads), scale, bias)
    return linear(p, mixed, width)


def encoder_layer(p: Parameters, x: Array, heads: int, key_bias: bool = True) -> Array:
    """A layer that normalises before each part (ViT, Whisper)."""
    x = x + self_attention(p, layer_norm(p, x), heads, key_bias=key_bias)
    y = gelu(linear(p, layer_norm(p, x), 4 * x.shape[-1]))
    return x + linear(p, y, x.shape[-1])


def resnet50(p: Parameters, x: Array) -> Any:
    x = jax.nn.relu(batch_norm(p, conv(p, x, 64, 7, 2)))
    x = max_pool(x, 3, 2, 1)
    for stage, (depth, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True)):
        for layer in range(depth):
            stride = 2 if stage and not layer else 1
            kept = x if layer else batch_norm(p, conv(p, x, 4 * width, 1, stride))
            y = jax.nn.relu(batch_norm(p, conv(p, x, width, 1)))
            y = jax.nn.relu(batch_norm(p, conv(p, y, width, 3, stride)))
            x = jax.nn.relu(batch_norm(p, conv(p, y, 4 * width, 1)) + kept)
    return x, x.mean((2, 3), keepdims=True)


def max_pool(x: Array, kernel: int, stride: int, edge: int = 0) -> Array:
    window, steps = (1, 1, kernel, kernel), (1, 1, stride, stride)
    pads = [(0, 0), (0, 0), (edge, edge), (edge, edge)]
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, pads)


def patches(p: Parameters, x: Array, width: int, size: int) -> Array:
    y = conv(p, x, width, size, size, bias=True, pad=0)
    return y.reshape(x.shape[0], width, -1).transpose(0, 2, 1)


def vit_b(p: Parameters, x: Array) -> Any:
    x = jnp.concatenate([p(1, 1, 768), patches(p, x, 768, 16)], 1) + p(1, 197, 768)
    for _ in range(12):
        x = encoder_layer(p, x, 12)
    x = layer_norm(p, x)
    return x, jnp.tanh(linear(p, x[:, 0], 768))


def bert_base(p: Parameters, words: Array) -> Any:
    kinds, places = jnp.zeros(words.shape, jnp.int32), jnp.arange(words.shape[1])
    table = p(30522, 768)
    x = looked_up(table, words) + looked_up(p(2, 768), kinds) + looked_up(p(512, 768), places)
    x = layer_norm(p, x)
    for _ in range(12):
        x = layer_norm(p, x + self_attention(p, x, 12))
        x = layer_norm(p, x + linear(p, gelu(linear(p, x, 3072)), 768))
    return x, jnp.tanh(linear(p, x[:, 0], 768))


def looked_up(table: Array, places: Array) -> Array:
    return jnp.take(table, places, axis=0, mode="clip")


def gpt2(p: Parameters, words: Array) -> Any:
    table, length = p(50257, 768), words.shape[1]
    x = looked_up(table, words) + looked_up(p(1024, 768), jnp.arange(length))
    mask = causal(length)
    for _ in range(12):
        joined = linear(p, layer_norm(p, x), 3 * 768)
        q, k, v = (heads_of(part, 12) for part in jnp.split(joined, 3, -1))
        x = x + linear(p, attend(q, k, v, 0.125, mask), 768)
        x = x + linear(p, jax.nn.gelu(linear(p, layer_norm(p, x), 3072)), 768)
    return layer_norm(p, x) @ table.T


def causal(length: int) -> Array:
    """A mask of what comes later."""
    places = jnp.arange(length)
    return jnp.where(places[:, None] >= places, 0.0, -jnp.inf)


def llama_block(p: Parameters, x: Array, keys: Array, values: Array, cos: Array, sin: Array) -> Any:
    heads, groups, width, depth = 32, 8, 2048, 64
    y = rms_norm(p, x)
    q = heads_of(linear(p, y, width, False), heads)
    k, v = (heads_of(linear(p, y, groups * depth, False), groups) for _ in range(2))

    def turned(x: Array) -> Array:
        first, second = jnp.split(x, 2, -1)
        return x * cos + jnp.concatenate([-second, first], -1) * sin

    keys = jnp.concatenate([keys, turned(k)], 2)
    values = jnp.concatenate([values, v], 2)
    all_keys, all_values = (jnp.repeat(each, heads // groups, 1) for each in (keys, values))
    mixed = attend(turned(q), all_keys, all_values, depth**-0.5)
    x = x + linear(p, mixed, width, False)
    y = rms_norm(p, x)
    gated = jax.nn.silu(linear(p, y, 8192, False)) * linear(p, y, 8192, False)
    return x + linear(p, gated, width, False), keys, values


def t5_small(p: Parameters, words: Array, mask: Array, answer: Array) -> Any:
    table = p(32128, 512)
    seen = (1.0 - mask[:, None, None].astype(jnp.float32)) * -1e9
    x, bias = looked_up(table, words), None
    for _ in range(6):
        x, bias = _t5_attention(p, x, None, bias, seen, two_way=True)
        x = _t5_feed_forward(p, x)
    memory = rms_norm(p, x)
    length = answer.shape[1]
    x, bias, later = looked_up(table, answer), None, causal(length)
    for _ in range(6):
        x, bias = _t5_attention(p, x, None, bias, later, two_way=False)
        x, _ = _t5_attention(p, x, memory, seen, None, two_way=False)
        x = _t5_feed_forward(p, x)
    return rms_norm(p, x), memory


def _t5_attention(
    p: Parameters, x: Array, memory: Array | None, bias: Array | None, mask: Array | None,
    two_way: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """A layer of attention, and the bias that those after it share."""
    y = rms_norm(p, x)
    source = y if memory is None else memory
    q, k, v = (heads_of(linear(p, each, 512, False), 8) for each in (y, source, source))
    if bias is None:
        buckets = _buckets(x.shape[1], two_way)
        bias = looked_up(p(32, 8), buckets).transpose(2, 0, 1)[None]
        bias = bias if mask is None else bias + mask
    return x + linear(p, attend(q, k, v, 1.0, bias), 512, False), bias


def _buckets(length: int, two_way: bool) -> Array:
    """Buckets of distances, linear up to a fourth or half of them, then logarithmic."""
    places = jnp.arange(length)
    far, count = places[None] - places[:, None], 16 if two_way else 32
    base = jnp.where(far > 0, count, 0) if two_way else 0
    far = jnp.abs(far) if two_way else -jnp.minimum(far, 0)
    exact = count // 2
    large = exact + (jnp.log(far / exact) / np.log(128 / exact) * (count - exact)).astype(jnp.int32)
    return base + jnp.where(far < exact, far, jnp.minimum(large, count - 1))


def _t5_feed_forward(p: Parameters, x: Array) -> Array:
    y = jax.nn.relu(linear(p, rms_norm(p, x), 2048, False))
    return x + linear(p, y, 512, False)


def unet(p: Parameters, x: Array) -> Array:
    def double(x: Array, width: int) -> Array:
        for _ in range(2):
            x = jax.nn.relu(batch_norm(p, conv(p, x, width, 3)))
        return x

    x, kept = double(x, 32), []
    for width in (64, 128, 256, 512):
        kept.append(x)
        x = double(max_pool(x, 2, 2), width)
    for width in (256, 128, 64, 32):
        weight = p(2 * width, width, 2, 2)
        wide = lax.conv_general_dilated(
            x, weight.swapaxes(0, 1), (1, 1), [(1, 1)] * 2, (2, 2), dimension_numbers=LAYOUT
        )
        wide = wide + p(width).reshape(-1, 1, 1)
        x = double(jnp.concatenate([kept.pop(), wide], 1), width)
    return conv(p, x, 2, 1, bias=True)


def lstm(p: Parameters, words: Array) -> Array:
    x = looked_up(p(1000, 128), words).swapaxes(0, 1)
    for _ in range(2):
        ways = [_one_way(p, x if forward else x[::-1]) for forward in (True, False)]
        x = jnp.concatenate([ways[0], ways[1][::-1]], -1)
    return linear(p, x.swapaxes(0, 1), 17)


def _one_way(p: Parameters, x: Array, width: int = 256) -> Array:
    of_input, of_state = p(4 * width, x.shape[-1]), p(4 * width, width)
    given = x @ of_input.T + p(4 * width)
    bias = p(4 * width)

    def cell(state: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, g, o = jnp.split(row + (h @ of_state.T + bias), 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], width))
    return lax.scan(cell, (zero, zero), given)[1]


def swin_tiny(p: Parameters, x: Array) -> Any:
    x, side = layer_norm(p, patches(p, x, 96, 4)), 56
    for stage, (depth, heads) in enumerate(zip((2, 2, 6, 2), (3, 6, 12, 24), strict=True)):
        for layer in range(depth):
            shift = 3 if layer % 2 and side > 7 else 0
            x = _swin_layer(p, x, side, heads, shift)
        if stage < 3:
            x, side = _merged(p, x, side), side // 2
    x = layer_norm(p, x)
    return x, x.mean(1)


def _swin_layer(p: Parameters, x: Array, side: int, heads: int, shift: int) -> Array:
    width, window = x.shape[-1], 7
    count = side // window
    y = layer_norm(p, x).reshape(1, side, side, width)
    y = jnp.roll(y, (-shift, -shift), (1, 2)) if shift else y
    y = y.reshape(count, window, count, window, width).swapaxes(1, 2)
    y = y.reshape(count * count, window * window, width)
    # Which rows of the table play no role in the work.
    table, rows = p(169, heads), jnp.arange(49 * 49) % 169
    bias = looked_up(table, rows).reshape(49, 49, heads).transpose(2, 0, 1)[None]
    if shift:
        bias = bias + jnp.zeros((count * count, 1, 49, 49))
    y = self_attention(p, y, heads, bias)
    y = y.reshape(count, count, window, window, width).swapaxes(1, 2).reshape(1, side, side, width)
    y = jnp.roll(y, (shift, shift), (1, 2)) if shift else y
    x = x + y.reshape(x.shape)
    return x + linear(p, gelu(linear(p, layer_norm(p, x), 4 * width)), width)


def _merged(p: Parameters, x: Array, side: int) -> Array:
    width = x.shape[-1]
    grid = x.reshape(1, side, side, width)
    four = [grid[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
    joined = jnp.concatenate(four, -1).reshape(1, -1, 4 * width)
    return linear(p, layer_norm(p, joined), 2 * width, False)


def mobilenet_v3(p: Parameters, x: Array) -> Array:
    acts = {"r": jax.nn.relu, "h": jax.nn.hard_swish}
    x = jax.nn.hard_swish(batch_norm(p, conv(p, x, 16, 3, 2)))
    for inputs, kernel, wide, outputs, excite, act, stride in MOBILENET_BLOCKS:
        y = x
        if wide != inputs:
            y = acts[act](batch_norm(p, conv(p, y, wide, 1)))
        y = batch_norm(p, conv(p, y, wide, kernel, stride, groups=wide))
        if excite:
            scale = jax.nn.relu(conv(p, y.mean((2, 3), keepdims=True), wide // 4, 1, bias=True))
            y = y * jax.nn.hard_sigmoid(conv(p, scale, wide, 1, bias=True))
        y = batch_norm(p, conv(p, acts[act](y), outputs, 1))
        x = x + y if stride == 1 and inputs == outputs else y
    x = jax.nn.hard_swish(batch_norm(p, conv(p, x, 960, 1)))
    return linear(p, jax.nn.hard_swish(linear(p, x.mean((2, 3)), 1280)), 1000)


def whisper_tiny_encoder(p: Parameters, x: Array) -> Array:
    x = gelu(conv(p, gelu(conv(p, x, 384, 3, bias=True)), 384, 3, 2, bias=True))
    x = x.transpose(0, 2, 1) + p(1500, 384)
    for _ in range(4):
        x = encoder_layer(p, x, 6, key_bias=False)
    return layer_norm(p, x)


def dlrm(p: Parameters, dense: Array, sparse: Array) -> Array:
    x = perceptron(p, dense, 512, 256, 64)
    rows = [looked_up(p(10_000, 64), sparse[:, i]).sum(1) for i in range(26)]
    together = jnp.stack([x, *rows], 1)
    products = together @ together.swapaxes(1, 2)
    first = jnp.arange(351) // 26
    pairs = products[:, first, jnp.arange(351) % 27]  # which pairs plays no role in the work
    return jax.nn.sigmoid(perceptron(p, jnp.concatenate([x, pairs], 1), 512, 256, 1))


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def integers(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


_IMAGE, _WORDS, _CACHE = floats(1, 3, 224, 224), integers(1, LENGTH), floats(2, 8, 256, 64)
NETWORKS: dict[str, tuple[Network, Sequence[jax.ShapeDtypeStruct]]] = {
    "resnet50": (resnet50, [_IMAGE]),
    "vit_b": (vit_b, [_IMAGE]),
    "bert_base": (bert_base, [_WORDS]),
    "gpt2": (gpt2, [_WORDS]),
    "llama_block": (
        llama_block,
        [floats(2, 1, 2048), _CACHE, _CACHE, floats(1, 64), floats(1, 64)],
    ),
    "t5_small": (t5_small, [_WORDS] * 3),
    "unet": (unet, [floats(1, 3, 256, 256)]),
    "lstm": (lstm, [integers(4, 24)]),
    "swin_tiny": (swin_tiny, [_IMAGE]),
    "mobilenet_v3": (mobilenet_v3, [floats(2, 3, 224, 224)]),
    "whisper_tiny_encoder": (whisper_tiny_encoder, [floats(1, 80, 3000)]),
    "dlrm": (dlrm, [floats(16, 13), integers(16, 26, 4)]),
}
"""The networks by name, with the shapes of their inputs."""
