"""Keras architectures with random weights, exported to ONNX from TensorFlow and from PyTorch.

Keras takes its backend when it is imported, so every export is a process of its own:
``python -m experiments readers.foreign_keras tensorflow unet FILE``.
"""

# The generators are no dependencies: see `foreign_models.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

IMAGE = (64, 64, 3)
CLASSES = 10
TOKENS, WORDS, WIDTH = 16, 200, 32
_SHARED = ("mobilenet", "efficientnet", "unet", "lstm", "gru")
BY_BACKEND = {
    "tensorflow": (
        *("mobilenet_v2", "resnet50", "densenet", "nasnet", "transformer", "convolutions_1d"),
        *_SHARED,
    ),
    "torch": _SHARED,
}
"""Architectures by the backend that exports them."""
EXPORTERS = {"tensorflow": "tf2onnx", "torch": "torch.onnx"}


def _application(name: str, **settings: Any) -> Any:
    import keras

    made = getattr(keras.applications, name)
    return made(weights=None, input_shape=IMAGE, classes=CLASSES, **settings)


def _unet() -> Any:
    """Two levels down and up again, with transposed convolutions and skip connections."""
    from keras import Input, Model, layers

    x = image = Input(IMAGE)
    skips = []
    for width in (8, 16):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    for width, skip in zip((16, 8), skips[::-1], strict=True):
        x = layers.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = layers.concatenate([x, skip])
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return Model(image, layers.Conv2D(1, 1, activation="sigmoid")(x))


def _recurrent(cell: str) -> Any:
    from keras import Input, Sequential, layers

    made = getattr(layers, cell)
    both = layers.Bidirectional(made(WIDTH, return_sequences=True))
    return Sequential([Input((TOKENS, 8)), both, made(WIDTH), layers.Dense(CLASSES)])


def _transformer() -> Any:
    from keras import Input, Model, layers

    x = tokens = Input((TOKENS,), dtype="int32")
    x = layers.Embedding(WORDS, WIDTH)(x)
    for _ in range(2):
        attended = layers.MultiHeadAttention(4, WIDTH // 4)(x, x)
        x = layers.LayerNormalization()(x + attended)
        hidden = layers.Dense(4 * WIDTH, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(WIDTH)(hidden))
    x = layers.GlobalAveragePooling1D()(x)
    return Model(tokens, layers.Dense(CLASSES, activation="softmax")(x))


def _convolutions_1d() -> Any:
    from keras import Input, Sequential, layers

    return Sequential(
        [
            Input((TOKENS,), dtype="int32"),
            layers.Embedding(WORDS, WIDTH),
            layers.SeparableConv1D(WIDTH, 3, padding="same", activation="swish"),
            layers.Conv1D(WIDTH, 3, dilation_rate=2, padding="same", activation="elu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "mobilenet": partial(_application, "MobileNet", alpha=0.5),
    "mobilenet_v2": partial(_application, "MobileNetV2", alpha=0.5),
    "resnet50": partial(_application, "ResNet50"),
    "efficientnet": partial(_application, "EfficientNetB0"),
    "densenet": partial(_application, "DenseNet121"),
    "nasnet": partial(_application, "NASNetMobile"),
    "unet": _unet,
    "lstm": partial(_recurrent, "LSTM"),
    "gru": partial(_recurrent, "GRU"),
    "transformer": _transformer,
    "convolutions_1d": _convolutions_1d,
}


def export(backend: str, architecture: str, path: Path) -> None:
    """Write one model in this process, whose ``KERAS_BACKEND`` must be ``backend``."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(0)
    model = ARCHITECTURES[architecture]()
    shape = (1, *model.input_shape[1:])
    whole = architecture in ("transformer", "convolutions_1d")
    model(np.ones(shape, np.int32 if whole else np.float32))
    if backend == "torch":
        model.export(str(path), format="onnx", verbose=False)
        return
    import tensorflow as tf
    import tf2onnx

    signature = [tf.TensorSpec((None, *shape[1:]), tf.int32 if whole else tf.float32, name="x")]
    forward = tf.function(lambda x: model(x, training=False), input_signature=signature)
    tf2onnx.convert.from_function(
        forward, input_signature=signature, opset=18, output_path=str(path)
    )


def _export_aside(backend: str, architecture: str, path: Path) -> None:
    environment = {**os.environ, "KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", __file__, backend, architecture, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def makers() -> dict[str, tuple[str, str, Callable[[Path], None]]]:
    """Return by name who wrote each model, its source (""), and what writes its file."""
    return {
        f"keras_{backend}_{name}":
            (f"Keras, {EXPORTERS[backend]}", "", partial(_export_aside, backend, name))
        for backend, names in BY_BACKEND.items()
        for name in names
    }  # fmt: skip


if __name__ == "__main__":
    export(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
