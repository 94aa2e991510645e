"""Shapes of published networks' layers, from which `tile_workloads` makes kernels.

Images come one at a time; transformers run on as many tokens as stated. Sizes are those of the
networks' papers except for the numbers of tokens and rows, which are chosen so that one core takes
50 us to 20 ms.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TransformerSizes:
    """Sizes of a transformer's layer."""

    model: str
    tokens: int
    hidden: int
    wide: int
    """Units of the feed-forward layer."""
    head: int
    """Units of an attention head."""
    activation: str = "gelu"


TRANSFORMERS = (
    TransformerSizes("bert-tiny", 512, 128, 512, 64),
    TransformerSizes("bert-mini", 384, 256, 1024, 64),
    TransformerSizes("bert-base", 128, 768, 3072, 64),
    TransformerSizes("bert-large", 64, 1024, 4096, 64),
    TransformerSizes("distilbert", 96, 768, 3072, 64),
    TransformerSizes("albert", 160, 768, 3072, 64),
    TransformerSizes("gpt2", 256, 768, 3072, 64),
    TransformerSizes("gpt2-medium", 80, 1024, 4096, 64),
    TransformerSizes("transformer-base", 192, 512, 2048, 64, "relu"),
    TransformerSizes("transformer-big", 72, 1024, 4096, 64, "relu"),
    TransformerSizes("t5-small", 224, 512, 2048, 64, "relu"),
    TransformerSizes("vit-tiny", 196, 192, 768, 64),
    TransformerSizes("vit-small", 196, 384, 1536, 64),
    TransformerSizes("vit-base", 112, 768, 3072, 64),
    TransformerSizes("swin-tiny", 784, 192, 768, 32),
    TransformerSizes("conformer", 320, 256, 1024, 64, "sigmoid"),
    TransformerSizes("mobilebert", 288, 512, 512, 32, "relu"),
)

Layer = tuple[int, int, int, int, int]
"""A square convolution: image side, channels in, kernel side, channels out, stride."""

CNNS: dict[str, tuple[Layer, ...]] = {
    "resnet18": (
        (224, 3, 7, 64, 2), (56, 64, 3, 64, 1), (56, 64, 3, 128, 2), (28, 128, 3, 128, 1),
        (28, 128, 3, 256, 2), (14, 256, 3, 256, 1), (14, 256, 3, 512, 2), (7, 512, 3, 512, 1),
        (56, 64, 1, 128, 2), (28, 128, 1, 256, 2), (14, 256, 1, 512, 2),
    ),
    "resnet50": (
        (56, 64, 1, 64, 1), (56, 64, 1, 256, 1), (56, 256, 1, 64, 1), (56, 256, 1, 128, 1),
        (56, 128, 3, 128, 2), (28, 128, 1, 512, 1), (28, 512, 1, 128, 1), (56, 256, 1, 512, 2),
        (28, 512, 1, 256, 1), (28, 256, 3, 256, 2), (14, 256, 1, 1024, 1), (14, 1024, 1, 256, 1),
        (28, 512, 1, 1024, 2), (14, 1024, 1, 512, 1), (14, 512, 3, 512, 2), (7, 512, 1, 2048, 1),
        (7, 2048, 1, 512, 1), (14, 1024, 1, 2048, 2),
    ),
    "resnext50": (
        (56, 256, 1, 256, 1), (28, 512, 1, 512, 1), (14, 1024, 1, 1024, 1), (56, 128, 1, 256, 1),
        (28, 256, 1, 512, 1), (14, 512, 1, 1024, 1),
    ),
    "vgg16": (
        (112, 64, 3, 64, 1), (56, 128, 3, 128, 1), (56, 64, 3, 128, 1), (28, 256, 3, 256, 1),
        (28, 128, 3, 256, 1), (14, 512, 3, 512, 1), (224, 3, 3, 64, 1),
    ),
    "mobilenet-v1": (
        (224, 3, 3, 32, 2), (112, 32, 1, 64, 1), (56, 64, 1, 128, 1), (56, 128, 1, 128, 1),
        (28, 128, 1, 256, 1), (28, 256, 1, 256, 1), (14, 256, 1, 512, 1), (14, 512, 1, 512, 1),
        (7, 512, 1, 1024, 1), (7, 1024, 1, 1024, 1),
    ),
    "mobilenet-v2": (
        (112, 32, 1, 16, 1), (112, 16, 1, 96, 1), (56, 96, 1, 24, 1), (56, 24, 1, 144, 1),
        (56, 144, 1, 24, 1), (28, 144, 1, 32, 1), (28, 32, 1, 192, 1), (28, 192, 1, 32, 1),
        (14, 192, 1, 64, 1), (14, 64, 1, 384, 1), (14, 384, 1, 64, 1), (14, 384, 1, 96, 1),
        (14, 96, 1, 576, 1), (14, 576, 1, 96, 1), (7, 960, 1, 160, 1), (7, 160, 1, 960, 1),
        (7, 960, 1, 320, 1), (7, 320, 1, 1280, 1),
    ),
    "efficientnet-b0": (
        (28, 40, 1, 240, 1), (28, 240, 1, 40, 1), (14, 80, 1, 480, 1), (14, 480, 1, 80, 1),
        (14, 112, 1, 672, 1), (14, 672, 1, 112, 1), (7, 192, 1, 1152, 1), (7, 1152, 1, 192, 1),
        (14, 480, 1, 112, 1), (7, 672, 1, 192, 1), (7, 1152, 1, 320, 1),
    ),
    "densenet121": (
        (56, 64, 1, 128, 1), (56, 128, 3, 32, 1), (56, 224, 1, 128, 1), (28, 128, 3, 32, 1),
        (28, 256, 1, 128, 1), (28, 448, 1, 128, 1), (14, 128, 3, 32, 1), (14, 512, 1, 128, 1),
        (14, 768, 1, 128, 1), (28, 512, 1, 256, 1), (14, 1024, 1, 512, 1), (7, 896, 1, 128, 1),
    ),
    "inception-v3": (
        (147, 32, 3, 64, 1), (35, 192, 1, 64, 1), (35, 48, 5, 64, 1), (35, 64, 3, 96, 1),
        (35, 96, 3, 96, 1), (35, 256, 1, 48, 1), (35, 288, 1, 64, 1), (35, 288, 3, 384, 2),
        (17, 768, 1, 192, 1), (17, 768, 1, 128, 1), (17, 192, 3, 320, 2), (8, 1280, 1, 320, 1),
        (8, 2048, 1, 384, 1), (8, 384, 3, 384, 1),
    ),
    "squeezenet": (
        (55, 96, 1, 16, 1), (55, 16, 3, 64, 1), (55, 128, 1, 16, 1), (27, 32, 3, 128, 1),
        (27, 256, 1, 32, 1), (27, 48, 3, 192, 1), (13, 64, 3, 256, 1), (13, 512, 1, 64, 1),
        (13, 512, 1, 1000, 1),
    ),
    "unet": (
        (128, 16, 3, 16, 1), (64, 32, 3, 32, 1), (64, 16, 3, 32, 1), (32, 64, 3, 64, 1),
        (32, 32, 3, 64, 1), (16, 128, 3, 128, 1), (16, 256, 3, 128, 1), (32, 128, 3, 64, 1),
        (64, 64, 3, 32, 1), (128, 32, 3, 16, 1),
    ),
    "yolo-tiny": (
        (208, 16, 3, 32, 1), (104, 32, 3, 64, 1), (52, 64, 3, 128, 1), (26, 128, 3, 256, 1),
        (13, 1024, 1, 256, 1), (13, 512, 1, 256, 1), (26, 384, 1, 256, 1),
    ),
    "dqn": ((84, 4, 8, 32, 4), (20, 32, 4, 64, 2), (42, 32, 3, 32, 1), (21, 32, 3, 32, 1)),
}  # fmt: skip

RESIDUAL = ("resnet18", "resnet50", "resnext50", "mobilenet-v2", "efficientnet-b0")
"""Networks that add a block's input: to where channels shrink or stay, here."""

Shape = tuple[int, int, int]
"""Sizes m, n, k of a matmul."""

DENSE: dict[tuple[str, str], tuple[tuple[Shape, str], ...]] = {
    ("recommender", "dlrm-small"): (
        ((2048, 512, 13), "bias+relu"), ((512, 256, 512), "bias+relu"),
        ((1024, 64, 256), "bias+relu"), ((256, 512, 415), "bias+relu"),
        ((512, 256, 415), "bias+relu"), ((2048, 27, 64), "none"),
    ),
    ("recommender", "dlrm-large"): (
        ((128, 1024, 479), "bias+relu"), ((128, 1024, 1024), "bias+relu"),
        ((128, 512, 1024), "bias+relu"), ((256, 256, 512), "bias+relu"),
        ((512, 128, 256), "bias+relu"), ((1024, 512, 256), "bias+relu"),
    ),
    ("recommender", "wide-and-deep"): (
        ((128, 1024, 429), "bias+relu"), ((256, 512, 1024), "bias+relu"),
        ((256, 256, 768), "bias+relu"), ((512, 1024, 128), "bias+relu"),
    ),
    ("recommender", "neural-cf"): (
        ((1024, 256, 128), "bias+relu"), ((2048, 128, 256), "bias+relu"),
        ((4096, 64, 128), "bias+relu"), ((4096, 32, 64), "bias+sigmoid"),
    ),
    ("recommender", "autoencoder"): (
        ((64, 1000, 784), "bias+sigmoid"), ((128, 500, 1000), "bias+sigmoid"),
        ((256, 250, 500), "bias+sigmoid"), ((256, 784, 500), "bias+sigmoid"),
    ),
    ("recurrent", "lstm-small"): (
        ((64, 1024, 256), "bias+sigmoid"), ((64, 1024, 512), "bias+tanh"),
        ((128, 1024, 256), "bias"), ((256, 10000, 32), "bias"),
    ),
    ("recurrent", "lstm-medium"): (
        ((20, 2600, 650), "bias+sigmoid"), ((20, 2600, 1300), "bias"),
        ((40, 2600, 650), "bias+tanh"), ((20, 10000, 650), "bias"),
    ),
    ("recurrent", "gnmt"): (
        ((32, 4096, 1024), "bias+sigmoid"), ((32, 4096, 2048), "bias+tanh"),
        ((64, 4096, 1024), "bias"), ((128, 1024, 1024), "tanh"),
    ),
    ("recurrent", "gru-speech"): (
        ((64, 2400, 800), "bias+sigmoid"), ((64, 800, 800), "bias+tanh"),
        ((32, 2400, 1600), "bias+sigmoid"), ((200, 800, 161), "bias+relu"),
    ),
    ("transformer", "mlp-mixer"): (
        ((512, 384, 196), "bias+gelu"), ((512, 196, 384), "bias+add"),
        ((196, 2048, 512), "bias+gelu"), ((196, 512, 2048), "bias+add"),
        ((768, 384, 196), "bias+gelu"), ((768, 196, 384), "bias+add"),
    ),
    ("transformer", "performer"): (
        ((512, 256, 64), "relu"), ((64, 256, 512), "none"), ((1024, 128, 64), "relu"),
        ((1024, 64, 256), "none"), ((64, 128, 1024), "none"),
    ),
}  # fmt: skip

STATISTICS = {
    "resnet18": ((100352, 64), (25088, 128), (6272, 256), (3136, 512)),
    "resnet50": ((25088, 256), (6272, 512), (1568, 1024), (784, 2048)),
    "mobilenet-v2": ((50176, 96), (25088, 144), (12544, 192), (6272, 384)),
    "densenet121": ((12544, 448), (3136, 768), (1568, 896)),
    "inception-v3": ((39200, 64), (9248, 768), (2048, 1280)),
    "vgg16": ((50176, 128), (12544, 512)),
}
"""Rows and channels over which batch normalisation sums."""
