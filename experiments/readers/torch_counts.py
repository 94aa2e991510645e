"""FLOP of the products of twelve networks, counted by hand from their published sizes.

A multiply-add is 2 FLOP; taps of a convolution that fall on padding are not counted.
"""

from __future__ import annotations

from math import prod

TOKENS = 64
MOBILENET_BLOCKS = (
    (16, 3, 16, 16, 0, "r", 1), (16, 3, 64, 24, 0, "r", 2), (24, 3, 72, 24, 0, "r", 1),
    (24, 5, 72, 40, 1, "r", 2), (40, 5, 120, 40, 1, "r", 1), (40, 5, 120, 40, 1, "r", 1),
    (40, 3, 240, 80, 0, "h", 2), (80, 3, 200, 80, 0, "h", 1), (80, 3, 184, 80, 0, "h", 1),
    (80, 3, 184, 80, 0, "h", 1), (80, 3, 480, 112, 1, "h", 1), (112, 3, 672, 112, 1, "h", 1),
    (112, 5, 672, 160, 1, "h", 2), (160, 5, 960, 160, 1, "h", 1), (160, 5, 960, 160, 1, "h", 1),
)  # fmt: skip
"""Of MobileNet-v3 large (Howard et al., 2019, table 1): inputs, kernel, width, outputs, squeeze and
excitation, activation, stride."""


def taps(size: int, kernel: int, stride: int = 1, padding: int = 0) -> tuple[int, int]:
    """Return the outputs along one axis, and the pairs of output and tap that meet an input."""
    outputs = (size + 2 * padding - kernel) // stride + 1
    places = (o * stride + k - padding for o in range(outputs) for k in range(kernel))
    return outputs, sum(0 <= place < size for place in places)


def square(
    size: int, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1
) -> float:
    """A convolution of a square image, padded by half its kernel."""
    _, pairs = taps(size, kernel, stride, kernel // 2)
    return 2.0 * inputs // groups * outputs * pairs**2


def transformer(tokens: int, width: int, hidden: int, keys: int = 0) -> float:
    """A layer: four projections, scores and their sums, two products of the perceptron."""
    return tokens * (8.0 * width**2 + 4.0 * (keys or tokens) * width + 4.0 * width * hidden)


def resnet50() -> float:
    """Bottlenecks of 3, 4, 6 and 3 layers, strides in the 3 x 3 convolutions."""
    total, size, inputs = square(224, 3, 64, 7, 2), 56, 64
    for stage, layers in enumerate((3, 4, 6, 3)):
        outputs = 256 << stage
        for layer in range(layers):
            stride = 2 if stage and not layer else 1
            inner = outputs // 4
            total += square(size, inputs, inner) + square(size, inner, inner, 3, stride)
            total += square(size, inputs, outputs, 1, stride) if not layer else 0
            size //= stride
            total += square(size, inner, outputs)
            inputs = outputs
    return total


def vit_b() -> float:
    """12 layers of 197 tokens, patches of 16 x 16, and the pooler."""
    return 12 * transformer(197, 768, 3072) + 2.0 * 196 * 768 * 3 * 16**2 + 2.0 * 768**2


def bert_base() -> float:
    """12 layers and the pooler."""
    return 12 * transformer(TOKENS, 768, 3072) + 2.0 * 768**2


def gpt2() -> float:
    """12 layers and the 50,257 words."""
    return 12 * transformer(TOKENS, 768, 3072) + 2.0 * TOKENS * 768 * 50257


def llama_block() -> float:
    """One token of two sequences on 256 before: 32 heads, 8 groups, three products of 8,192."""
    width, groups, hidden = 2048, 8 * 64, 8192
    projections = 2.0 * width * (2 * width + 2 * groups + 3 * hidden)
    return 2 * (projections + 4.0 * 257 * width)


def t5_small() -> float:
    """6 layers each; the decoder also attends to the encoder's result."""
    cross = TOKENS * (8.0 * 512**2 + 4.0 * TOKENS * 512)
    return 12 * transformer(TOKENS, 512, 2048) + 6 * cross


def unet() -> float:
    """Two 3 x 3 convolutions a level, down and up again, widened by 2 x 2."""
    total = square(256, 3, 32, 3) + square(256, 32, 32, 3) + square(256, 32, 2)
    for level in range(1, 5):
        size, width = 256 >> level, 32 << level
        total += square(size, width // 2, width, 3) + square(size, width, width, 3)
        total += 2.0 * size**2 * width * width // 2 * 4
        total += square(2 * size, width, width // 2, 3) + square(
            2 * size, width // 2, width // 2, 3
        )
    return total


def lstm() -> float:
    """Two layers of 256 in both directions over 4 x 24 words, and 17 tags."""
    words, gates = 4 * 24, 4 * 256
    first, second = (2 * 2.0 * gates * (inputs + 256) for inputs in (128, 512))
    return words * (first + second + 2.0 * 512 * 17)


def swin_tiny() -> float:
    """Layers 2, 2, 6, 2 in windows of 7 x 7; four neighbours are merged between stages."""
    total, tokens, width = 2.0 * 56**2 * 96 * 3 * 16, 56**2, 96
    for stage, layers in enumerate((2, 2, 6, 2)):
        total += layers * transformer(tokens, width, 4 * width, keys=49)
        if stage < 3:
            tokens //= 4
            total += 2.0 * tokens * 4 * width * 2 * width
            width *= 2
    return total


def mobilenet_v3() -> float:
    """Table 1 of the paper, a batch of two."""
    total, size = square(224, 3, 16, 3, 2), 112
    for inputs, kernel, wide, outputs, excite, _, stride in MOBILENET_BLOCKS:
        total += square(size, inputs, wide) if wide != inputs else 0
        total += square(size, wide, wide, kernel, stride, wide)
        total += 4.0 * wide * (wide // 4) if excite else 0
        size //= stride
        total += square(size, wide, outputs)
    return 2 * (total + square(7, 160, 960) + 2.0 * (960 * 1280 + 1280 * 1000))


def whisper_tiny() -> float:
    """Two convolutions over 3,000 frames, then 4 layers of 1,500."""
    first, second = taps(3000, 3, 1, 1)[1], taps(3000, 3, 2, 1)[1]
    return 2.0 * 384 * (80 * first + 384 * second) + 4 * transformer(1500, 384, 1536)


def dlrm() -> float:
    """Two perceptrons and the products of 27 vectors with one another, a batch of 16."""
    layers = ((13, 512), (512, 256), (256, 64), (64 + 351, 512), (512, 256), (256, 1))
    return 16 * (2.0 * sum(map(prod, layers)) + 2.0 * 27 * 27 * 64)
