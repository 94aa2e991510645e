"""Published vision networks from Keras applications, on its JAX backend.

Keras is an optional dependency and is imported only when one of these is built; the frozen graphs
of the zoo need it no more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

from go_rl.core.errors import MissingDependencyError
from go_rl.graphs.zoo.models.building import Built, ZooModel, classifier_training

WITHOUT_KERAS = "resnet18, bert-mini, vit-tiny"
"""Some models of the zoo that are built without it."""


@dataclass(frozen=True)
class Application:
    """Application of ``keras.applications`` at a resolution and a batch."""

    constructor: str
    """Name in ``keras.applications``, such as ``ResNet50``."""
    resolution: int = 224
    """Height and width of the images, pixels."""
    batch: int = 1
    """Images an iteration."""


def build(application: Application) -> Built:
    """Return the inference pass of a Keras application; no weights are made.

    Raises:
        MissingDependencyError: Keras is not installed, or runs on another backend than JAX.
    """
    model, trained, fixed, images = _parts(application)

    def infer(trained: Any, fixed: Any, images: Any) -> Any:
        return model.stateless_call(trained, fixed, images, training=False)[0]

    return infer, (trained, fixed, images), (0, 1)


def build_training(application: Application) -> Built:
    """Return one step of gradient descent on the cross-entropy, batch statistics updated."""
    import jax.numpy as jnp

    model, trained, fixed, images = _parts(application)

    def loss(trained: Any, fixed: Any, images: Any, labels: Any) -> Any:
        shares, fixed = model.stateless_call(trained, fixed, images, training=True)
        chosen = jnp.take_along_axis(shares, labels[:, None], axis=1, mode="clip")
        return -jnp.log(chosen + 1e-7).mean(), fixed

    return classifier_training(loss, (trained, fixed), images)


def _parts(application: Application) -> tuple[Any, list[Any], list[Any], Any]:
    """Return the model, its abstract variables (trained, fixed) and the abstract images."""
    import jax
    import jax.numpy as jnp

    keras = _keras()
    # Layer names count up within a process; the graph's names must not depend on what came before.
    keras.backend.clear_session()
    size = application.resolution
    constructor = getattr(keras.applications, application.constructor)
    with keras.StatelessScope(initialize_variables=False):
        model = constructor(weights=None, input_shape=(size, size, 3))
    trained, fixed = (
        [jax.ShapeDtypeStruct(v.shape, jnp.dtype(v.dtype)) for v in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables)
    )
    return model, trained, fixed, jax.ShapeDtypeStruct((application.batch, size, size, 3), "f4")


def require_keras(model: ZooModel) -> None:
    """Raise a `MissingDependencyError` if the model is built with Keras, and Keras is not here."""
    if model.name.removesuffix("-training") in {entry.name for entry in ENTRIES}:
        _keras()


def _keras() -> Any:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    try:
        import keras  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingDependencyError(
            f"Keras cannot be imported ({error}); it builds the zoo's Keras applications, such as "
            f"resnet50: pip install keras. {WITHOUT_KERAS} and most others need none (docs/zoo.md "
            "says where each is from)"
        ) from error
    if keras.backend.backend() != "jax":
        raise MissingDependencyError(
            f"Keras runs on {keras.backend.backend()!r}; the zoo traces it on JAX: "
            "set KERAS_BACKEND=jax before Keras is imported"
        )
    return keras


def _entry(name: str, family: str, constructor: str, *sizes: int) -> ZooModel:
    return ZooModel(name, family, partial(build, Application(constructor, *sizes)))


ENTRIES: tuple[ZooModel, ...] = (
    _entry("resnet50", "resnet", "ResNet50"),
    _entry("resnet50-b8", "resnet", "ResNet50", 224, 8),
    _entry("resnet101", "resnet", "ResNet101"),
    _entry("resnet152", "resnet", "ResNet152"),
    _entry("resnet50-v2", "resnet", "ResNet50V2", 256, 2),
    _entry("resnet101-v2", "resnet", "ResNet101V2", 224, 4),
    _entry("resnet152-v2", "resnet", "ResNet152V2"),
    _entry("vgg16", "vgg", "VGG16"),
    _entry("vgg19-b4", "vgg", "VGG19", 224, 4),
    _entry("inception-v3", "inception", "InceptionV3", 299),
    _entry("inception-resnet-v2", "inception", "InceptionResNetV2", 299),
    _entry("xception", "xception", "Xception", 299),
    _entry("xception-b8", "xception", "Xception", 224, 8),
    _entry("mobilenet-v1", "mobilenet", "MobileNet"),
    _entry("mobilenet-v2", "mobilenet", "MobileNetV2"),
    _entry("mobilenet-v2-b16", "mobilenet", "MobileNetV2", 160, 16),
    _entry("mobilenet-v3-small", "mobilenet", "MobileNetV3Small"),
    _entry("mobilenet-v3-large", "mobilenet", "MobileNetV3Large"),
    _entry("efficientnet-b0", "efficientnet", "EfficientNetB0"),
    _entry("efficientnet-b3", "efficientnet", "EfficientNetB3", 300),
    _entry("efficientnet-b5", "efficientnet", "EfficientNetB5", 456),
    _entry("efficientnet-v2-b0-b8", "efficientnet", "EfficientNetV2B0", 224, 8),
    _entry("efficientnet-v2-s", "efficientnet", "EfficientNetV2S", 384),
    _entry("densenet121", "densenet", "DenseNet121"),
    _entry("densenet201", "densenet", "DenseNet201"),
    _entry("nasnet-mobile", "nasnet", "NASNetMobile"),
    _entry("nasnet-large", "nasnet", "NASNetLarge", 331),
    _entry("convnext-tiny", "convnext", "ConvNeXtTiny"),
    _entry("convnext-tiny-b8", "convnext", "ConvNeXtTiny", 192, 8),
    _entry("convnext-base", "convnext", "ConvNeXtBase"),
    *(
        ZooModel(
            name,
            "inception",
            partial(build_training, Application("InceptionV3", 299, batch)),
            training=True,
        )
        for name, batch in (
            ("inception-v3-training", 4),
            ("inception-v3-b32-training", 32),
            ("inception-v3-b64-training", 64),
        )
    ),
)
